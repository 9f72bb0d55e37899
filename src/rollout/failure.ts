/**
 * Failures outside the policy. Invariant: whatever goes wrong in a policy server or an environment reaches the engine as an
 * OutsideFailure of one of these types, so that it is counted, and never as a reward.
 */
export const outsideFailureTypes = {
  /** No connection. */
  PolicyServerUnavailable: { retryable: true },
  PolicyServerTimeout: { retryable: true },
  /** 5xx. */
  PolicyServerError: { retryable: true },
  /** 429. */
  PolicyServerBusy: { retryable: true },
  /** The server does not know the model: it was restarted, or the adapter was unloaded. */
  PolicyNotLoaded: { retryable: true },
  /** The prompt is longer than the model's context: the engine makes it a stop reason. */
  ContextLengthExceeded: { retryable: false },
  /** Any other 4xx. */
  PolicyRequestRejected: { retryable: false },
  /** The answer is not in the dialect (docs/policy-server.md). */
  PolicyAnswerInvalid: { retryable: false },
  /** The environment's process ended, hung, or could not be reached. */
  EnvironmentDied: { retryable: true },
  /** The environment reported an error of its own. */
  EnvironmentFailed: { retryable: true },
  /** Rollouts that a group needs are still broken after all attempts. */
  RolloutsBroken: { retryable: true },
  /** What was asked for can't be done, whoever is asked. */
  BadInput: { retryable: false },
  /** The environment does not keep its contract, or its command can't be started. */
  BadEnvironment: { retryable: false },
} as const;
export type OutsideFailureType = keyof typeof outsideFailureTypes;

export class OutsideFailure extends Error {
  override readonly name = 'OutsideFailure';
  readonly retryable: boolean;

  constructor(
    readonly type: OutsideFailureType,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
    this.retryable = outsideFailureTypes[type].retryable;
  }
}

export const isFailure = (error: unknown, ...types: OutsideFailureType[]): error is OutsideFailure =>
  error instanceof OutsideFailure && types.includes(error.type);

/** What went wrong, in words, for anything that can be thrown. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
