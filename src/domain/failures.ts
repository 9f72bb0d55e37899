/** Failure types that cross the boundary between activities and workflows: each is either retried by Temporal or final. */
export const failureTypes = {
  /** The campaign file, a model folder or a module is wrong: trying again changes nothing. */
  BadInput: { retryable: false },
  /** An environment that does not keep its contract. */
  BadEnvironment: { retryable: false },
  /** No generator for this class of error, or none of its modules passes the self-test. */
  CannotSynthesize: { retryable: false },
  /** The policy server cannot be reached or answers 5xx. */
  PolicyServerUnavailable: { retryable: true },
  /** An environment process died or hangs. */
  EnvironmentDied: { retryable: true },
  /** Rollouts of a batch are still broken after all attempts. */
  RolloutsBroken: { retryable: true },
  /** The trainer process died, hangs, or was asked to stop. */
  TrainerDied: { retryable: true },
  TrainerHung: { retryable: true },
  /** The worker is going down in order; another one goes on. */
  WorkerShutdown: { retryable: true },
  /** The trainer says that its job is wrong. */
  BadJob: { retryable: false },
} as const;

export type FailureType = keyof typeof failureTypes;
