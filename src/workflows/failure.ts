/** What a failed step says: for results, reports and the UI; and which failures are nobody's result. */
import { ApplicationFailure, isCancellation, TemporalFailure, TimeoutFailure } from '@temporalio/workflow';
import type { FailureType } from '../domain/failures';

/** What an activity threw, whatever activity or child it came through. */
function causeOf(error: unknown): unknown {
  let cause = error;
  while (cause instanceof TemporalFailure && !(cause instanceof ApplicationFailure) && cause.cause) cause = cause.cause;
  return cause;
}

/** The innermost message: what a person needs to read. */
export function reasonOf(error: unknown): string {
  const cause = causeOf(error);
  if (cause instanceof ApplicationFailure) return `${cause.type ?? 'Error'}: ${cause.message}`;
  return cause instanceof Error ? cause.message : String(cause);
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
  'LanguageModelUnavailable',
  'LanguageModelFailed',
  'LanguageModelRejected',
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

/** Whether Temporal begins a step again that fails so: its worker was lost, or it said that it may be tried again. */
export function wouldBeRetried(error: unknown): boolean {
  const cause = causeOf(error);
  return cause instanceof TimeoutFailure || (cause instanceof ApplicationFailure && !cause.nonRetryable);
}
