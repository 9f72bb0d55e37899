/** Inputs of activities that workflows build, and what activities share. Workflows import types only. */
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign, Trainer, Training } from '../domain/campaign';
import type { PromptSearch } from '../domain/policies';
import type { EnvironmentSpec, Identity } from '../domain/kinds';
import type { Budget, LanguageModelSpec } from '../domain/endpoints';
import type { Policy, Purpose, Sampling } from '../domain/rollout';
import type { Subset } from '../domain/results';

/** Which tasks: a part of the campaign's plan, or seeds of a synthesized environment; of a mixture, as many of each. */
export type TaskSet = { kind: 'plan'; plan: ArtifactRef; part: Subset } | SeedSet;

interface SeedSet {
  /** Running campaigns of an older version say `mixed` for a mixture. */
  kind: 'seeds' | 'mixed';
  from: number;
  count: number;
  /** The target. Seeds whose instances contain the text of one of its test tasks are replaced by the next seeds. */
  unlike?: EnvironmentSpec;
}

/** The campaign and step that pay for language models. No part of any key. */
export interface Payer {
  campaign: string;
  budget: Budget;
}

export interface PoolInput {
  /** The id of the store that holds the campaign's artifacts. No part of any key. */
  store: string;
}

/** Settings of the campaign for all steps that make rollouts. No part of any key. */
export interface RolloutSettings extends PoolInput, Payer, Pick<Campaign['rollouts'], 'concurrency' | 'maxAttempts'> {}

export interface RollOutInput extends RolloutSettings, Pick<Campaign['rollouts'], 'maxBrokenShare'> {
  purpose: Purpose;
  title: string;
  environment: EnvironmentSpec;
  policy: Policy;
  tasks: TaskSet;
  attempts: number;
  sampling: Sampling;
  maxSteps: number;
  seed: number;
}

export interface LearnerInput extends RolloutSettings, Pick<Campaign['workers'], 'stallSeconds'> {
  /** The capability or arm, for display; names the learner's folder. */
  name: string;
  environment: EnvironmentSpec;
  base: string;
  tasks: TaskSet;
  seed: number;
  maxSteps: number;
}

export interface TrainInput extends LearnerInput {
  /** Identifies who asked for the training, as a part of its key. */
  maker: Identity;
  trainer: Trainer;
  training: Training;
  maxTokens: number;
  thinking?: Sampling['thinking'];
}

export interface WrittenReport {
  report: ArtifactRef;
  verdict: string;
  file: string;
}

export interface SearchPromptInput extends LearnerInput {
  /** Maximum number of rollouts; one that is asked for again counts once. */
  rollouts: number;
  search: PromptSearch;
  /** The model that writes prompts, and the campaign file's field that names it. */
  reflection: { field: string; model: LanguageModelSpec };
  sampling: Sampling;
  /** Seed of the search's own choices and of the replies; `seed` is that of the rollouts. */
  searchSeed: number;
}
