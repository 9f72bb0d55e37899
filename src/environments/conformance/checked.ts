/** What the checks work on. Invariant: it is only what the environment itself has told so far. */
import type { Environment, EnvironmentDescription, Evaluation, Split } from '../../domain/environment';
import type { Findings } from './finding';

/** A task that episodes are played of. */
export interface Sample {
  task: string;
  split: Split;
  start: unknown;
  /** Of an episode in which nothing was done. */
  untouched?: Evaluation;
}

export interface Checked extends Findings {
  environment: Environment;
  description: EnvironmentDescription;
  /** Of both splits in turn. */
  samples: Sample[];
  lists: Record<Split, unknown>;
  /** True once a simulated user has spoken: a stand-in, with which no task can be solved. */
  isUserPlayed: () => boolean;
  /** False once a check has taken long: it ends with the samples that it has seen. */
  hasTime: () => boolean;
}

/** Of one check that goes through samples: a slow environment is told what there is to tell before anybody gives up. */
export const BUDGET_MS = 8_000;

/** Played of each split. More find more of what only some tasks have; these take a second with an honest environment. */
export const SAMPLES = 4;
