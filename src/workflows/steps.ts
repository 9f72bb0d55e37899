/** Typed activity proxies with queue, timeouts, retries and priority, and the inputs that many activities share. */
import { ActivityCancellationType, type ActivityOptions, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { ControlActivities, GpuActivities, RolloutActivities } from '../activities';
import type { RollOutInput, RolloutSettings, TaskSet } from '../activities/types';
import { batchOrder, longQueue, storeOfQueue, taskQueues } from '../domain/work';
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { Subset } from '../domain/results';
import { escapeMarkdown } from '../domain/plain-text';
import type { FixedPolicy } from '../domain/rollout';

const MAX_RETRY_SECONDS = 300;
/** Priority key of steps that others wait for; Temporal's default is 3, and lower keys go first. */
const HIGH_PRIORITY = 2;

/**
 * An attempt may run for days: only missing heartbeats end it. Attempts have no limit: activities say which failures are final, and wait for
 * unavailable services without end (src/activities/errors.ts). `summary` names the step in Temporal's UI.
 */
function optionsOf({ name, workers }: Campaign, summary: string, first = false): ActivityOptions {
  const { heartbeatSeconds } = workers;
  return {
    startToCloseTimeout: '365 days',
    heartbeatTimeout: `${heartbeatSeconds} seconds`,
    // Work resumes after an outage as soon as after the loss of a worker.
    retry: { maximumInterval: `${Math.min(heartbeatSeconds, MAX_RETRY_SECONDS)} seconds` },
    priority: { fairnessKey: name, ...(first && { priorityKey: HIGH_PRIORITY }) },
    summary: escapeMarkdown(summary),
  };
}

/** The workflow waits until a cancelled learner has saved a checkpoint. */
const saving = { cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED };

/** Returns the pool, which `prepare` determines for a campaign that names none. */
function poolOf({ workers: { pool } }: Campaign): string {
  if (pool === undefined) throw new Error('a step of a pool came before `prepare`');
  return pool;
}

type LongControl = 'discover' | 'label' | 'synthesize';

export const control = (campaign: Campaign, summary: string) =>
  proxyActivities<Omit<ControlActivities, LongControl>>(optionsOf(campaign, summary));

/** Steps that call a language model for hours run on a queue of their own. */
export const longControl = (campaign: Campaign, summary: string) =>
  proxyActivities<Pick<ControlActivities, LongControl>>({
    ...optionsOf(campaign, summary),
    taskQueue: longQueue(workflowInfo().taskQueue),
  });

/** Steps of a few minutes that expensive steps wait for have priority. */
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

/** Returns the id of the campaign's store; workers of a pool check that they have this store. */
export const ownStore = (): string => storeOfQueue(workflowInfo().taskQueue);

export const basePolicy = (base: string): FixedPolicy => ({ base, adapters: [] });
/** Returns the seeds of a synthesized environment; those whose instances contain a test task's text are skipped. */
export const seeds = ({ target }: Campaign, range: { from: number; count: number }): TaskSet => ({
  kind: 'seeds',
  ...range,
  unlike: target,
});
export const part = (plan: ArtifactRef, name: Subset): TaskSet => ({ kind: 'plan', plan, part: name });

type Batch = Pick<RollOutInput, 'purpose' | 'title' | 'environment' | 'policy' | 'tasks' | 'attempts'> &
  Partial<RollOutInput>;

/** Settings that all steps which make rollouts or train share. */
export const rolloutSettings = ({ name, budget, rollouts }: Campaign): RolloutSettings => ({
  campaign: name,
  budget,
  store: ownStore(),
  concurrency: rollouts.concurrency,
  maxAttempts: rollouts.maxAttempts,
});

/** Returns the input of a batch, with the campaign's sampling and limits of evaluation unless others are given. */
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

/** Maximum number of steps that a stage schedules at once. Temporal refuses more than 2,000 open ones per workflow, and no pool takes so many. */
const MAX_OPEN_STEPS = 200;

/** Runs `work` on all items, and returns the results in the order of the items. Starts no further item after a failure. */
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
