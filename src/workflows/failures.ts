/** Turns failures of steps and children into results, reasons for the report, and failures of workflows. */
import { ApplicationFailure, CancellationScope, isCancellation, TemporalFailure } from '@temporalio/workflow';
import type { FailureType } from '../domain/failures';
import type { ChildResult } from '../domain/results';
import { CHILD_FAILED, childFailureIn } from './messages';

/** Returns what an activity threw, through all activities and children that passed it on. */
function causeOf(error: unknown): unknown {
  let cause = error;
  while (cause instanceof TemporalFailure && !(cause instanceof ApplicationFailure) && cause.cause) cause = cause.cause;
  return cause;
}

/** Returns true also for a step that failed while it was being cancelled, instead of confirming the cancellation. */
export const isCancelled = (error: unknown): boolean =>
  isCancellation(error) || CancellationScope.current().consideredCancelled;

/** Formats type and message of the innermost failure for display. */
export function reasonOf(error: unknown): string {
  const cause = causeOf(error);
  if (cause instanceof ApplicationFailure) return `${cause.type ?? 'Error'}: ${cause.message}`;
  return cause instanceof Error ? cause.message : String(cause);
}

/** Returns the message of a failure of one of these types; undefined for any other error. */
export function failedWith(error: unknown, ...types: FailureType[]): string | undefined {
  const cause = causeOf(error);
  return cause instanceof ApplicationFailure && types.some((type) => cause.type === type) ? cause.message : undefined;
}

/** These failures affect every step and child, so they fail the campaign. */
const CAMPAIGN_WIDE_FAILURES = [
  'ArtifactDamaged',
  'AdapterRefused',
  'PolicyServerWrong',
  'LanguageModelRejected',
  'LanguageModelFailed',
  'BudgetSpent',
] as const satisfies FailureType[];

/**
 * Returns why a step, a child or a policy failed, for the report. Rethrows a cancellation and a campaign-wide failure. After these the same command
 * starts the campaign again; it reuses stored results, and the step that made a damaged artifact makes it again.
 */
export function toFailureReason(error: unknown): string {
  if (isCancelled(error) || failedWith(error, ...CAMPAIGN_WIDE_FAILURES) !== undefined) throw error;
  return reasonOf(error);
}

/**
 * Returns the failure that a failed child throws, so that Temporal lists it as failed; its details carry the result for the campaign. A child whose
 * environment was not calibrated or not approved returns its result instead.
 */
export const childFailure = (result: ChildResult, cause: unknown): ApplicationFailure =>
  ApplicationFailure.create({
    ...{ type: CHILD_FAILED, message: result.reason ?? reasonOf(cause), nonRetryable: true, details: [result] },
    ...(cause instanceof Error && { cause }),
  });

/** Returns the result in the failure of a child; undefined for any other failure. */
export const resultInFailure = <R>(error: unknown): R | undefined => childFailureIn<R>(causeOf(error));
