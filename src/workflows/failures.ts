/**
 * Retries of a step, and how its failure reads in results, reports and the UI.
 */
import {
  ApplicationFailure,
  CancellationScope,
  isCancellation,
  sleep,
  TemporalFailure,
  TimeoutFailure,
} from '@temporalio/workflow';
import { type FailureType, type Retry, retryOf as retryOfType, backoffMs, ROUND, ROUND_MS } from '../domain/failures';
import type { ArmResult, CapabilityResult } from '../domain/results';
import { CHILD_FAILED, childFailureIn, type Trouble } from './messages';

/** What an activity threw or ran into, whatever activity or child it came through. */
function causeOf(error: unknown): unknown {
  let cause = error;
  const isCause = () => cause instanceof ApplicationFailure || cause instanceof TimeoutFailure;
  while (cause instanceof TemporalFailure && !isCause() && cause.cause) cause = cause.cause;
  return cause;
}

/** The type of a failure; silence is the loss of its worker. */
export function failureTypeOf(error: unknown): string {
  const cause = causeOf(error);
  if (cause instanceof TimeoutFailure)
    return (cause.timeoutType === 'HEARTBEAT' ? 'WorkerDied' : 'Unexpected') satisfies FailureType;
  return (cause instanceof ApplicationFailure && cause.type) || 'Error';
}

/** How a step that failed so is retried. */
export const retryOf = (error: unknown): Retry => retryOfType(failureTypeOf(error));

/** The innermost message. */
export function messageOf(error: unknown): string {
  const cause = causeOf(error);
  return cause instanceof Error ? cause.message : String(cause);
}

/** A step may fail instead of confirming that it was cancelled. */
export const isCancelled = (error: unknown): boolean =>
  isCancellation(error) || CancellationScope.current().consideredCancelled;

/** With its type: what a person needs to read. */
export function reasonOf(error: unknown): string {
  const cause = causeOf(error);
  return cause instanceof ApplicationFailure ? `${cause.type ?? 'Error'}: ${cause.message}` : messageOf(error);
}

/** Whether a step failed for good with one of these types; its message without the type. */
export function failedWith(error: unknown, ...types: FailureType[]): string | undefined {
  const cause = causeOf(error);
  return cause instanceof ApplicationFailure && types.some((type) => cause.type === type) ? cause.message : undefined;
}

/** They would meet every step that asks or reads the same: a part that is left out for them would be missing by chance. */
const OF_THE_CAMPAIGN = [
  'ArtifactDamaged',
  'AdapterRefused',
  'PolicyServerWrong',
  'LanguageModelRejected',
  'LanguageModelFailed',
  'BudgetSpent',
] as const satisfies FailureType[];

/**
 * Why a step, a child or an option failed, for the report. Throws what is nobody's result: a cancellation, and what is about the campaign as
 * a whole (`others`: more types that are, here). It fails the campaign; the same command starts it again, which finds what is kept, and what
 * is damaged is made again by the step that made it.
 */
export function resultingReason(error: unknown, ...others: FailureType[]): string {
  if (isCancelled(error) || failedWith(error, ...OF_THE_CAMPAIGN, ...others) !== undefined) throw error;
  return reasonOf(error);
}

/**
 * What a child ends with that has failed: a failure wherever workflows are listed or watched, which holds what the child came to for its
 * campaign. One that could not be calibrated or approved has not failed: it came to that.
 */
export const childFailure = (result: CapabilityResult | ArmResult, cause: unknown): ApplicationFailure =>
  ApplicationFailure.create({
    ...{ type: CHILD_FAILED, message: result.reason ?? reasonOf(cause), nonRetryable: true, details: [result] },
    ...(cause instanceof Error && { cause }),
  });

/** What such a child came to; undefined of any other failure. */
export const endedIn = <R>(error: unknown): R | undefined => childFailureIn<R>(causeOf(error));

/** An attempt whose worker is lost sooner than this is one more in a row: the limits of silence are shorter. */
const SHORT_MS = 15 * 60_000;
/** So many losses in a row are tried again at once; then more slowly, so that the history of a worker that dies of the step stays small. */
const AT_ONCE = 20;
const LONGEST_MS = 60_000;
/** One that has not failed for so long goes on: nobody is needed any more. */
const CALM_MS = 2 * ROUND_MS;

export interface StepWatch {
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
      const ends = isCancelled(error) || retry === 'never';
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
    } finally {
      running.cancel();
    }
  }
}
