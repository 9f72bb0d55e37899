/** Failures outside the policy: one table of types, each with its retry rule, and the delays of retries. A failure is counted, and never as a reward. */
import { plainText } from './plain-text';

/**
 * `never`: the same input fails again. `own`: the step's own fault, which may pass: it ends the step after MAX_FAULTS. `outside`: a service that the
 * step needs is unavailable: it is retried without end. `preempted`: its worker stops: it is retried at once and without end.
 */
export type Retry = 'never' | 'own' | 'outside' | 'preempted';

export const failureTypes = {
  BadInput: 'never',
  PluginMissing: 'never',
  /** The base model can't work on the target: it does not know its words, or does not act on it at all. */
  BaseUnsuited: 'never',

  /** The content of an artifact differs from its hash. The step that made it rebuilds it on its next run. */
  ArtifactDamaged: 'never',
  /** The step belongs to another store than this worker's; a worker of that store takes it. */
  WrongStore: 'outside',
  StoreUnavailable: 'outside',
  /** The operator of the worker does not allow a command or a variable that the campaign file names. */
  NotAllowed: 'never',
  /** Another worker has taken the step; the results of this one since then do not count. */
  Superseded: 'preempted',
  DiskFull: 'outside',

  PolicyServerUnavailable: 'outside',
  PolicyServerTimeout: 'outside',
  /** 5xx, or an answer that is no JSON, as gateways send while the server behind them is unavailable. */
  PolicyServerError: 'outside',
  PolicyServerBusy: 'outside',
  /** The server, or this worker's CAMPAIGN_MODEL, is another base model than the campaign's: a worker that has it takes the step. */
  WrongBaseModel: 'outside',
  PolicyNotLoaded: 'outside',
  /** The prompt is longer than the model's context: the engine makes it a stop reason. */
  ContextLengthExceeded: 'never',
  PolicyRequestRejected: 'never',
  /** The server refuses an adapter: its rank or modules, its files, or the folder, which it can't see. */
  AdapterRefused: 'never',
  /** The server can't serve the campaign: it wants another key, or is no policy server. */
  PolicyServerWrong: 'never',
  PolicyAnswerInvalid: 'never',

  /** The environment's process ended, hung, or could not be reached. */
  EnvironmentDied: 'own',
  EnvironmentFailed: 'own',
  /** Its program can't be started on this worker's machine: a worker that has it takes the step. */
  EnvironmentMissing: 'outside',
  BadEnvironment: 'never',
  /** The model that plays the user, or the one that judges, gave an answer that can't be used: the rollout is not tried again. */
  UserSimulatorFailed: 'never',
  JudgeFailed: 'never',
  /** Its endpoint refuses the request: a wrong key or model, or a conversation that is too long for it. */
  UserSimulatorRejected: 'never',
  JudgeRejected: 'never',
  /** Its endpoint can't be reached, has no capacity, or answers with 5xx: all rollouts that need it would break. */
  PartnerUnavailable: 'outside',
  /** Its endpoint did not answer in time. The question may be too long for it, so that this is bounded. */
  PartnerTimeout: 'own',
  /** The analyst's or synthesizer's language model: no connection, no capacity (429 names when to come back), or 5xx. */
  LanguageModelUnavailable: 'outside',
  /** No data for too long, a reply that broke off, or no chat completion. Each try may be billed, so that this is bounded. */
  LanguageModelFailed: 'own',
  /** Its endpoint refuses the request: a wrong key or model, or a prompt that is too long for it; or there is no key to send. */
  LanguageModelRejected: 'never',
  /** Its answer could not be used, and neither could the answers to the repair requests. */
  AnswerInvalid: 'never',
  BudgetSpent: 'never',
  /** A labeling pass that is no partition of the trajectories, or not of all candidates: it is left out and never filled in. */
  LabelsInvalid: 'never',
  /** The synthesizer has no environment: the capability or the target lacks what it needs, or it can't fix the findings. */
  CannotSynthesize: 'never',
  /** The router could not choose a policy for a conversation: counted, and never a silent choice. */
  RouterFailed: 'never',
  RolloutsBroken: 'own',

  /** A merge or the fit of a router ended without refusing its input: no memory, a full disk, a signal. */
  PythonFailed: 'own',
  TrainerDied: 'own',
  TrainerHung: 'own',
  BadJob: 'never',
  /** The loss is no number any more: from the same checkpoint, on the same rollouts, it would be so again. */
  Diverged: 'never',
  SamplerDiffers: 'never',
  WorkerShutdown: 'preempted',
  /** Its worker died in MAX_FAULTS starts in a row before any work was durable. */
  WorkerDied: 'never',
  EndpointUnavailable: 'outside',
  Unexpected: 'own',
} as const satisfies Record<string, Retry>;

export type FailureType = keyof typeof failureTypes;

/** Returns the retry rule of a type; `never` for one that is no FailureType, such as that of a defect. */
export const retryOf = (type: string | null | undefined): Retry =>
  type && type in failureTypes ? failureTypes[type as FailureType] : 'never';

export const isRetryable = (type: string): boolean => retryOf(type) !== 'never';

export class OutsideFailure extends Error {
  override readonly name = 'OutsideFailure';
  readonly retryable: boolean;

  constructor(
    readonly type: FailureType,
    message: string,
    cause?: unknown,
    readonly retryAfterMs?: number,
  ) {
    // Messages quote processes, servers and models, and are shown on terminals, in worker logs and in Temporal's UI.
    super(plainText(message), { cause });
    this.retryable = isRetryable(type);
  }
}

/** Failures for which a labeling pass is skipped; votes still count out of all passes. Any other failure affects every pass. */
export const PASS_SKIPPING_FAILURES = [
  'AnswerInvalid',
  'LabelsInvalid',
  'BudgetSpent',
] as const satisfies FailureType[];

/** Failures of a simulated user or a judge in one conversation, on which the other rollouts of a batch do not depend. */
export const CONVERSATION_FAILURES = [
  'UserSimulatorFailed',
  'UserSimulatorRejected',
  'JudgeFailed',
  'JudgeRejected',
] as const satisfies FailureType[];

export const isFailure = (error: unknown, ...types: FailureType[]): error is OutsideFailure =>
  error instanceof OutsideFailure && types.includes(error.type);

/** A failure that the user's input causes: the message names field, value and fix. */
export const badInput = (message: string, cause?: unknown): OutsideFailure =>
  new OutsideFailure('BadInput', message, cause);

/** Returns the message of the BadInput that `work` throws; undefined where it throws none. */
export function badInputIn(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (error) {
    if (isFailure(error, 'BadInput')) return error.message;
    throw error;
  }
}

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Delay after an attempt (from 1), ms: 1 s, doubling to at most 5 min. */
export const backoffMs = (attempt: number): number => Math.min(300_000, 1_000 * 2 ** (attempt - 1));

/** Number of own faults, or of consecutive starts that lost their worker before any work was durable, after which a step fails for good. */
export const MAX_FAULTS = 14;

/** Attempts at a batch of which rollouts broke: without them a server that is busy for seconds would decide on a checkpoint. */
export const BATCH_ATTEMPTS = 5;
