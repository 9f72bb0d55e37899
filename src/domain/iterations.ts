/** What a training came to, and which of its iterations is the best. Invariant: held-out figures alone choose, every branch alike. */
import { z } from 'zod';
import { artifactRefSchema, type ArtifactRef } from './artifacts';
import { fixedPolicySchema, type FixedPolicy } from './rollout';
import type { RolloutSummary } from './rollout-summary';
import { comparable, mean, meanShare } from './statistics';

const count = z.number().int().nonnegative();
const checkpointSchema = z.object({
  step: count,
  policy: fixedPolicySchema,
  /** What had been spent by then, where it is not the same for every step: of a search. */
  rollouts: count.optional(),
});
export type Checkpoint = z.infer<typeof checkpointSchema>;
export const checkpointsSchema = z.array(checkpointSchema);

export const trainingResultSchema = z.object({
  steps: count,
  rollouts: count,
  brokenRollouts: count,
  promptTokens: count,
  completionTokens: count,
  /** Of these, what the campaign's base rollouts are: a search plays the base model as it is on the same tasks, and finds them. */
  shared: z.object({ rollouts: count, promptTokens: count, completionTokens: count }).optional(),
  /** metrics.jsonl: one line per optimizer step; its provenance names the batches trained on. */
  metrics: artifactRefSchema,
  checkpoints: checkpointsSchema,
});
export type TrainingResult = z.infer<typeof trainingResultSchema>;

/** As steps hand it on: there may be hundreds of checkpoints. */
export type TrainingSummary = Omit<TrainingResult, 'checkpoints'> & { checkpoints: ArtifactRef };

/** A policy on the way of a training, or of whatever else an arm does. */
export interface Iteration {
  step: number;
  /** Training rollouts spent until here. */
  rollouts: number;
  policy: FixedPolicy;
  heldOut: RolloutSummary;
}

/**
 * The iterations that count at so many training rollouts, by rollouts. Where trace spent none there is nothing to be equal to, and all count:
 * the report shows what each has spent.
 */
export const withinBudget = (iterations: readonly Iteration[], spent: number): Iteration[] =>
  iterations.filter(({ rollouts }) => spent === 0 || rollouts <= spent).sort((a, b) => a.rollouts - b.rollouts);

/** What picks the best of several iterations. */
export const BEST_BY =
  'held-out success, then held-out mean reward (where instances have branches, the mean over these), then fewest rollouts';
/** Of iterations by rollouts: the first of equals is the one with the fewest. */
export function bestIteration(iterations: readonly Iteration[]): Iteration | undefined {
  const better = (a: Iteration, b: Iteration): boolean => {
    const [of, than] = [overBranches(a.heldOut), overBranches(b.heldOut)];
    return of.successRate !== than.successRate ? of.successRate > than.successRate : of.meanReward > than.meanReward;
  };
  const [first, ...others] = iterations;
  return first && others.reduce((best, next) => (better(next, best) ? next : best), first);
}

/** Every branch counts the same, however many of its instances were drawn: gains on one can't hide what another lost. */
function overBranches({ branches, ...all }: RolloutSummary): { meanReward: number; successRate: number } {
  const each = branches ? Object.values(branches) : [all];
  return {
    meanReward: comparable(mean(each.map(({ meanReward }) => meanReward))),
    successRate: meanShare(
      each.map(({ scored, successRate }) => ({ part: Math.round(scored * successRate), of: Math.max(1, scored) })),
    ),
  };
}
