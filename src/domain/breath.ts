/**
 * Long work in pieces. Invariant: after every piece the event loop has its turn, so that timers, answers and heartbeats are late by one piece
 * at most.
 */
import { setImmediate } from 'node:timers/promises';

/** Some twenty milliseconds of parsing. */
const PIECE_BYTES = 1 << 20;

/** To be awaited after every bit of work, with its bytes; `onBreath` hears of every whole piece. */
export function breathing(onBreath?: () => void): (bytes: number) => Promise<void> {
  let since = 0;
  return async (bytes) => {
    since += bytes;
    if (since < PIECE_BYTES) return;
    since = 0;
    onBreath?.();
    await setImmediate();
  };
}
