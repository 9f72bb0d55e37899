/**
 * Figures of the method's authors, for comparison. Invariant: nothing here was measured by this project; whatever shows a number from
 * here says so and names the source.
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

/** Percent as a fraction, without the round-off of a division. */
const fraction = (percent: number): number => Number((percent / 100).toFixed(4));

const tau2 = (arm: string, airline: number, retail: number, overall: number): PublishedArm => ({
  arm,
  cells: [
    { group: 'airline', tasks: 50, successRate: fraction(airline) },
    { group: 'retail', tasks: 114, successRate: fraction(retail) },
    { group: OVERALL, tasks: 164, successRate: fraction(overall) },
  ],
});

const toolsandbox = (arm: string, perfect: number, meanReward: number): PublishedArm => ({
  arm,
  cells: [{ group: OVERALL, tasks: 129, successRate: perfect / 129, solved: perfect, meanReward }],
});

/** By the name of the target environment. */
const publishedArms: Readonly<Record<string, PublishedArm[]>> = {
  'tau2-bench': [
    tau2('base', 24.0, 36.8, 32.9),
    tau2('ADP', 28.0, 34.2, 32.3),
    tau2('grpo_target', 32.0, 40.4, 37.8),
    tau2('AWM', 32.0, 41.2, 38.4),
    tau2('GEPA', 38.0, 40.4, 39.6),
    tau2('one capability', 34.0, 43.0, 40.3),
    tau2('trace', 44.0, 48.2, 47.0),
    tau2('union_ceiling', (100 * 29) / 50, (100 * 71) / 114, (100 * 100) / 164),
  ],
  toolsandbox: [
    toolsandbox('base', 19, 0.411),
    toolsandbox('ADP', 19, 0.422),
    toolsandbox('grpo_target', 22, 0.519),
    toolsandbox('AWM', 20, 0.504),
    toolsandbox('GEPA', 22, 0.52),
    toolsandbox('one capability', 22, 0.514),
    toolsandbox('trace', 26, 0.552),
  ],
};

/** What is published on a target, if anything is. */
export function publishedFor(target: string): { source: string; setUp: string; arms: PublishedArm[] } | undefined {
  const { source, setUp } = publishedRun;
  const arms = publishedArms[target];
  return arms && { source, setUp, arms };
}
