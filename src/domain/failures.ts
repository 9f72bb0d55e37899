/**
 * Failures outside the policy: types, one table for all parts, each either retried by Temporal or final. Invariant: whatever goes wrong in a
 * policy server, an environment or another part is an OutsideFailure of one of these types, so that it is counted, and never as a reward.
 */
export const failureTypes = {
  /** What was asked for (a campaign file, a model folder) is wrong: trying again changes nothing. */
  BadInput: { retryable: false },
  /** The base model can't work on the target: it does not know its words, or does not act on it at all. */
  BaseUnsuited: { retryable: false },

  /** What the store holds under a reference is not what was put there. It is made again when whoever made it is asked again. */
  ArtifactDamaged: { retryable: false },
  /** The step is of another store than this worker's: a worker that has it takes it. */
  WrongStore: { retryable: true },
  /** No room left where the home or a temporary folder is: work goes on once there is. */
  DiskFull: { retryable: true },

  /** Policy server: no connection. */
  PolicyServerUnavailable: { retryable: true },
  PolicyServerTimeout: { retryable: true },
  /** 5xx. */
  PolicyServerError: { retryable: true },
  /** 429. */
  PolicyServerBusy: { retryable: true },
  /** It serves another base model than the campaign's: a worker whose server has it takes the step. */
  WrongBaseModel: { retryable: true },
  /** The server does not know the model: it was restarted, or the adapter was unloaded. */
  PolicyNotLoaded: { retryable: true },
  /** The prompt is longer than the model's context: the engine makes it a stop reason. */
  ContextLengthExceeded: { retryable: false },
  /** Any other 4xx. */
  PolicyRequestRejected: { retryable: false },
  /** The server refuses an adapter: its rank or modules, its files, or the folder, which it can't see. */
  AdapterRefused: { retryable: false },
  /** What answers can't serve a campaign as it was started: it wants another key, or is no policy server. */
  PolicyServerWrong: { retryable: false },
  /** The answer is not in the dialect (docs/policy-server.md). */
  PolicyAnswerInvalid: { retryable: false },

  /** The environment's process ended, hung, or could not be reached. */
  EnvironmentDied: { retryable: true },
  /** The environment reported an error of its own. */
  EnvironmentFailed: { retryable: true },
  /** The environment does not keep its contract, or its command can't be started. */
  BadEnvironment: { retryable: false },
  /** The model that plays the user, or the one that judges, gave no usable answer. */
  UserSimulatorFailed: { retryable: true },
  JudgeFailed: { retryable: true },
  /** Its endpoint refuses the request: a wrong key or model, or a conversation that is too long for it. */
  UserSimulatorRejected: { retryable: false },
  JudgeRejected: { retryable: false },
  /** Its endpoint can't be reached or has no capacity: all rollouts that need it would break. */
  PartnerUnavailable: { retryable: true },
  /** The analyst's or synthesizer's language model: no connection, or no capacity (429 names when to come back). */
  LanguageModelUnavailable: { retryable: true },
  /** 5xx, a reply that broke off, or something that is no chat completion. */
  LanguageModelFailed: { retryable: true },
  /** Its endpoint refuses the request: a wrong key or model, or a prompt that is too long for it; or there is no key to send. */
  LanguageModelRejected: { retryable: false },
  /** Its answer could not be used, nor could those to the repairs that were asked for. */
  AnswerInvalid: { retryable: false },
  /** What the campaign may spend on language models is spent. */
  BudgetSpent: { retryable: false },
  /** Nobody approved in time what had to be approved. */
  NotApproved: { retryable: false },
  /** A labeling pass that is no partition of the trajectories, or not of all candidates: it is left out and never filled in. */
  LabelsInvalid: { retryable: false },
  /** The synthesizer has no environment to give: the capability or the target lacks what it needs, or it can't mend what was found. */
  CannotSynthesize: { retryable: false },
  /** The router could not choose a policy for a conversation: counted, and never a silent choice. */
  RouterFailed: { retryable: false },
  /** Rollouts that a group needs are still broken after all attempts. */
  RolloutsBroken: { retryable: true },

  /** A merge or the fit of a router ended without refusing its input: no memory, a full disk, a signal. */
  PythonFailed: { retryable: true },
  /** The trainer process died, or was asked to stop. */
  TrainerDied: { retryable: true },
  TrainerHung: { retryable: true },
  /** The trainer says that its job is wrong. */
  BadJob: { retryable: false },
  /** The loss is no number any more: from the same checkpoint, on the same rollouts, it would be so again. */
  Diverged: { retryable: false },
  /** The worker is going down in order; another one goes on. */
  WorkerShutdown: { retryable: true },
  /** The worker was killed; `campaign run` gives what it did to another one. */
  WorkerDied: { retryable: true },
} as const;

export type FailureType = keyof typeof failureTypes;

/** Whether what failed so may succeed at another time; false of what is no FailureType. */
export const isRetryable = (type: string): boolean =>
  type in failureTypes && failureTypes[type as FailureType].retryable;

export class OutsideFailure extends Error {
  override readonly name = 'OutsideFailure';
  readonly retryable: boolean;

  constructor(
    readonly type: FailureType,
    message: string,
    cause?: unknown,
    /** When to try again, where the other side said so. */
    readonly retryAfterMs?: number,
  ) {
    super(message, { cause });
    this.retryable = failureTypes[type].retryable;
  }
}

export const isFailure = (error: unknown, ...types: FailureType[]): error is OutsideFailure =>
  error instanceof OutsideFailure && types.includes(error.type);

/** What went wrong, in words, for anything that can be thrown. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
