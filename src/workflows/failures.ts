/** Turns failures of steps and children into reasons for the report and failures of workflows. */
import { ApplicationFailure, CancellationScope, isCancellation, TemporalFailure } from '@temporalio/workflow';
import type { FailureType } from '../domain/failures';
import type { ChildResult } from '../domain/results';
import { CHILD_FAILED, childFailureIn } from './messages';

function causeOf(error: unknown): unknown {
  let cause = error;
  while (cause instanceof TemporalFailure && !(cause instanceof ApplicationFailure) && cause.cause) cause = cause.cause;
  return cause;
}

/** Returns true also for a step that failed while it was being cancelled. */
export const isCancelled = (error: unknown): boolean =>
  isCancellation(error) || CancellationScope.current().consideredCancelled;

export function reasonOf(error: unknown): string {
  const cause = causeOf(error);
  if (cause instanceof ApplicationFailure) return `${cause.type ?? 'Error'}: ${cause.message}`;
  return cause instanceof Error ? cause.message : String(cause);
}

/** Returns the message of a failure of one of these types. */
export function failedWith(error: unknown, ...types: FailureType[]): string | undefined {
  const cause = causeOf(error);
  return cause instanceof ApplicationFailure && types.some((type) => cause.type === type) ? cause.message : undefined;
}

/** These failures concern every child. Labeling and synthesis catch BudgetSpent before it comes here; rollouts and trainings do not. */
const CAMPAIGN_WIDE_FAILURES = [
  'ArtifactDamaged',
  'AdapterRefused',
  'PolicyServerWrong',
  'LanguageModelRejected',
  'LanguageModelFailed',
  'BudgetSpent',
] as const satisfies FailureType[];

/** Rethrows a cancellation and a campaign-wide failure. */
export function toFailureReason(error: unknown): string {
  if (isCancelled(error) || failedWith(error, ...CAMPAIGN_WIDE_FAILURES) !== undefined) throw error;
  return reasonOf(error);
}

/** Returns the failure that a child throws, so that Temporal lists it as failed. */
export const childFailure = (result: ChildResult, cause: unknown): ApplicationFailure =>
  ApplicationFailure.create({
    ...{ type: CHILD_FAILED, message: result.reason ?? reasonOf(cause), nonRetryable: true, details: [result] },
    ...(cause instanceof Error && { cause }),
  });

export const resultInFailure = <R>(error: unknown): R | undefined => childFailureIn<R>(causeOf(error));
