/**
 * The rollout engine makes all rollouts. A scored rollout is never made again: a batch is found by its key, takes the rollouts that stored batches of its
 * setting hold, and continues from its chunks. A broken rollout has no reward and is tried again by the next run.
 */
import type { ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { createTurns } from '../domain/concurrency';
import type { ToolSchema } from '../domain/messages';
import { summarise } from '../domain/outcomes';
import type { Rollout, RolloutSummary } from '../domain/rollout';
import { makeMissing, type MakeOptions, type RollOutProgress } from './attempts';
import {
  type BatchOptions,
  type BatchPlan,
  findBatch,
  planBatch,
  storeBatch,
  type StoredBatch,
  storeTools,
  takeStored,
} from './batch';
import { Chunks } from './chunks';
import { lookAt } from './shown';

export interface RollOutOptions extends BatchOptions, MakeOptions {
  store: ArtifactStore;
  /** The artifacts that the batch derives from besides the policy's adapters or its router. */
  inputs?: ArtifactRef[];
}

/** Returns a listener of a batch's progress that calls `onMore` for rollouts beyond those of the first report, which earlier attempts made. */
export function countDurable(onMore: () => void): (progress: Pick<RollOutProgress, 'done' | 'broken'>) => void {
  let durable = Infinity;
  return ({ done, broken }) => {
    if (done - broken > durable) onMore();
    durable = done - broken;
  };
}

export interface RolloutBatch extends Pick<StoredBatch, 'outcomes' | 'records'> {
  summary: RolloutSummary;
  reused: number;
}

type Made = StoredBatch & Pick<RolloutBatch, 'reused'>;

/** Makes one batch of a setting at a time, so that two overlapping batches do not play the same rollout at once. */
const inTurn = createTurns();

/** Makes a batch of rollouts, or finds it. Throws an OutsideFailure if the batch stops. */
export async function rollOut(options: RollOutOptions): Promise<RolloutBatch> {
  const started = performance.now();
  const { environment, purpose, title, store, step, signal } = options;
  const described = await environment.describe();
  const plan = planBatch({ ...options, environment: described, shown: await lookAt(options) });
  const make = () => inTurn(plan.setting, () => makeBatch(options, plan, described.tools), signal);
  // No other batch has the rollouts of a training step.
  const found = step === undefined ? await findWhole(store, plan) : undefined;
  const { ref, outcomes, records, reused } = found ?? (await make());
  const seconds = (performance.now() - started) / 1000;
  const taken = reused > 0 ? { reused } : {};
  return { summary: { ref, purpose, title, ...summarise(outcomes), ...taken, seconds }, outcomes, records, reused };
}

async function findWhole(store: ArtifactStore, plan: BatchPlan): Promise<Made | undefined> {
  const found = await findBatch(store, plan);
  return found && { ...found, reused: plan.rollouts.length };
}

async function makeBatch(options: RollOutOptions, plan: BatchPlan, tools: ToolSchema[]): Promise<Made> {
  const { store, title, policy, inputs = [] } = options;
  const chunks = new Chunks(store, plan.chunks);
  const [written, found, taken] = await Promise.all([chunks.read(), findWhole(store, plan), takeStored(store, plan)]);
  if (found) return found;
  const isNew = new Set(plan.rollouts.flatMap((planned) => (planned.isNew ? [planned.key] : [])));
  const held = new Map([...[...written].filter(([key]) => !isNew.has(key)), ...taken.rollouts]);
  const reused = held.size;
  const broken = await makeMissing({ options, plan, chunks, held }).finally(() => chunks.close());
  const records = plan.rollouts.map(({ key }): Rollout => (held.get(key) ?? broken.get(key))!);
  const from = [...inputs, ...taken.from, ...(await storeTools(store, tools))];
  const stored = { store, title, policy, inputs: from, plan, records };
  return { ...(await storeBatch({ ...stored, isComplete: broken.size + isNew.size === 0 })), reused };
}
