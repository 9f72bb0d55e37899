/** The activities as workflow steps: queue, timeouts, retries and priority of each, and the inputs that many of them share. */
import { ActivityCancellationType, type ActivityOptions, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ControlActivities, GpuActivities, RolloutActivities } from '../activities';
import type { Making, Payer, PoolInput, RollOutInput, Silence, TaskSet } from '../activities/types';
import { batchOrder, longQueue, storeOfQueue, taskQueues } from '../domain/work';
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { Subset } from '../domain/results';
import { escapeMarkdown } from '../domain/plain-text';
import type { FixedPolicy } from '../domain/rollout';

const MAX_RETRY_SECONDS = 300;
/** Temporal's default is 3. */
const FIRST = 2;

/**
 * An attempt may run for days: only missing heartbeats end it. Attempts have no limit: activities say which failures are final, and wait for
 * unavailable services without end (src/activities/failures.ts). `summary` names the step in Temporal's UI.
 */
function optionsOf({ name, workers }: Campaign, summary: string, first = false): ActivityOptions {
  const { heartbeatSeconds } = workers;
  return {
    startToCloseTimeout: '365 days',
    heartbeatTimeout: `${heartbeatSeconds} seconds`,
    // After an outage work resumes as soon as after the loss of a worker.
    retry: { maximumInterval: `${Math.min(heartbeatSeconds, MAX_RETRY_SECONDS)} seconds` },
    priority: { fairnessKey: name, ...(first && { priorityKey: FIRST }) },
    summary: escapeMarkdown(summary),
  };
}

/** A cancelled learner saves a checkpoint before the workflow goes on. */
const saving = { cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED };

/** `prepare` finds the pool of a campaign that names none. */
function poolOf({ workers: { pool } }: Campaign): string {
  if (pool === undefined) throw new Error('a step of a pool came before `prepare`');
  return pool;
}

type LongControl = 'discover' | 'label' | 'synthesize';

export const control = (campaign: Campaign, summary: string) =>
  proxyActivities<Omit<ControlActivities, LongControl>>(optionsOf(campaign, summary));

/** Steps that ask a language model for hours. */
export const longControl = (campaign: Campaign, summary: string) =>
  proxyActivities<Pick<ControlActivities, LongControl>>({
    ...optionsOf(campaign, summary),
    taskQueue: longQueue(workflowInfo().taskQueue),
  });

/** Steps of minutes that expensive steps wait for. */
export const policyChecks = (campaign: Campaign, summary: string) =>
  proxyActivities<Pick<RolloutActivities, 'checkBase' | 'checkAdapters' | 'fitRouter'>>({
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

/** The id of the store that holds the campaign's artifacts: workers of a pool check that they have it. */
export const ownStore = (): string => storeOfQueue(workflowInfo().taskQueue);

export const basePolicy = (base: string): FixedPolicy => ({ base, adapters: [] });
/** Seeds of a synthesized environment, without those that say a test task's text. */
export const seeds = ({ target }: Campaign, range: { from: number; count: number }): TaskSet => ({
  kind: 'seeds',
  ...range,
  unlike: target,
});
export const part = (plan: ArtifactRef, name: Subset): TaskSet => ({ kind: 'plan', plan, part: name });

type Batch = Pick<RollOutInput, 'purpose' | 'title' | 'environment' | 'policy' | 'tasks' | 'attempts'> &
  Partial<RollOutInput>;

/** How rollouts are made, and who pays for them. */
export const makingOf = ({ name, budget, rollouts }: Campaign): Payer & Making & PoolInput => ({
  campaign: name,
  budget,
  store: ownStore(),
  concurrency: rollouts.concurrency,
  maxAttempts: rollouts.maxAttempts,
  maxBrokenShare: rollouts.maxBrokenShare,
});

export const silenceOf = ({ workers: { stallSeconds } }: Campaign): Silence => ({ stallSeconds });

/** A batch of rollouts; what is not given comes from the campaign. Greedy batches use the evaluation's sampling and step limit. */
export const batchOf = (campaign: Campaign, batch: Batch): RollOutInput => ({
  sampling: campaign.evaluation.sampling,
  maxSteps: campaign.evaluation.maxSteps,
  seed: campaign.seed,
  ...makingOf(campaign),
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

/** Most steps of one stage that are scheduled at once. Temporal refuses more than 2,000 open ones per workflow, and no pool takes so many. */
const MOST_AT_ONCE = 200;

/** Runs `work` on all items, in their order; returns the results. After a failure no more is begun. */
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
  await Promise.all(Array.from({ length: Math.min(MOST_AT_ONCE, items.length) }, run));
  return results;
}
