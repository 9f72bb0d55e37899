/**
 * Figures of the method's authors, for comparison; those on a benchmark stand with its kind of environment. Invariant: none of them was
 * measured by this project; whatever shows one says so and names the source.
 */

export const publishedRun = {
  source: 'arXiv 2604.05336',
  setUp: 'base Qwen3-30B-A3B-Instruct-2507, the same model as simulated user, temperature 0, at most 50 steps',
  capabilities: 4,
  trainingRollouts: 5120,
  hoursPerAdapter: [2, 4],
  gpus: [4, 8],
  gpu: 'A100-80GB',
} as const;

/** Of all tasks. */
export const OVERALL = 'overall';

/** Of one group of tasks. */
export interface PublishedCell {
  group: string;
  tasks: number;
  /** Share of the tasks with reward >= 1. */
  successRate: number;
  /** The number of those tasks, where the source gives that. */
  solved?: number;
  meanReward?: number;
}

export interface PublishedArm {
  arm: string;
  cells: PublishedCell[];
}
