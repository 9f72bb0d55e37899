/** Typed activity proxies, and inputs that many activities share. */
import { ActivityCancellationType, type ActivityOptions, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ControlActivities, GpuActivities, RolloutActivities } from '../activities';
import type { RollOutInput, RolloutSettings, TaskSet } from '../activities/types';
import { batchOrder, longQueue, storeOfQueue, taskQueues } from '../domain/work';
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { Subset } from '../domain/results';
import type { FixedPolicy } from '../domain/rollout';

const MAX_RETRY_SECONDS = 300;
/** For steps that others wait for. Temporal's default is 3, and lower keys go first. */
const HIGH_PRIORITY = 2;

/**
 * An attempt may run for days: only missing heartbeats end it. Attempts have no limit: activities say which failures are final
 * (src/activities/errors.ts). `summary` names the step in Temporal's UI.
 */
function optionsOf({ name, workers }: Campaign, summary: string, first = false): ActivityOptions {
  const { heartbeatSeconds } = workers;
  return {
    startToCloseTimeout: '365 days',
    heartbeatTimeout: `${heartbeatSeconds} seconds`,
    // Work resumes after an outage as soon as after the loss of a worker.
    retry: { maximumInterval: `${Math.min(heartbeatSeconds, MAX_RETRY_SECONDS)} seconds` },
    priority: { fairnessKey: name, ...(first && { priorityKey: HIGH_PRIORITY }) },
    summary,
  };
}

/** The workflow waits until a cancelled learner has saved a checkpoint. */
const saving = { cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED };

function poolOf({ workers: { pool } }: Campaign): string {
  if (pool === undefined) throw new Error('a step of a pool came before `prepare`');
  return pool;
}

type LongControl = 'discover' | 'label' | 'synthesize';

export const control = (campaign: Campaign, summary: string) =>
  proxyActivities<Omit<ControlActivities, LongControl>>(optionsOf(campaign, summary));

/** Steps that call a language model for hours have a queue of their own. */
export const longControl = (campaign: Campaign, summary: string) =>
  proxyActivities<Pick<ControlActivities, LongControl>>({
    ...optionsOf(campaign, summary),
    taskQueue: longQueue(workflowInfo().taskQueue),
  });

/** Short steps that expensive ones wait for. */
export const policyChecks = (campaign: Campaign, summary: string) =>
  proxyActivities<Omit<RolloutActivities, 'rollOut' | 'searchPrompt'>>({
    ...optionsOf(campaign, summary, true),
    taskQueue: taskQueues.rollouts(poolOf(campaign)),
  });

export const promptSearch = (campaign: Campaign, summary: string) =>
  proxyActivities<Pick<RolloutActivities, 'searchPrompt'>>({
    ...{ ...optionsOf(campaign, summary), ...saving },
    taskQueue: longQueue(taskQueues.rollouts(poolOf(campaign))),
  });

export const gpu = (campaign: Campaign, summary: string) =>
  proxyActivities<GpuActivities>({
    ...{ ...optionsOf(campaign, summary), ...saving },
    taskQueue: taskQueues.gpu(poolOf(campaign)),
  });

/** Returns the id of the campaign's store, which workers of a pool check. */
export const ownStore = (): string => storeOfQueue(workflowInfo().taskQueue);

export const basePolicy = (base: string): FixedPolicy => ({ base, adapters: [] });

/** Seeds whose instances contain a test task's text are skipped. */
export const seedTasks = ({ target }: Campaign, range: { from: number; count: number }): TaskSet => ({
  kind: 'seeds',
  ...range,
  unlike: target,
});
export const planTasks = (plan: ArtifactRef, part: Subset): TaskSet => ({ kind: 'plan', plan, part });

export type Batch = Pick<RollOutInput, 'purpose' | 'title' | 'environment' | 'policy' | 'tasks' | 'attempts'> &
  Partial<RollOutInput>;

export const rolloutSettings = ({ name, budget, rollouts }: Campaign): RolloutSettings => ({
  campaign: name,
  budget,
  store: ownStore(),
  concurrency: rollouts.concurrency,
  maxAttempts: rollouts.maxAttempts,
});

/** Sampling and limits default to those of the evaluation. */
export const batchOf = (campaign: Campaign, batch: Batch): RollOutInput => ({
  sampling: campaign.evaluation.sampling,
  maxSteps: campaign.evaluation.maxSteps,
  seed: campaign.seed,
  maxBrokenShare: campaign.rollouts.maxBrokenShare,
  ...rolloutSettings(campaign),
  ...batch,
});

export function rollOut(campaign: Campaign, batch: Batch) {
  const { long, first } = batchOrder[batch.purpose];
  const queue = taskQueues.rollouts(poolOf(campaign));
  const steps = proxyActivities<Pick<RolloutActivities, 'rollOut'>>({
    ...optionsOf(campaign, batch.title, first),
    taskQueue: long ? longQueue(queue) : queue,
  });
  return steps.rollOut(batchOf(campaign, batch));
}

/** Temporal refuses more than 2,000 open steps of a workflow, and no pool takes so many. */
const MAX_OPEN_STEPS = 200;

/** Returns the results in the order of the items. Starts no further item after a failure. */
export async function mapBounded<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const left = [...items.entries()];
  const run = async (): Promise<void> => {
    for (let next = left.shift(); next; next = left.shift()) {
      const [n, item] = next;
      results[n] = await work(item).catch((error: unknown) => {
        left.length = 0;
        throw error;
      });
    }
  };
  await Promise.all(Array.from({ length: Math.min(MAX_OPEN_STEPS, items.length) }, run));
  return results;
}
