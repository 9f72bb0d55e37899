/**
 * Work side by side, and long work in pieces.
 */
import { setImmediate } from 'node:timers/promises';

export function createLimit(slots: number): <Result>(work: () => Promise<Result>) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let free = slots;
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((begin) => waiting.push(begin));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}

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
