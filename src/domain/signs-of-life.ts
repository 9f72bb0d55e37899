/**
 * What an activity's work shows of itself, for its heartbeats: they go on as long as it does, and stop where it hangs, so that Temporal gives the
 * step to another worker.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

interface Signs {
  seen: boolean;
  /** What is waited for just now and has a limit of its own. */
  waits: number;
}

const current = new AsyncLocalStorage<Signs>();

/** To be called whenever work goes on: something came, was read or written, or was counted. */
export function showLife(): void {
  const signs = current.getStore();
  if (signs) signs.seen = true;
}

/**
 * Waits for what ends by a limit of its own: a request with a timeout, a process that is watched, a turn after others. That nothing is seen of the
 * work meanwhile does not mean that it hangs.
 */
export async function limited<Result>(wait: Promise<Result>): Promise<Result> {
  const signs = current.getStore();
  if (!signs) return wait;
  signs.waits++;
  try {
    return await wait;
  } finally {
    signs.waits--;
    signs.seen = true;
  }
}

/** Does work, and calls `onLife` about every `everyMs` in which the work showed a sign of life or waited for what has a limit. */
export async function whileAlive<Result>(
  work: () => Promise<Result>,
  { everyMs, onLife }: { everyMs: number; onLife: () => void },
): Promise<Result> {
  const signs: Signs = { seen: true, waits: 0 };
  const timer = setInterval(() => {
    if (signs.seen || signs.waits > 0) onLife();
    signs.seen = false;
  }, everyMs);
  try {
    return await current.run(signs, work);
  } finally {
    clearInterval(timer);
  }
}
