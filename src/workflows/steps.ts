/** The activities as workflow steps: all timeouts, retries and heartbeats of the campaign, each with its reason. */
import { ActivityCancellationType, type ActivityOptions, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type { Activities } from '../activities';
import type { Making, Payer, RollOutInput, Silence, TaskSet } from '../activities/types';
import { activities, type ActivityEntry, type ActivityName, batchOrder, longQueue, taskQueues } from '../domain/work';
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { Subset } from '../domain/results';
import { escapeMarkdown } from '../domain/plain-text';
import type { FixedPolicy } from '../domain/rollout';
import { BACKOFF, ROUND } from '../domain/failures';
import { untilDone } from './failures';

/**
 * What Temporal tries again by itself is what is outside (domain/failures.ts: activities say so of every failure): it comes back, and with back-off
 * the attempts take half an hour and no history. All that is left after them, and every other failure at once, is for the workflow (failures.ts),
 * which tells them apart: Temporal counts all attempts alike.
 */
const retry = {
  initialInterval: BACKOFF.firstMs,
  backoffCoefficient: BACKOFF.factor,
  maximumInterval: BACKOFF.longestMs,
  maximumAttempts: ROUND,
  nonRetryableErrorTypes: ['TemporalTimeout:Heartbeat', 'TemporalTimeout:StartToClose'],
};

/** Temporal's options by queue. Every step heartbeats, so that one that is silent was lost with its worker; other limits are backstops. */
const optionsOf: Record<keyof typeof taskQueues, ActivityOptions> = {
  /**
   * Seconds over a small campaign's artifacts; hours where a language model is asked about every trajectory or the base model is large.
   */
  control: { startToCloseTimeout: '24 hours' },
  /** A batch runs for hours at full size, and continues from its chunks. */
  rollouts: { startToCloseTimeout: '24 hours' },
  /** Waits in the queue until a slot is free: there is no schedule-to-start limit. */
  gpu: { startToCloseTimeout: '72 hours', cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED },
};

/** A cancelled learner saves a checkpoint and hands back, which the workflow waits for: no step is lost. So does a search, which holds no GPU. */
const isLearner = (name: ActivityName): boolean => activities[name].queue === 'gpu' || name === 'searchPrompt';

/** `prepare` finds the pool of a campaign that names none. */
function queueOf(queue: keyof typeof taskQueues, { pool }: Campaign['workers']): string {
  if (queue === 'control') return workflowInfo().taskQueue;
  if (pool === undefined) throw new Error('a step of a pool came before `prepare`');
  return taskQueues[queue](pool);
}

/** Temporal's default is 3. */
const FIRST = 2;

/** Where it waits for a worker, and its place there: behind those of higher priority campaigns take turns. */
function placeOf(name: ActivityName, input: unknown, campaign: Campaign): ActivityOptions {
  const entry: ActivityEntry = activities[name];
  const { long, first } = name === 'rollOut' ? batchOrder[(input as RollOutInput).purpose] : entry;
  const own = queueOf(entry.queue, campaign.workers);
  return {
    taskQueue: long ? longQueue(own) : own,
    priority: { fairnessKey: campaign.name, ...(first && { priorityKey: FIRST }) },
  };
}

type Steps = { [Name in ActivityName]: (input: Parameters<Activities[Name]>[0]) => ReturnType<Activities[Name]> };

/**
 * The activities, each tried until it has a result; `summary` is what Temporal's UI and messages call the step. With every step goes the
 * workflow's own queue, which is that of its store: a worker with another store does not begin it.
 */
export function activity(campaign: Campaign, summary: string): Steps {
  const get = (_: object, key: string) => (input: unknown) => {
    const name = key as ActivityName;
    const proxies = proxyActivities({
      ...optionsOf[isLearner(name) ? 'gpu' : activities[name].queue],
      ...placeOf(name, input, campaign),
      heartbeatTimeout: `${campaign.workers.heartbeatSeconds} seconds`,
      retry,
      summary: escapeMarkdown(summary),
    });
    return untilDone(summary, () => proxies[name]!(input, workflowInfo().taskQueue));
  };
  return new Proxy({}, { get }) as Steps;
}

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
export const makingOf = ({ name, budget, rollouts }: Campaign): Payer & Making => ({
  campaign: name,
  budget,
  concurrency: rollouts.concurrency,
  maxAttempts: rollouts.maxAttempts,
  maxBrokenShare: rollouts.maxBrokenShare,
});

export const silenceOf = ({ workers: { heartbeatSeconds, stallSeconds } }: Campaign): Silence => ({
  heartbeatSeconds,
  stallSeconds,
});

/** A batch of rollouts; what is not given comes from the campaign. Greedy batches use the evaluation's sampling and step limit. */
export const batchOf = (campaign: Campaign, batch: Batch): RollOutInput => ({
  sampling: campaign.evaluation.sampling,
  maxSteps: campaign.evaluation.maxSteps,
  seed: campaign.seed,
  ...makingOf(campaign),
  ...batch,
});

export const rollOut = (campaign: Campaign, batch: Batch) =>
  activity(campaign, batch.title).rollOut(batchOf(campaign, batch));

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
