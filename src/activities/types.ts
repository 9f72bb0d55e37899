/** Inputs of activities that workflows build, and what activities share. Workflows import types only. */
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign, Trainer, Training } from '../domain/campaign';
import type { PromptSearch } from '../domain/policies';
import type { EnvironmentSpec, Identity } from '../domain/kinds';
import type { Budget, LanguageModelSpec } from '../domain/endpoints';
import type { Policy, Purpose, Sampling } from '../domain/rollout';
import type { Subset } from '../domain/results';

/** Which tasks: a part of the campaign's plan, seeds of a synthesized environment, or seeds of several, as many of each. */
export type TaskSet =
  { kind: 'plan'; plan: ArtifactRef; part: Subset } | (SeedSet & { kind: 'seeds' }) | (SeedSet & { kind: 'mixed' });

interface SeedSet {
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

/** Of the campaign: how rollouts are made, whatever they are for. No part of any key. */
export type Making = Pick<Campaign['rollouts'], 'concurrency' | 'maxAttempts' | 'maxBrokenShare'>;

/** Of the campaign: how long a learner may make no progress. */
export type Silence = Pick<Campaign['workers'], 'stallSeconds'>;

/** Input of a step that workers of a pool take. */
export interface PoolInput {
  /** The id of the store that holds the campaign's artifacts. No part of any key. */
  store: string;
}

export interface RollOutInput extends PoolInput, Payer, Making {
  purpose: Purpose;
  /** What the batch is, for people: no part of its key. */
  title: string;
  environment: EnvironmentSpec;
  policy: Policy;
  tasks: TaskSet;
  /** Attempts at each task. */
  attempts: number;
  sampling: Sampling;
  maxSteps: number;
  seed: number;
}

export interface TrainInput extends PoolInput, Payer, Omit<Making, 'maxBrokenShare'>, Silence {
  /** What is trained, for people; names the trainer's folder. */
  name: string;
  /** What asked for it: part of the training's key. */
  maker: Identity;
  environment: EnvironmentSpec;
  base: string;
  tasks: TaskSet;
  /** Absent where the campaign was begun before it could be chosen. */
  trainer?: Trainer;
  training: Training;
  seed: number;
  maxTokens: number;
  thinking?: Sampling['thinking'];
  maxSteps: number;
}

export interface WrittenReport {
  report: ArtifactRef;
  html: ArtifactRef;
  /** Its first sentence. */
  verdict: string;
  /** Path of report.html. */
  file: string;
}

export interface SearchPromptInput extends PoolInput, Payer, Omit<Making, 'maxBrokenShare'>, Silence {
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
}
