/** Work side by side, and long work in pieces. */
import { setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';

/** Runs at most `slots` pieces of work at once, in the order of the calls. An abort ends the wait. */
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
  return async (work, signal) => {
    if (free > 0) free--;
    else {
      const turn = new Promise<void>((resolve) => waiting.push(resolve));
      await orAborted(turn, signal).catch((aborted: unknown) => {
        void turn.then(release);
        throw aborted;
      });
    }
    try {
      return await work();
    } finally {
      release();
    }
  };
}

/** Runs work of one key one at a time, in the order of the calls. An abort ends the wait. */
export function createTurns() {
  const lines = new Map<string, { limit: ReturnType<typeof createLimit>; users: number }>();
  return async <Result>(key: string, work: () => Promise<Result>, signal?: AbortSignal): Promise<Result> => {
    const line = lines.get(key) ?? { limit: createLimit(1), users: 0 };
    lines.set(key, line);
    line.users++;
    try {
      return await line.limit(work, signal);
    } finally {
      if (--line.users === 0) lines.delete(key);
    }
  };
}

/** Runs `work` on every item, `concurrency` at once. The first failure, or the caller's signal, aborts the signal that the rest gets. */
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

/** Returns the result of the promise, or throws the reason of the abort if that is first; the work behind the promise continues. */
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

/** Size that is parsed in about twenty milliseconds. */
const PIECE_BYTES = 1 << 20;

/** Returns a function to await after each piece of synchronous work, which lets other work run after every MiB. */
export function breathing(): (bytes: number) => Promise<void> {
  let since = 0;
  return async (bytes) => {
    since += bytes;
    if (since < PIECE_BYTES) return;
    since = 0;
    await setImmediate();
  };
}
