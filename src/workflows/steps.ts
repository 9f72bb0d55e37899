/** The activities as workflow steps: all timeouts, retries and heartbeats of the campaign, each with its reason. */
import { ActivityCancellationType, type ActivityOptions, proxyActivities, workflowInfo } from '@temporalio/workflow';
import type {
  AnalysisActivities,
  ControlActivities,
  GpuActivities,
  RolloutActivities,
  RollOutInput,
  TaskSet,
} from '../activities/types';
import type { ArtifactRef } from '../domain/artifacts';
import type { Campaign } from '../domain/campaign';
import type { PlanPart } from '../domain/results';
import type { FixedPolicy } from '../domain/rollout';
import { BACKOFF, ROUND, taskQueues } from '../domain/work';
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

/** Every step tells of its progress: what is silent for so long was lost with its worker, and begins again on another. */
const heartbeat = (heartbeatSeconds: number) => ({ heartbeatTimeout: `${heartbeatSeconds} seconds`, retry }) as const;

/**
 * Preparation, discovery, labels, selection, synthesis, self-tests, reports: seconds over a small campaign's artifacts, hours where a
 * language model is asked about every trajectory or the base model is large, so the limit is only a backstop.
 */
export const controlOptions = (heartbeatSeconds: number): ActivityOptions => ({
  startToCloseTimeout: '24 hours',
  ...heartbeat(heartbeatSeconds),
});

/** A batch of rollouts runs for hours at full size and continues from its journal, so the limit is only a backstop. */
export const rolloutOptions = (heartbeatSeconds: number): ActivityOptions => ({
  startToCloseTimeout: '24 hours',
  ...heartbeat(heartbeatSeconds),
});

/**
 * Training waits in the gpu queue until a slot is free (no schedule-to-start limit). A cancelled trainer saves a checkpoint and hands
 * back, which the workflow waits for: pause frees the GPU without losing a step.
 */
export const trainOptions = (heartbeatSeconds: number): ActivityOptions => ({
  startToCloseTimeout: '72 hours',
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
  ...heartbeat(heartbeatSeconds),
});

type Steps<A> = { [Name in keyof A]: A[Name] extends (input: infer I) => infer R ? (input: I) => R : never };

/**
 * Each is tried until it has a result; `summary` is what Temporal's UI and messages call it. With every step goes the workflow's own queue, which
 * is that of its store: a worker with another store does not begin it.
 */
function steps<A extends object>(options: ActivityOptions & { summary: string }): Steps<A> {
  const proxies = proxyActivities(options);
  const get = (_: object, name: string) => (input: unknown) =>
    untilDone(options.summary, () => proxies[name]!(input, workflowInfo().taskQueue));
  return new Proxy({}, { get }) as Steps<A>;
}

/** `prepare` finds the pool of a campaign that names none. */
function queueOf(kind: 'rollouts' | 'gpu', { pool }: Campaign['workers']): { taskQueue: string } {
  if (pool === undefined) throw new Error('a step of a pool came before `prepare`');
  return { taskQueue: taskQueues[kind](pool) };
}

/** A part may be silent for so long as it says, and then it is that which ends the wait. */
const AFTER_SILENCE_SECONDS = 60;
const heartbeatWith = ({ heartbeatSeconds }: Campaign['workers'], silenceSeconds = 0): number =>
  silenceSeconds === 0 ? heartbeatSeconds : Math.max(heartbeatSeconds, silenceSeconds + AFTER_SILENCE_SECONDS);

export const control = ({ workers }: Campaign, summary: string) =>
  steps<ControlActivities>({ ...controlOptions(workers.heartbeatSeconds), summary });
export const analysis = ({ workers, parts }: Campaign, summary: string) =>
  steps<AnalysisActivities>({
    ...controlOptions(heartbeatWith(workers, parts?.maxSilenceSeconds.analysis)),
    summary,
  });
export const rollouts = ({ workers, parts }: Campaign, summary: string) => {
  const options = rolloutOptions(heartbeatWith(workers, parts?.maxSilenceSeconds.rollouts));
  return steps<RolloutActivities>({ ...options, ...queueOf('rollouts', workers), summary });
};
/** A search is told to stop as a training is, and waits for replies as an analyst does; but it holds no GPU. */
export const promptSearch = (
  { workers }: Campaign,
  { name, timeoutSeconds }: { name: string; timeoutSeconds: number },
) => {
  const silence = heartbeatWith(workers, timeoutSeconds);
  const summary = `search for a prompt: ${name}`;
  return steps<RolloutActivities>({ ...trainOptions(silence), ...queueOf('rollouts', workers), summary });
};
export const gpu = ({ workers }: Campaign, summary: string) =>
  steps<GpuActivities>({ ...trainOptions(workers.heartbeatSeconds), ...queueOf('gpu', workers), summary });

export const basePolicy = (base: string): FixedPolicy => ({ base, adapters: [] });
/** Seeds of a synthesized environment, without those that say a test task's text. */
export const seeds = ({ target }: Campaign, range: { from: number; count: number }): TaskSet => ({
  kind: 'seeds',
  ...range,
  unlike: target,
});
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
  campaign: campaign.name,
  budget: campaign.budget,
  ...batch,
});

export const rollOut = (campaign: Campaign, batch: Batch) =>
  rollouts(campaign, batch.title).rollOut(batchOf(campaign, batch));

/** As a payload each takes 120 KB at most, where every character is one of three bytes; mostly 35 KB. */
const PIECE = /.{1,30000}/gsu;

export async function keep(campaign: Campaign, what: string, result: object): Promise<ArtifactRef> {
  const { keepPiece, keepResult } = control(campaign, `keep ${what}`);
  const texts = JSON.stringify(result).match(PIECE) ?? [];
  return keepResult({ pieces: await Promise.all(texts.map((text) => keepPiece({ text }))) });
}
