/**
 * Work of one key, one after the other in the order in which it came, within this process. Invariants: who waits hears of every progress of
 * whoever has the turn, in its own async context (its heartbeat is its own activity's); it stops waiting when its signal aborts.
 */
import { AsyncResource } from 'node:async_hooks';

interface Line {
  /** Resolves when the last in line has left. */
  last: Promise<void>;
  waiting: Set<() => void>;
}

const lines = new Map<string, Line>();

interface InTurn<Result> {
  key: string;
  signal?: AbortSignal | undefined;
  /** Called while it waits, whenever the work before makes progress. */
  onWaiting: () => void;
  /** Calls `progressed` for those who wait. */
  work: (progressed: () => void) => Promise<Result>;
}

export async function inTurn<Result>({ key, signal, onWaiting, work }: InTurn<Result>): Promise<Result> {
  const line = lines.get(key) ?? { last: Promise.resolve(), waiting: new Set() };
  lines.set(key, line);
  const before = line.last;
  let leave = (): void => undefined;
  const left = new Promise<void>((resolve) => (leave = resolve));
  // Who gives up waiting lets the next one wait for those before.
  const mine = before.then(() => left);
  line.last = mine;
  void mine.then(() => line.last === mine && lines.delete(key));

  const heard = AsyncResource.bind(onWaiting);
  line.waiting.add(heard);
  try {
    await orAborted(before, signal);
    line.waiting.delete(heard);
    return await work(() => line.waiting.forEach((hear) => hear()));
  } finally {
    line.waiting.delete(heard);
    leave();
  }
}

async function orAborted(promise: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  if (!signal) return promise;
  signal.throwIfAborted();
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => (abort = () => reject(signal.reason as Error)));
  signal.addEventListener('abort', abort, { once: true });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
