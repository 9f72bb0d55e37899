/** Outcomes are rollouts without their conversations. Only `scored` ones enter a rate; a task whose rollouts are all broken has none. */
import { z } from 'zod';
import type { ArtifactRef } from './artifacts';
import {
  causesIn,
  MAX_CAUSES,
  brokenRolloutSchema,
  choiceSchema,
  scoredRolloutSchema,
  isSuccess,
  type Group,
  type BranchSummary,
  type RolloutSummary,
} from './rollout';
import { countsOf, groupBy, type TaskMeans, mean } from './statistics';

const scoredOutcomeSchema = scoredRolloutSchema
  .pick({
    status: true,
    key: true,
    task: true,
    attempt: true,
    reward: true,
    branch: true,
    stopReason: true,
    usage: true,
  })
  .extend({ routed: choiceSchema.omit({ policy: true }).optional() });
type ScoredOutcome = z.infer<typeof scoredOutcomeSchema>;

const outcomeSchema = z.discriminatedUnion('status', [scoredOutcomeSchema, brokenRolloutSchema]);
export type Outcome = z.infer<typeof outcomeSchema>;

export const outcomesSchema = z.array(outcomeSchema);

const scoredIn = (outcomes: readonly Outcome[]): ScoredOutcome[] =>
  outcomes.filter((outcome): outcome is ScoredOutcome => outcome.status === 'scored');

/** Share of the rewards that are 1; 0 without rewards. */
export const successShare = (rewards: readonly number[]): number => successes(rewards) / Math.max(1, rewards.length);
export const successes = (rewards: readonly number[]): number =>
  rewards.filter((reward) => isSuccess({ reward })).length;

/** The success rate: the mean over tasks of `successShare`, 0 without a task. Batches, calibrations and reports count it so. */
export const successRateOf = (groups: readonly Group[]): number =>
  groups.length === 0 ? 0 : mean(groups.map(({ rewards }) => successShare(rewards)));

export function groupByTask(outcomes: readonly Outcome[]): Map<string, Group> {
  return new Map(
    [...groupBy(scoredIn(outcomes), ({ task }) => task)].map(([task, own]) => {
      const { branch } = own[0]!;
      return [task, { rewards: own.map(({ reward }) => reward), ...(branch !== undefined && { branch }) }];
    }),
  );
}

/** Means of success and reward by task, over scored rollouts. `trials`: the largest number of scored rollouts of a task. */
export function taskMeans(outcomes: readonly Outcome[], from: ArtifactRef): TaskMeans {
  const groups = [...groupByTask(outcomes)];
  const tasks = new Map(
    groups.map(([task, { rewards, ...branch }]) => [
      task,
      { success: successShare(rewards), trials: rewards.length, reward: mean(rewards), ...branch },
    ]),
  );
  return { tasks, trials: Math.max(0, ...groups.map(([, { rewards }]) => rewards.length)), from: [from] };
}

/** The figures of a batch. Without a scored rollout means are 0, and `scored` says so. */
export function summarise(
  outcomes: readonly Outcome[],
): Omit<RolloutSummary, 'ref' | 'purpose' | 'title' | 'reused' | 'seconds'> {
  const scored = scoredIn(outcomes);
  const causes = causesIn(outcomes).slice(0, MAX_CAUSES);
  const branches = [...new Set(scored.flatMap(({ branch }) => branch ?? []))].sort();
  const ofBranch = (name: string) => ratesOf(scored.filter(({ branch }) => branch === name));
  return {
    ...ratesOf(scored),
    broken: outcomes.length - scored.length,
    ...(branches.length > 0 && { branches: Object.fromEntries(branches.map((name) => [name, ofBranch(name)])) }),
    promptTokens: scored.reduce((sum, { usage }) => sum + usage.promptTokens, 0),
    completionTokens: scored.reduce((sum, { usage }) => sum + usage.completionTokens, 0),
    errors: Object.fromEntries(countsOf(outcomes.flatMap((one) => (one.status === 'broken' ? [one.error.type] : [])))),
    ...(causes.length > 0 && { causes }),
  };
}

function ratesOf(scored: readonly ScoredOutcome[]): BranchSummary {
  const groups = [...groupByTask(scored).values()];
  return {
    scored: scored.length,
    meanReward: groups.length === 0 ? 0 : mean(groups.map(({ rewards }) => mean(rewards))),
    successRate: successRateOf(groups),
  };
}
