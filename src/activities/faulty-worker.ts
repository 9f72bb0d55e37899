/**
 * A worker that fails all that it takes. Invariant: it stops taking before it has failed what others could do: with a driver that broke, every
 * training of the queue would come to it, since it is always free.
 */
import { ApplicationFailure } from '@temporalio/common';
import { retryOf } from '../domain/failures';

/** In a row, with nothing between them that ended well or went on for longer. */
const FAULTS = 3;
const SOON_MS = 120_000;

/** Activities that count what they come to; `onFaulty` is told once why the worker should stop. */
export function stoppingWhenFaulty<A extends object>(
  activities: A,
  o: { onFaulty: (why: string) => void; now?: () => number },
): A {
  const { onFaulty, now = Date.now } = o;
  let faults = 0;
  const counted =
    (run: (...input: unknown[]) => Promise<unknown>) =>
    async (...input: unknown[]): Promise<unknown> => {
      const begun = now();
      try {
        const result = await run(...input);
        faults = 0;
        return result;
      } catch (error) {
        // What is outside, or wrong with what it was given, says nothing of the worker.
        if (error instanceof ApplicationFailure && retryOf(error.type) === 'own') {
          faults = now() - begun < SOON_MS ? faults + 1 : 0;
          if (faults === FAULTS)
            onFaulty(
              `${FAULTS} steps in a row failed soon after they began, the last with ${error.type}: ${error.message}`,
            );
        }
        throw error;
      }
    };
  return Object.fromEntries(Object.entries(activities).map(([name, run]) => [name, counted(run)])) as A;
}
