/**
 * Failures outside the policy. Invariant: whatever goes wrong in a policy server or an environment reaches the engine as an
 * OutsideFailure of one of these types, so that it is counted, and never as a reward.
 */
import { failureTypes, type FailureType } from '../domain/failures';

export class OutsideFailure extends Error {
  override readonly name = 'OutsideFailure';
  readonly retryable: boolean;

  constructor(
    readonly type: FailureType,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
    this.retryable = failureTypes[type].retryable;
  }
}

export const isFailure = (error: unknown, ...types: FailureType[]): error is OutsideFailure =>
  error instanceof OutsideFailure && types.includes(error.type);

/** What went wrong, in words, for anything that can be thrown. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
