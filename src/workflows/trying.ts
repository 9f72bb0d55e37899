/**
 * A step, tried until it has a result: the one owner of what comes back from Temporal's own attempts (activity-options.ts). Invariants: what is
 * outside and what took a worker away never ends a step; its own faults do, counted by themselves; nothing begins while the campaign is paused.
 */
import { CancellationScope, isCancellation, sleep } from '@temporalio/workflow';
import { backoffMs, ROUND, ROUND_MS } from '../domain/work';
import { failureTypeOf, messageOf, retryOf } from './failure';
import type { Trouble } from './messages';
import type { PauseGate } from './pause';

/** An attempt whose worker is lost sooner than this is one more in a row: the limits of silence are shorter. */
const SHORT_MS = 15 * 60_000;
/** So many losses in a row are tried again at once; then more slowly, so that the history of a worker that dies of the step stays small. */
const AT_ONCE = 20;
const LONGEST_MS = 60_000;
/** One that has not failed for so long goes on: nobody is needed any more. */
const CALM_MS = 2 * ROUND_MS;

export interface StepWatch {
  gate: PauseGate;
  /** Hears of what keeps a step from its result, and of its end. `step`: which one. */
  onTrouble: (step: object, trouble: Trouble | undefined) => void;
}

let watch: StepWatch | undefined;
/** There is one in a workflow, as there is one handler of a signal: modules are each workflow's own. */
export const watchSteps = (by: StepWatch): void => void (watch = by);

export async function untilDone<R>(title: string, run: () => Promise<R>): Promise<R> {
  const step = {};
  let [faults, lost] = [0, 0];
  let trouble: Trouble | undefined;
  const tell = (now: Trouble | undefined): void => {
    if (now ?? trouble) watch?.onTrouble(step, now);
    trouble = now;
  };
  for (;;) {
    const begun = Date.now();
    const running = new CancellationScope();
    if (trouble?.needsPerson)
      void running
        .run(() => sleep(CALM_MS))
        .then(
          () => tell(undefined),
          () => undefined,
        );
    try {
      const result = await run();
      tell(undefined);
      return result;
    } catch (error) {
      const retry = retryOf(error);
      const ends = isCancellation(error) || CancellationScope.current().consideredCancelled || retry === 'never';
      if (ends || (retry === 'own' && ++faults === ROUND)) {
        tell(undefined);
        throw error;
      }
      const now = Date.now();
      const short = now - begun < SHORT_MS;
      const before = trouble?.retry === retry && (retry === 'outside' || short) ? trouble : undefined;
      lost = before && short ? lost + 1 : 1;
      const waitMs = retry === 'own' ? backoffMs(faults) : Math.min(LONGEST_MS, backoffMs(Math.max(1, lost - AT_ONCE)));
      // What is outside has been waited for in Temporal's own attempts.
      const since = before?.since ?? (retry === 'outside' ? Math.max(begun, now - ROUND_MS) : now);
      tell({
        ...{ title, retry, type: failureTypeOf(error), reason: messageOf(error), since, nextAt: now + waitMs },
        ...(retry === 'own' && { attempt: { number: faults + 1, of: ROUND } }),
        ...(retry !== 'own' && now - since >= ROUND_MS && { needsPerson: true }),
      });
      await sleep(waitMs);
      await watch?.gate.open();
    } finally {
      running.cancel();
    }
  }
}
