/** The activities as workflow steps: proxies with a summary for Temporal's UI. */
import { proxyActivities, type ActivityOptions } from '@temporalio/workflow';
import type {
  AnalysisActivities,
  ControlActivities,
  GpuActivities,
  RollOutInput,
  RolloutActivities,
  TaskSet,
} from '../activities/types';
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { PlanPart } from '../domain/results';
import type { FixedPolicy } from '../domain/rollout';
import { controlOptions, rolloutOptions, searchOptions, trainOptions } from './activity-options';

const withSummary = (options: ActivityOptions, summary: string): ActivityOptions => ({ ...options, summary });

/** A language model or an environment may be silent for so long as it is given, and then it is that which ends the wait. */
const AFTER_TIMEOUT_SECONDS = 60;
const silenceOf = ({ workers, analyst, synthesizer }: Campaign): number => {
  return longest(workers, [analyst.timeoutSeconds, synthesizer.timeoutSeconds]);
};
/** The models that play the user and the judge are asked within rollouts. */
const silenceInRollouts = ({ workers, target }: Campaign): number => {
  const asked = ['user', 'judge'].map(
    (role) => (target[role] as { timeoutSeconds?: unknown } | undefined)?.timeoutSeconds,
  );
  return longest(workers, [...asked, target.silenceSeconds]);
};
const longest = ({ heartbeatSeconds }: Campaign['workers'], limits: readonly unknown[]): number =>
  Math.max(
    heartbeatSeconds,
    ...limits.flatMap((limit) => (typeof limit === 'number' ? [limit + AFTER_TIMEOUT_SECONDS] : [])),
  );

export const control = ({ workers }: Campaign, summary: string) =>
  proxyActivities<ControlActivities>(withSummary(controlOptions(workers.heartbeatSeconds), summary));
export const analysis = (campaign: Campaign, summary: string) =>
  proxyActivities<AnalysisActivities>(withSummary(controlOptions(silenceOf(campaign)), summary));
export const rollouts = (campaign: Campaign, summary: string) =>
  proxyActivities<RolloutActivities>(withSummary(rolloutOptions(silenceInRollouts(campaign)), summary));
/** A search is told to stop as a training is, and waits for replies as an analyst does. */
export const promptSearch = (
  { workers }: Campaign,
  { name, timeoutSeconds }: { name: string; timeoutSeconds: number },
) => {
  const silence = longest(workers, [timeoutSeconds]);
  return proxyActivities<RolloutActivities>(withSummary(searchOptions(silence), `search for a prompt: ${name}`));
};
export const gpu = ({ workers }: Campaign, summary: string) =>
  proxyActivities<GpuActivities>(withSummary(trainOptions(workers.heartbeatSeconds), summary));

export const basePolicy = (base: string): FixedPolicy => ({ base, adapters: [] });
/** Seeds of a synthesized environment, without those that say a test task's text. `easier`: share of the instances. */
export const seeds = (
  { target }: Campaign,
  { easier, ...range }: { from: number; count: number; easier?: number | undefined },
): TaskSet => ({ kind: 'seeds', ...range, unlike: target, ...(easier !== undefined && { easier }) });
export const part = (plan: ArtifactRef, name: PlanPart): TaskSet => ({ kind: 'plan', plan, part: name });

type Batch = Pick<RollOutInput, 'purpose' | 'title' | 'environment' | 'policy' | 'tasks' | 'attempts'> &
  Partial<RollOutInput>;

/** A batch of rollouts; what is not given comes from the campaign. Greedy batches use the evaluation's sampling and step limit. */
export const batchOf = (campaign: Campaign, batch: Batch): RollOutInput => ({
  sampling: campaign.evaluation.sampling,
  maxSteps: campaign.evaluation.maxSteps,
  seed: campaign.seed,
  concurrency: campaign.rollouts.concurrency,
  maxAttempts: campaign.rollouts.maxAttempts,
  maxBrokenShare: campaign.rollouts.maxBrokenShare,
  ...batch,
});

export const rollOut = (campaign: Campaign, batch: Batch) =>
  rollouts(campaign, batch.title).rollOut(batchOf(campaign, batch));
