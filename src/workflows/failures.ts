/** How the failure of a step or a child reads in results, reports and Temporal's UI. */
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

/** A step may fail instead of confirming that it was cancelled. */
export const isCancelled = (error: unknown): boolean =>
  isCancellation(error) || CancellationScope.current().consideredCancelled;

/** Formats type and message of the innermost failure for display. */
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
export const childFailure = (result: ChildResult, cause: unknown): ApplicationFailure =>
  ApplicationFailure.create({
    ...{ type: CHILD_FAILED, message: result.reason ?? reasonOf(cause), nonRetryable: true, details: [result] },
    ...(cause instanceof Error && { cause }),
  });

/** What such a child came to; undefined of any other failure. */
export const endedIn = <R>(error: unknown): R | undefined => childFailureIn<R>(causeOf(error));
