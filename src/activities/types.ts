/** The activities as the workflows see them, by task queue. Workflows import this file's types only. */
import type { Decision } from '../domain/approval';
import type { ArtifactRef } from '../domain/artifacts';
import type { BaseCheck } from '../domain/base-check';
import type { CalibrationReport, RoundFeedback, SelfTest } from '../domain/calibration';
import type { CalibrationBands, Campaign, PromptSearch, SelectionRule, Stage, Training } from '../domain/campaign';
import type { Candidate, Lacking } from '../domain/capability';
import type { EnvironmentSpec, Identity, KindSpec } from '../domain/kinds';
import type { Budget, LanguageModelSpec } from '../domain/endpoints';
import type { MoeGate } from '../domain/policies';
import type { FixedPolicy, Hints, Policy, Purpose, RolloutSummary, Sampling } from '../domain/rollout';
import type { Checkpoint, Iteration, PlanPart, Prepared, SelectedCapability, TrainingSummary } from '../domain/results';

/** Which tasks: a part of the campaign's plan, seeds of a synthesized environment, or seeds of several, as many of each. */
export type TaskSet =
  { kind: 'plan'; plan: ArtifactRef; part: PlanPart } | (SeedSet & { kind: 'seeds' }) | (SeedSet & { kind: 'mixed' });

export interface SeedSet {
  from: number;
  count: number;
  /** The target: seeds whose instances say the text of one of its test tasks are left out, and the next take their places. */
  unlike?: EnvironmentSpec;
}

/** Whose language models are asked: what they cost is counted by campaign. No part of any key. */
export interface Payer {
  campaign: string;
  budget: Budget;
}

export interface RollOutInput extends Payer {
  purpose: Purpose;
  /** What the batch is, for people: no part of its key. */
  title: string;
  environment: EnvironmentSpec;
  policy: Policy;
  tasks: TaskSet;
  /** Attempts at each task. */
  attempts: number;
  /** Which of them are hinted; without it none is. */
  hints?: Hints;
  sampling: Sampling;
  maxSteps: number;
  seed: number;
  concurrency: number;
  maxAttempts: number;
  maxBrokenShare: number;
}

export interface TrainInput extends Payer {
  /** What is trained, for people; names the trainer's folder. */
  name: string;
  /** What asked for it: part of the training's key. */
  maker: Identity;
  environment: EnvironmentSpec;
  base: string;
  baseModelPath: string;
  /** The adapters whose weighted sum the training starts from; without it a fresh one. */
  from?: FixedPolicy['adapters'];
  tasks: TaskSet;
  training: Training;
  /** Which rollouts of a group are hinted; without it none is. */
  hints?: Hints;
  seed: number;
  maxTokens: number;
  maxSteps: number;
  concurrency: number;
  maxAttempts: number;
  /** Silence after which the server gives the training to another worker. */
  heartbeatSeconds: number;
  /** A trainer that has the turn and says nothing for so long hangs, and is replaced. */
  stallSeconds: number;
}

/** Of `Training` what every training of a LoRA needs. */
export type LoraTraining = Pick<
  Training,
  | 'lora'
  | 'learningRate'
  | 'maxGradNorm'
  | 'checkpointEvery'
  | 'threads'
  | 'dtype'
  | 'tokensPerForward'
  | 'gradientCheckpointing'
>;

export interface FineTuneInput {
  /** What is trained, for people; names the trainer's folder. */
  name: string;
  /** What asked for it: part of the training's key. */
  maker: Identity;
  /** Whose tools a conversation was offered that does not tell. */
  environment: EnvironmentSpec;
  base: string;
  baseModelPath: string;
  conversations: ArtifactRef;
  /** `steps` in place of `epochs`, if it is given. */
  training: LoraTraining & { epochs: number; steps: number | undefined; rowsPerStep: number };
  seed: number;
  heartbeatSeconds: number;
  stallSeconds: number;
}

/** Rollouts before a training and after it, on the same tasks. */
interface Batches {
  before: ArtifactRef;
  after: ArtifactRef;
}

export interface ControlActivities {
  /** `until`: the stage that the campaign stops after; what only later ones need is not looked at. */
  prepare(input: { campaign: Campaign; until?: Stage }): Promise<Prepared>;
  select(input: {
    rule: SelectionRule;
    /** What was labeled: trajectories that are all the same select nothing. */
    rollouts: ArtifactRef;
    candidates: ArtifactRef;
    /** Absent: all candidates are selected outright. */
    labels?: ArtifactRef[];
  }): Promise<{ ref: ArtifactRef; selected: SelectedCapability[] }>;
  /** `unlike`: the target, of whose test tasks the instances must not say the texts. */
  selfTest(input: Payer & { module: ArtifactRef; unlike: EnvironmentSpec }): Promise<SelfTest>;
  /** The modules of a folder, by the names of their files. */
  takeModules(input: { folder: string }): Promise<{ file: string; module: ArtifactRef }[]>;
  /** The conversations of a file (docs/conversations.md) with at least this reward, and how many they are. */
  takeConversations(input: { file: string; minReward: number }): Promise<{ conversations: ArtifactRef; count: number }>;
  calibrate(input: { bands: CalibrationBands; rollouts: ArtifactRef; confidence: number }): Promise<CalibrationReport>;
  /** What was decided before of this thing of this workflow; null if nothing was. */
  recallDecision(input: { about: string; of: string }): Promise<Decision | null>;
  keepDecision(input: { about: string; of: string; decision: Decision }): Promise<void>;
  /**
   * Which adapters gain anything (`gainsAnything`): on held-out seeds of their own environments, or on the target's tasks, batch by batch, each
   * against what it started from.
   */
  findGains(input: {
    adapters: { name: string; own: Batches; target: Batches[] }[];
    confidence: number;
    /** Of the draws. */
    seed: number;
  }): Promise<{ gaining: string[] }>;
  /** A piece of a JSON text, and what all its pieces are the text of. */
  keepPiece(input: { text: string }): Promise<ArtifactRef>;
  keepResult(input: { pieces: ArtifactRef[] }): Promise<ArtifactRef>;
  /** The next few of a training's checkpoints, `total` in all. */
  readCheckpoints(input: {
    checkpoints: ArtifactRef;
    from: number;
  }): Promise<{ checkpoints: Checkpoint[]; total: number }>;
  /** Of an arm's result, among those within so many training rollouts; null if none is. */
  bestIteration(input: { result: ArtifactRef; rollouts: number }): Promise<Iteration | null>;
  writeReport(input: { record: ArtifactRef }): Promise<WrittenReport>;
}

export interface WrittenReport {
  report: ArtifactRef;
  html: ArtifactRef;
  /** Its first sentence. */
  verdict: string;
  /** Path of report.html. */
  file: string;
}

/** Steps that may ask a language model: they take as long as they need and heartbeat what is done. */
export interface AnalysisActivities {
  discover(
    input: Payer & {
      target: EnvironmentSpec;
      analyst: KindSpec;
      rule: SelectionRule;
      rollouts: ArtifactRef;
      seed: number;
    },
  ): Promise<{ ref: ArtifactRef; selects: 'by labels' | 'outright' }>;
  label(
    input: Payer & {
      target: EnvironmentSpec;
      analyst: KindSpec;
      rollouts: ArtifactRef;
      candidates: ArtifactRef;
      pass: number;
      seed: number;
    },
  ): Promise<ArtifactRef>;
  synthesize(
    input: Payer & {
      target: EnvironmentSpec;
      synthesizer: KindSpec;
      rollouts: ArtifactRef;
      candidate: Candidate;
      /** The other selected capabilities: no instance should need one of them. */
      others: Lacking[];
      round: number;
      /** The round before, which is revised; `attempts`: the rollouts that its last calibration judged. */
      previous?: RoundFeedback & { module: ArtifactRef; attempts?: ArtifactRef };
      seed: number;
    },
  ): Promise<ArtifactRef>;
}

export interface SearchPromptInput extends Payer {
  /** What the search is called, for people; names its folder. */
  name: string;
  environment: EnvironmentSpec;
  base: string;
  tasks: TaskSet;
  /** The most rollouts that it may make, each counted once whatever asks for it again. */
  rollouts: number;
  search: PromptSearch;
  /** The model that writes prompts, and the campaign file's field that names it. */
  reflection: { field: string; model: LanguageModelSpec };
  sampling: Sampling;
  /** Of rollouts. */
  seed: number;
  /** Of the search's own choices and of the replies. */
  searchSeed: number;
  maxSteps: number;
  concurrency: number;
  maxAttempts: number;
  heartbeatSeconds: number;
  stallSeconds: number;
}

export interface RolloutActivities {
  rollOut(input: RollOutInput): Promise<RolloutSummary>;
  /** On this queue because it makes rollouts and needs no GPU. Its checkpoints: the prompts that were the best so far, each once. */
  searchPrompt(input: SearchPromptInput): Promise<TrainingSummary>;
  /** `rollouts`: the base rollouts, of which the first few are made and looked at. */
  checkBase(input: { rollouts: RollOutInput; baseModelPath: string }): Promise<BaseCheck>;
  /** Whether the policy server takes adapters of this rank, times how many are added up. */
  checkAdapters(input: {
    base: string;
    baseModelPath: string;
    lora: Pick<Training['lora'], 'r' | 'targetModules'>;
    summed: number;
  }): Promise<void>;
  /** On this queue because a router may ask the policy. */
  fitRouter(input: {
    router: KindSpec;
    /** By capability: what a router may tell apart. */
    definitions?: Record<string, string>;
    seed: number;
    /** `base` first. */
    outcomes: { option: string; policy: FixedPolicy; rollouts: ArtifactRef }[];
  }): Promise<{ router: ArtifactRef }>;
}

export interface GpuActivities {
  /** All adapters as one, behind a gate that is trained on the successes of `outcomes`, the options' rollouts on the router's tasks. */
  weighAdapters(input: {
    base: string;
    baseModelPath: string;
    policies: FixedPolicy[];
    outcomes: ArtifactRef[];
    training: Pick<Training, 'threads' | 'dtype' | 'tokensPerForward'>;
    seed: number;
    gate: MoeGate;
  }): Promise<FixedPolicy>;
  train(input: TrainInput): Promise<TrainingSummary>;
  fineTune(input: FineTuneInput): Promise<TrainingSummary>;
}
