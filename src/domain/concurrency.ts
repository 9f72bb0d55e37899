/** Work side by side, and long work in pieces. */
import { setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';

/** Runs so much work at once, in the order of the calls. An abort ends the wait. */
export function createLimit(
  slots: number,
): <Result>(work: () => Promise<Result>, signal?: AbortSignal) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let free = slots;
  const release = (): void => {
    const next = waiting.shift();
    if (next) next();
    else free++;
  };
  async function waitForSlot(signal: AbortSignal | undefined): Promise<void> {
    let begin = (): void => undefined;
    const turn = new Promise<void>((resolve) => (begin = resolve));
    waiting.push(begin);
    try {
      await orAborted(turn, signal);
    } catch (aborted) {
      const place = waiting.indexOf(begin);
      if (place < 0) release();
      else waiting.splice(place, 1);
      throw aborted;
    }
  }
  return async (work, signal) => {
    if (free > 0) free--;
    else await waitForSlot(signal);
    try {
      return await work();
    } finally {
      release();
    }
  };
}

/** Does work of one key one after the other, in the order of asking; who is aborted while it waits leaves the line. */
export function createTurns() {
  const last = new Map<string, Promise<void>>();
  return async <Result>(key: string, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> => {
    const before = last.get(key) ?? Promise.resolve();
    let leave = (): void => undefined;
    const left = new Promise<void>((resolve) => (leave = resolve));
    // Who gives up waiting lets the next one wait for those before.
    const mine = before.then(() => left);
    last.set(key, mine);
    void mine.then(() => last.get(key) === mine && last.delete(key));
    try {
      await orAborted(before, signal);
      return await work();
    } finally {
      leave();
    }
  };
}

/** Work on every item, so many at once. The first failure ends the rest: the signal that work gets aborts then, as with the caller's own. */
export async function forEachBounded<Item>(o: {
  items: readonly Item[];
  concurrency: number;
  signal?: AbortSignal | undefined;
  work: (item: Item, signal: AbortSignal) => Promise<void>;
}): Promise<void> {
  const { items, concurrency, signal, work } = o;
  const stop = new AbortController();
  const stopped = AbortSignal.any([stop.signal, ...(signal ? [signal] : [])]);
  setMaxListeners(0, stopped); // as many as there is work at once, each taken off when its work is done
  let next = 0;
  async function slot(): Promise<void> {
    while (next < items.length) {
      stopped.throwIfAborted();
      await work(items[next++]!, stopped);
    }
  }
  const slots = Array.from({ length: Math.min(concurrency, items.length) }, () =>
    slot().catch((error: unknown) => stop.abort(error)),
  );
  await Promise.all(slots);
  stopped.throwIfAborted();
}

/** What the promise comes to, or the reason of the abort where that is first; the work behind the promise goes on. */
export async function orAborted<Result>(promise: Promise<Result>, signal: AbortSignal | undefined): Promise<Result> {
  if (!signal) return promise;
  signal.throwIfAborted();
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => (abort = () => reject(signal.reason as Error)));
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}

/** Some twenty milliseconds of parsing. */
const PIECE_BYTES = 1 << 20;

/** To be awaited after every bit of work, with its bytes. */
export function breathing(): (bytes: number) => Promise<void> {
  let since = 0;
  return async (bytes) => {
    since += bytes;
    if (since < PIECE_BYTES) return;
    since = 0;
    await setImmediate();
  };
}
