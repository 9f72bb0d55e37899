/** What a failed step says: for results, reports and the UI; and which failures are nobody's result. */
import { ApplicationFailure, isCancellation, TemporalFailure, TimeoutFailure } from '@temporalio/workflow';
import type { EndedArm, EndedCapability } from '../domain/results';
import { CHILD_FAILED, childFailureIn } from './messages';
import { retryOf as retryOfType, type FailureType, type Retry } from '../domain/failures';

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
  'RepliesLost',
] as const satisfies FailureType[];

/**
 * Why a step, a child or an option failed, for the report. Throws what is nobody's result: a cancellation, and what is about the campaign as
 * a whole (`others`: more types that are, here). It fails the campaign; the same command starts it again, which finds what is kept, and what
 * is damaged is made again by the step that made it.
 */
export function resultingReason(error: unknown, ...others: FailureType[]): string {
  if (isCancellation(error) || failedWith(error, ...OF_THE_CAMPAIGN, ...others) !== undefined) throw error;
  return reasonOf(error);
}

/**
 * What a child ends with that has failed: a failure wherever workflows are listed or watched, which holds what the child came to for its
 * campaign. One that could not be calibrated or approved has not failed: it came to that.
 */
export const childFailure = (ended: EndedCapability | EndedArm, cause: unknown): ApplicationFailure =>
  ApplicationFailure.create({
    ...{ type: CHILD_FAILED, message: ended.reason ?? reasonOf(cause), nonRetryable: true, details: [ended] },
    ...(cause instanceof Error && { cause }),
  });

/** What such a child came to; undefined of any other failure. */
export const endedIn = <R>(error: unknown): R | undefined => childFailureIn<R>(causeOf(error));
