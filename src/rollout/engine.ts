/**
 * The rollout engine: makes every rollout there is. Invariants: a rollout that was scored is never made again (batches are found
 * by key, unfinished ones go on from their journal); a broken rollout has no reward and is tried again by the next run.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ArtifactStore, Journal } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { Environment } from '../domain/environment';
import { isFailure, OutsideFailure } from '../domain/failures';
import type { Purpose } from '../domain/purposes';
import type { RolloutSummary } from '../domain/results';
import type { BrokenRollout, Policy, Rollout, Sampling, ScoredRollout } from '../domain/rollout';
import type { PolicyClient } from '../policy/client';
import { readBatch, storeBatch, type StoredBatch } from './batch';
import { planBatch, type BatchPlan, type PlannedRollout } from './keys';
import { play, type PlayOptions } from './play';
import { forEachBounded } from './pool';
import type { Resolve } from './resolve';
import { summarise } from './summary';

export interface RollOutOptions {
  /** Stays open. */
  environment: Environment;
  policy: Policy;
  /** Needed for a routed policy. */
  resolve?: Resolve;
  tasks: string[];
  /** Attempts at each task: the group size. */
  attempts: number;
  sampling: Sampling;
  seed: number;
  /** A lower limit than the environment's own. */
  maxSteps?: number;
  /** Rollouts at once. */
  concurrency: number;
  /** What the batch is for: no part of its key. */
  purpose: Purpose;
  /** What the batch is, for people: no part of its key. */
  title: string;
  /** How often a rollout is begun before it counts as broken. */
  maxAttempts: number;
  store: ArtifactStore;
  client: Pick<PolicyClient, 'sample' | 'reachable'>;
  /** What the batch derives from besides the policy's adapters or its router. */
  inputs?: ArtifactRef[];
  /** After every rollout that is durable or broken. */
  onProgress?: (progress: RollOutProgress) => void;
  signal?: AbortSignal;
}

export interface RollOutProgress {
  done: number;
  total: number;
  broken: number;
}

export interface RolloutBatch {
  summary: RolloutSummary;
  /** What the artifact `summary.ref` holds. */
  records: Rollout[];
  /** Rollouts that were there already. */
  reused: number;
}

/** As long as nothing is scored, this many broken rollouts say that the rest would break too. */
const HOPELESS = 16;
const RETRY_DELAY_MS = 250;

/** Makes a batch of rollouts, or finds it. Throws an OutsideFailure if the batch can't go on. */
export async function rollOut(options: RollOutOptions): Promise<RolloutBatch> {
  const started = performance.now();
  checkOptions(options);
  const { environment, store, purpose, title } = options;
  const plan = planBatch({ ...options, environment: await environment.describe() });
  const finished = await store.find(plan.key);
  const { ref, records, reused } = finished
    ? { ...(await readBatch({ store, ref: finished })), reused: plan.rollouts.length }
    : await makeBatch(options, plan);
  const seconds = (performance.now() - started) / 1000;
  return { summary: { ref, purpose, title, ...summarise(records), seconds }, records, reused };
}

function checkOptions({ tasks, attempts, concurrency, maxAttempts }: RollOutOptions): void {
  const problem = (text: string) => new OutsideFailure('BadInput', `rollouts: ${text}`);
  if (tasks.length === 0) throw problem('tasks is empty; name at least one task');
  const twice = tasks.find((task, n) => tasks.indexOf(task) !== n);
  if (twice !== undefined) throw problem(`tasks holds ${twice} twice; name it once and raise attempts`);
  for (const [name, value] of Object.entries({ attempts, concurrency, maxAttempts })) {
    if (!Number.isInteger(value) || value < 1) throw problem(`${name} is ${value}; give a whole number of 1 or more`);
  }
}

async function makeBatch(options: RollOutOptions, plan: BatchPlan): Promise<StoredBatch & { reused: number }> {
  const journal = await options.store.journal(plan.key);
  try {
    const reused = plan.rollouts.filter(({ key }) => journal.records().has(key)).length;
    const broken = await makeMissing(options, plan, journal);
    return { ...(await storeBatch({ ...options, plan, journal, broken })), reused };
  } finally {
    await journal.close();
  }
}

/** Makes what the journal lacks; returns the rollouts that stayed broken. */
async function makeMissing(
  options: RollOutOptions,
  plan: BatchPlan,
  journal: Journal,
): Promise<Map<string, BrokenRollout>> {
  const { concurrency, signal, onProgress } = options;
  const total = plan.rollouts.length;
  const broken = new Map<string, BrokenRollout>();
  const report = () => onProgress?.({ done: journal.records().size + broken.size, total, broken: broken.size });
  const appends: Promise<void>[] = [];
  const flushing = new AbortController();
  if (journal.records().size > 0) report();

  await forEachBounded({
    items: plan.rollouts.filter(({ key }) => !journal.records().has(key)),
    concurrency,
    signal: signal ? AbortSignal.any([signal, flushing.signal]) : flushing.signal,
    work: async (planned, stopped) => {
      const rollout = await makeOne(planned, { ...options, signal: stopped });
      if (rollout.status === 'scored') {
        // Not waited for here: the slot goes on while the record is flushed. If it can't be, the rest would be lost as well.
        const done = journal.append(planned.key, rollout).then(report);
        done.catch((error: unknown) => flushing.abort(error));
        appends.push(done);
        return;
      }
      broken.set(planned.key, rollout);
      report();
      if (appends.length === 0 && journal.records().size === 0 && broken.size >= Math.min(HOPELESS, total)) {
        throw hopeless(rollout, broken.size);
      }
    },
  });
  await Promise.all(appends);
  return broken;
}

/** Plays one rollout, beginning afresh after failures that may pass. */
async function makeOne(
  planned: PlannedRollout,
  options: PlayOptions & Pick<RollOutOptions, 'maxAttempts' | 'client'>,
): Promise<ScoredRollout | BrokenRollout> {
  const { maxAttempts, client, signal } = options;
  for (let attempt = 1; ; attempt++) {
    try {
      return await play(planned, options);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof OutsideFailure)) throw error;
      // What is gone would break all the rest one by one: the batch stops, and whoever asked for it tries again later.
      if (isFailure(error, 'PolicyServerUnavailable') && !(await client.reachable())) throw error;
      const last = !error.retryable || attempt >= maxAttempts;
      if (last && isFailure(error, 'PartnerUnavailable')) throw error;
      if (last) return brokenRollout(planned, error);
      await sleep(RETRY_DELAY_MS * attempt, undefined, { signal });
    }
  }
}

const brokenRollout = ({ key, task, attempt }: PlannedRollout, { type, message }: OutsideFailure): BrokenRollout => {
  return { status: 'broken', key, task, attempt, error: { type, message } };
};

function hopeless({ error }: BrokenRollout, count: number): OutsideFailure {
  return new OutsideFailure(
    error.type as OutsideFailure['type'],
    `none of the first ${count} rollouts was scored: ${error.message}`,
  );
}
