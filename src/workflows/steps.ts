/** The activities as workflow steps: proxies with a summary for Temporal's UI. */
import { proxyActivities, type ActivityOptions } from '@temporalio/workflow';
import type { ControlActivities, GpuActivities, RollOutInput, RolloutActivities, TaskSet } from '../activities/types';
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { EnvironmentSpec } from '../domain/environment-spec';
import type { Policy } from '../domain/rollout';
import { controlOptions, rolloutOptions, trainOptions } from './activity-options';

const withSummary = (options: ActivityOptions, summary: string): ActivityOptions => ({ ...options, summary });

export const control = (summary: string) => proxyActivities<ControlActivities>(withSummary(controlOptions, summary));
export const gpu = (campaign: Campaign, summary: string) =>
  proxyActivities<GpuActivities>(withSummary(trainOptions(campaign.workers.heartbeatSeconds), summary));

export const basePolicy = (base: string): Policy => ({ base, adapters: [] });
export const adapterPolicy = (base: string, ref: ArtifactRef): Policy => ({ base, adapters: [{ ref, weight: 1 }] });
export const part = (plan: ArtifactRef, name: Extract<TaskSet, { kind: 'plan' }>['part']): TaskSet => ({
  kind: 'plan',
  plan,
  part: name,
});

/** One batch of rollouts; what is not given comes from the campaign. Greedy batches use the evaluation's sampling and step limit. */
export function rollOut(
  campaign: Campaign,
  input: Pick<RollOutInput, 'purpose' | 'environment' | 'policy' | 'tasks' | 'attempts'> & Partial<RollOutInput>,
) {
  const options = withSummary(rolloutOptions(campaign.workers.heartbeatSeconds), input.purpose);
  return proxyActivities<RolloutActivities>(options).rollOut({
    sampling: campaign.evaluation.sampling,
    maxSteps: campaign.evaluation.maxSteps,
    seed: campaign.seed,
    concurrency: campaign.rollouts.concurrency,
    maxAttempts: campaign.rollouts.maxAttempts,
    ...input,
  });
}

export const sandbox = (module: ArtifactRef): EnvironmentSpec => ({ kind: 'sandbox', module });
