/**
 * The record of a training: its batches, and the policy of every checkpoint. Any attempt on any host continues from the last whole marker. A step whose
 * rollouts or adapter are lost or damaged is done again.
 */
import { hostname } from 'node:os';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { digest, sha256 } from '../store/hash';
import { readJson, type ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { isFailure, OutsideFailure } from '../domain/failures';
import { type Checkpoint, type TrainingResult, trainingResultSchema } from '../domain/results';
import type { FixedPolicy, RolloutSummary } from '../domain/rollout';
import type { Learned, RolloutsRequest } from './learner-process';
import { type BatchRecord, batchSchema, isSameState, type Marker, Markers, trainingPath } from './markers';
import { KEPT, manifestIn, metricsBetween, metricsIn, removeCheckpoints, StateStore } from './state';

interface LearnedAt {
  step: number;
  policy: Learned;
}

/** Files of a PEFT folder; a checkpoint also holds those of the optimizer. */
const ADAPTER_FILES = ['adapter_config.json', 'adapter_model.safetensors'] as const;

export interface TrainingRecordOptions {
  store: ArtifactStore;
  /** Markers and states live as long as the campaign. */
  campaign: string;
  name: string;
  id: string;
  folder: string;
  base: string;
  /** Checkpoints that count: every so many steps, and the last. Others serve resuming only. */
  checkpointEvery: number;
  /** Limit of requested rollouts, over all attempts; then the training ends with what it has. */
  maxRollouts?: number;
}

export class TrainingRecord {
  private readonly markers: Markers;
  private readonly states: StateStore;
  /** Batches of steps that no marker has yet, by step. */
  private readonly pending = new Map<number, BatchRecord>();
  private writing: Promise<void> = Promise.resolve();
  private last: LearnedAt | undefined;
  /** Rollouts that this attempt has requested, and their number after each step. */
  private requested = new Set<string>();
  private readonly spent = new Map<number, number>();

  constructor(private readonly training: TrainingRecordOptions) {
    const { store, campaign, id, folder } = training;
    const path = trainingPath(campaign, id);
    this.markers = new Markers(store, path);
    this.states = new StateStore(store, path, folder);
  }

  /** Puts the state from which the training continues into the learner's folder; returns its step. */
  async restore(): Promise<number> {
    await this.markers.read();
    return this.states.restore(await this.wholeMarkers());
  }

  /** The markers before the first step whose rollouts or adapter are lost: that step is done again. */
  private async wholeMarkers(): Promise<Marker[]> {
    const whole: Marker[] = [];
    for (const marker of this.markers.line) {
      const steps = new Set([...whole, marker].flatMap(({ batches }) => batches.map(({ step }) => step)));
      const hasBatches = stepsTo(marker.step).every((step) => steps.has(step - 1));
      if (!hasBatches || !(await areIntact(this.training.store, marker.policy?.adapters ?? []))) break;
      whole.push(marker);
    }
    return whole;
  }

  /**
   * Returns whether these rollouts may be made: all of them or none. Invariant: an attempt requests at most `maxRollouts` different rollouts, by
   * (task, attempt, policy). Every attempt requests the same ones in the same order, and finds those that were made.
   */
  permit({ step, tasks, group_size: groupSize, policy }: RolloutsRequest): boolean {
    const { maxRollouts } = this.training;
    if (maxRollouts === undefined) return true;
    const attempts = Array.from({ length: groupSize }, (_, attempt) => attempt);
    const keys = tasks.flatMap((task) => attempts.map((attempt) => digest([task, attempt, policy])));
    const requested = new Set([...this.requested, ...keys]);
    if (requested.size > maxRollouts) return false;
    this.requested = requested;
    this.spent.set(step + 1, requested.size);
    return true;
  }

  async policy({ step, policy }: LearnedAt): Promise<FixedPolicy> {
    const { base } = this.training;
    if ('base' in policy) return { base, adapters: [] };
    if ('prompt' in policy) return { base, adapters: [], prompt: policy.prompt };
    return { base, adapters: [{ ref: await this.keepAdapter(step, policy.adapter), weight: 1 }] };
  }

  /** Stores the learner's checkpoint while the next rollouts are played; `stored` waits for that. Throws the failure of the one before. */
  async addCheckpoint(learned: LearnedAt): Promise<void> {
    const { step } = learned;
    await this.stored();
    this.last = learned;
    if (step === 0) return;
    this.writing = this.mark(learned);
    this.writing.catch(() => undefined); // the next `stored` throws it
    await removeCheckpoints(this.training.folder, (old) => old <= step - KEPT);
  }

  /** Waits until any host finds the last checkpoint. Throws Superseded where another worker was first, with another state. */
  async stored(): Promise<void> {
    await this.writing;
  }

  async end(): Promise<void> {
    await this.states.removeAll();
  }

  /** Stores the learner's state and adds the marker that names it. Throws Superseded where another worker was first, with another state. */
  private async mark(learned: LearnedAt): Promise<void> {
    const { name, folder, checkpointEvery } = this.training;
    const { step } = learned;
    const before = this.markers.line.findLast((marker) => marker.step < step);
    const manifest = await manifestIn(folder, step);
    const marker: Marker = {
      id: randomUUID(),
      owner: `${process.pid}@${hostname()}`,
      name,
      step,
      ...(manifest !== undefined && { manifest }),
      files: [],
      metrics: await metricsBetween(folder, before?.step ?? 0, step),
      batches: [...this.pending.values()].filter((batch) => batch.step < step).sort((a, b) => a.step - b.step),
      ...(step % checkpointEvery === 0 && { policy: await this.policy(learned) }),
    };
    const there = this.markers.line.find((one) => one.step === step);
    // A resumed learner sends its checkpoint again, and one that starts from the beginning may make the same.
    const isSent = there && manifest !== undefined && there.manifest === manifest && marker.batches.length === 0;
    if (!there || !(isSent || isSameState(there, marker))) await this.add(marker);
    for (const batch of marker.batches) if (this.pending.get(batch.step) === batch) this.pending.delete(batch.step);
  }

  private async add(marker: Marker): Promise<void> {
    if (marker.manifest !== undefined) marker.files = await this.states.put(marker.id, marker.step);
    const old = this.markers.line.filter(({ step }) => step < marker.step).at(-KEPT);
    let winner: Marker | undefined;
    while (!winner) winner = await this.markers.add(marker);
    if (winner.id === marker.id) {
      if (old) await this.states.remove(old.id);
      return;
    }
    await this.states.remove(marker.id);
    const stored = `another worker (${winner.owner}) has stored another state of step ${winner.step}`;
    // The next attempt loads that state and continues from it.
    if (!isSameState(winner, marker)) throw new OutsideFailure('Superseded', stored);
  }

  /** `shared`: its rollouts are the campaign's base rollouts. */
  addBatch(step: number, summary: RolloutSummary, { shared = false } = {}): void {
    this.pending.set(step, batchSchema.parse({ ...summary, step, ...(shared && { shared }) }));
  }

  /** `steps` is where it ended: a learner may be done before its last step. */
  async result(steps: number): Promise<TrainingResult> {
    const { store, id, folder } = this.training;
    await this.stored();
    const batches = this.batches(steps);
    const lost = stepsTo(steps).find((step) => !batches.some((batch) => batch.step === step - 1));
    if (lost !== undefined) throw lostAt(lost, 'the batch');
    const checkpoints = await this.checkpoints(steps);
    const body = await metricsIn(folder);
    const metrics = await store.put({
      // A learner that ended early may continue in another attempt, and one that is trained again has other metrics.
      key: `training/${id}/metrics/${steps}/${sha256(body)}`,
      producer: 'train',
      inputs: batches.map((batch) => batch.ref),
      mediaType: 'application/jsonl',
      body,
    });
    const shared = batches.filter((batch) => batch.shared);
    return {
      steps,
      ...countIn(batches),
      brokenRollouts: batches.reduce((sum, { broken }) => sum + broken, 0),
      ...(shared.length > 0 && { shared: countIn(shared) }),
      metrics,
      checkpoints,
    };
  }

  /** The key holds the hash of the weights, which differ slightly if a training is resumed on another machine. */
  private async keepAdapter(step: number, folder: string): Promise<ArtifactRef> {
    const { store, id } = this.training;
    const weights = sha256(await readFile(join(folder, 'adapter_model.safetensors')));
    const key = `adapter/${id}/step-${step}/${weights}`;
    const inputs = this.batches(step).map((batch) => batch.ref);
    return store.putFolder({ key, folder, files: ADAPTER_FILES, producer: 'train', inputs });
  }

  private checkpoints(steps: number): Promise<Checkpoint[]> {
    const { checkpointEvery, maxRollouts } = this.training;
    const candidates = stepsTo(steps).filter((step) => step % checkpointEvery === 0 || step === steps);
    return Promise.all(
      candidates.map(async (step) => {
        const known = this.markers.line.find((marker) => marker.step === step)?.policy;
        const policy = known ?? (this.last?.step === step ? await this.policy(this.last) : undefined);
        if (!policy) throw lostAt(step, 'the adapter');
        // Rollouts that were found again count too.
        return { step, policy, ...(maxRollouts !== undefined && { rollouts: this.spent.get(step) ?? 0 }) };
      }),
    );
  }

  /** The batches that the policy at `step` was learned from, in the order of the steps. */
  private batches(step: number): BatchRecord[] {
    const known = new Map(this.markers.line.flatMap(({ batches }) => batches.map((batch) => [batch.step, batch])));
    for (const batch of this.pending.values()) known.set(batch.step, batch);
    return [...known.values()].filter((batch) => batch.step < step).sort((a, b) => a.step - b.step);
  }
}

function countIn(batches: readonly BatchRecord[]) {
  const sum = (count: (batch: BatchRecord) => number) => batches.reduce((total, batch) => total + count(batch), 0);
  return {
    rollouts: sum(({ scored }) => scored),
    promptTokens: sum(({ promptTokens }) => promptTokens),
    completionTokens: sum(({ completionTokens }) => completionTokens),
  };
}

const stepsTo = (steps: number): number[] => Array.from({ length: steps }, (_, n) => n + 1);

const lostAt = (step: number, what: string): OutsideFailure =>
  new OutsideFailure('TrainerDied', `${what} of step ${step} is lost; the step is done again`);

/** Returns whether all artifacts exist and match their hashes, so that the step that made one repairs the damage. */
async function areIntact(store: ArtifactStore, artifacts: readonly { ref: ArtifactRef }[]): Promise<boolean> {
  const checks = artifacts.map(async ({ ref }) => {
    const { key } = await store.provenance(ref);
    return (await store.find(key))?.sha256 === ref.sha256;
  });
  try {
    return (await Promise.all(checks)).every(Boolean);
  } catch (error) {
    if (isFailure(error, 'ArtifactDamaged')) return false;
    throw error;
  }
}

export const refsOf = ({ metrics, checkpoints }: TrainingResult): ArtifactRef[] => [
  metrics,
  ...checkpoints.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref)),
];

/** Finds the result under a key. If an artifact that it names is damaged, the key is removed and the training is done again. */
export async function findResult(store: ArtifactStore, key: string): Promise<TrainingResult | undefined> {
  const known = await store.find(key);
  if (!known) return undefined;
  const result = await readJson(store, known, trainingResultSchema);
  const refs = refsOf(result).map((ref) => ({ ref }));
  if (await areIntact(store, refs)) return result;
  await store.forget(key);
  return undefined;
}
