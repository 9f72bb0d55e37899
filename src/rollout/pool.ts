/**
 * Bounded concurrency over a list. Invariants: items start in order; a slot that is free takes the next item at once; when it
 * returns or throws, no work is running any more.
 */
import { setMaxListeners } from 'node:events';

export async function forEachBounded<Item>({ items, concurrency, signal, work }: ForEachBounded<Item>): Promise<void> {
  const stop = new AbortController();
  const stopped = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal;
  setMaxListeners(0, stopped); // as many as there is work at once, each taken off when its work is done
  let next = 0;

  async function slot(): Promise<void> {
    while (next < items.length) {
      stopped.throwIfAborted();
      try {
        await work(items[next++]!, stopped);
      } catch (error) {
        stop.abort(error);
        throw stopped.reason;
      }
    }
  }

  const slots = Array.from({ length: Math.min(concurrency, items.length) }, slot);
  for (const result of await Promise.allSettled(slots)) {
    if (result.status === 'rejected') throw stopped.reason;
  }
}

interface ForEachBounded<Item> {
  items: Item[];
  concurrency: number;
  signal?: AbortSignal | undefined;
  /** The signal aborts when other work has failed or the caller's signal has aborted. */
  work: (item: Item, signal: AbortSignal) => Promise<void>;
}
