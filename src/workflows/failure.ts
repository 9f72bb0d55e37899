/** What a failed step says: for results, reports and the UI. */
import { ActivityFailure, ApplicationFailure } from '@temporalio/workflow';
import type { FailureType } from '../domain/failures';

const causeOf = (error: unknown): unknown =>
  error instanceof ActivityFailure && error.cause instanceof Error ? error.cause : error;

/** The innermost message: what a person needs to read. */
export function reasonOf(error: unknown): string {
  const cause = causeOf(error);
  if (cause instanceof ApplicationFailure) return `${cause.type ?? 'Error'}: ${cause.message}`;
  return cause instanceof Error ? cause.message : String(cause);
}

/** Whether a step failed for good with this type; its message without the type. */
export function failedWith(error: unknown, type: FailureType): string | undefined {
  const cause = causeOf(error);
  return cause instanceof ApplicationFailure && cause.type === type ? cause.message : undefined;
}
