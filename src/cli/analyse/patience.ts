/**
 * Trying again without Temporal: what an endpoint could not answer now is asked again, as long as its kind of failure allows. Invariant: only
 * failures that may go away by themselves are waited for, and the wait is told; an endpoint that never answered is soon given up, since its
 * address may be wrong.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { OutsideFailure } from '../../domain/failures';

const ATTEMPTS = 6;
const ATTEMPTS_UNANSWERED = 3;
const FIRST_MS = 2_000;
const LONGEST_MS = 300_000;

export interface Patience {
  signal: AbortSignal;
  /** Whether the endpoint has said anything yet. */
  answered(): boolean;
  /** Told before each wait. */
  onWait(o: { failure: OutsideFailure; waitMs: number }): void;
}

export async function patiently<T>(work: () => Promise<T>, { signal, answered, onWait }: Patience): Promise<T> {
  for (let attempt = 1; ; attempt++)
    try {
      return await work();
    } catch (failure) {
      if (!(failure instanceof OutsideFailure) || !failure.retryable || signal.aborted) throw failure;
      const known = answered() || failure.retryAfterMs !== undefined;
      if (attempt >= (known ? ATTEMPTS : ATTEMPTS_UNANSWERED)) throw failure;
      // A moment that is named may be later than the own one, and not sooner: the attempts would be over at once.
      const waitMs = Math.min(Math.max(failure.retryAfterMs ?? 0, FIRST_MS * 2 ** (attempt - 1)), LONGEST_MS);
      onWait({ failure, waitMs });
      await sleep(waitMs, undefined, { signal });
    }
}
