/**
 * What one training has made so far: its batches, and the policy of every checkpoint. It is known again after any crash; where a step was done
 * again, the later one counts. A result lacks no step's rollouts, unless the training had none: a step of which something is lost or
 * damaged is done again, from the learner's last checkpoint before it.
 */
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ifThere } from '../artifacts/durable-file';
import { digest, sha256 } from '../artifacts/hash';
import { readJson, type ArtifactStore, type Journal } from '../artifacts/store';
import { type ArtifactRef, artifactRefSchema } from '../domain/artifacts';
import { isFailure, OutsideFailure } from '../domain/failures';
import { type Checkpoint, type TrainingResult, trainingResultSchema } from '../domain/results';
import { type FixedPolicy, fixedPolicySchema, type RolloutSummary } from '../domain/rollout';
import type { Learned, RolloutsRequest } from './learner-process';
import { metricsIn, metricsLine, removeCheckpoints, TrainingState } from './state';

interface LearnedAt {
  step: number;
  policy: Learned;
}

/** A PEFT folder's own files: beside them a checkpoint holds the optimizer's. */
const ADAPTER_FILES = ['adapter_config.json', 'adapter_model.safetensors'] as const;

const count = z.number().int().nonnegative();
const batchSchema = z.object({
  kind: z.literal('batch'),
  /** Steps finished before it. */
  step: count,
  ref: artifactRefSchema,
  scored: count,
  broken: count,
  promptTokens: count,
  completionTokens: count,
  /** Its rollouts are the campaign's base rollouts. */
  shared: z.literal(true).optional(),
  rewardByBranch: z.record(z.string(), z.number()).optional(),
});
type BatchRecord = z.infer<typeof batchSchema>;
const checkpointSchema = z.object({ kind: z.literal('checkpoint'), step: count, policy: fixedPolicySchema });

/** Of a permission in the journal. */
const PERMITTED = 'permitted/';

export interface TrainingRecordOptions {
  store: ArtifactStore;
  journal: Journal;
  /** Derived from everything that decides the result. */
  id: string;
  /** The learner's own folder. */
  folder: string;
  base: string;
  /** Checkpoints that count: every so many steps, and the last. One that an interruption saved is for resuming alone. */
  checkpointEvery: number;
  /** The most rollouts that it may ask for, over all attempts; beyond that it ends with what it has. */
  maxRollouts?: number;
}

export class TrainingRecord {
  /** What it goes on from. */
  readonly state: TrainingState;
  private last: LearnedAt | undefined;
  /** What this attempt has asked for, and how much that was after each step. */
  private readonly requested = new Set<string>();
  private readonly spent = new Map<number, number>();

  constructor(private readonly training: TrainingRecordOptions) {
    this.state = new TrainingState({ ...training, key: `training/${training.id}` });
  }

  /** Puts into the learner's folder what it goes on from. A step of which no rollouts are recorded is done again. */
  async restore(): Promise<void> {
    await this.state.restore();
    const { folder } = this.training;
    const recorded = this.latest(batchSchema);
    let whole = 0;
    while (recorded.has(whole)) whole += 1;
    await removeCheckpoints(folder, (step) => step > whole);
  }

  /**
   * Whether these rollouts may be made: all of them or none. Invariant: what was permitted in any attempt, by (task, attempt, policy), is at most
   * the limit; what was permitted once is permitted again. A permission is durable before it is given.
   */
  async permit({ step, tasks, group_size: groupSize, policy }: RolloutsRequest): Promise<boolean> {
    const { journal, maxRollouts } = this.training;
    if (maxRollouts === undefined) return true;
    const keys = tasks.flatMap((task) =>
      Array.from({ length: groupSize }, (_, attempt) => PERMITTED + digest([task, attempt, policy])),
    );
    const permitted = new Set([...journal.records().keys()].filter((key) => key.startsWith(PERMITTED)));
    const fresh = keys.filter((key) => !permitted.has(key));
    if (permitted.size + fresh.length > maxRollouts) return false;
    await Promise.all(fresh.map((key) => journal.append(key, { step })));
    for (const key of keys) this.requested.add(key);
    this.spent.set(step + 1, this.requested.size);
    return true;
  }

  /** What was learned, as a policy that can be served from the store. */
  async policy({ step, policy }: LearnedAt): Promise<FixedPolicy> {
    const { base } = this.training;
    if ('base' in policy) return { base, adapters: [] };
    if ('prompt' in policy) return { base, adapters: [], prompt: policy.prompt };
    return { base, adapters: [{ ref: await this.keepAdapter(step, policy.adapter), weight: 1 }] };
  }

  /** One that may not count is stored only if the learner turns out to end with it. */
  async addCheckpoint(learned: LearnedAt): Promise<void> {
    this.last = learned;
    if (learned.step % this.training.checkpointEvery === 0) await this.keepCheckpoint(learned);
    await this.state.add(learned.step);
  }

  /** `shared`: its rollouts are the campaign's base rollouts. */
  async addBatch(step: number, summary: RolloutSummary, { shared = false } = {}): Promise<void> {
    const { ref, scored, broken, promptTokens, completionTokens, branches = {} } = summary;
    const rewards = Object.entries(branches).map(([branch, { meanReward }]) => [branch, meanReward]);
    await this.append(batchSchema, {
      kind: 'batch',
      step,
      ref,
      scored,
      broken,
      promptTokens,
      completionTokens,
      ...(shared && { shared }),
      ...(rewards.length > 0 && { rewardByBranch: Object.fromEntries(rewards) }),
    });
  }

  /** `steps` is where it ended: a learner may be done before its last step. */
  async result(steps: number): Promise<TrainingResult> {
    const { store, id, folder } = this.training;
    const batches = this.batches(steps);
    const lost = stepsTo(steps).find((step) => !batches.some((batch) => batch.step === step - 1));
    if (lost !== undefined) await this.redo(lost, 'what was rolled out');
    const checkpoints = await this.checkpoints(steps);
    const body = withBranches(await metricsIn(folder), batches);
    const metrics = await store.put({
      // A learner whose worker stops answering ends early, and may go further another time; one that is made anew comes to others.
      key: `training/${id}/metrics/${steps}/${sha256(body)}`,
      producer: 'train',
      inputs: batches.map((batch) => batch.ref),
      mediaType: 'application/jsonl',
      body,
    });
    const shared = batches.filter((batch) => batch.shared);
    const played = new Map(this.records(batchSchema).map((batch) => [batch.ref.sha256, batch]));
    for (const { ref } of batches) played.delete(ref.sha256);
    const superseded = [...played.values()];
    return {
      steps,
      ...countIn(batches),
      brokenRollouts: batches.reduce((sum, { broken }) => sum + broken, 0),
      ...(shared.length > 0 && { shared: countIn(shared) }),
      ...(superseded.length > 0 && { superseded: countIn(superseded) }),
      metrics,
      checkpoints,
    };
  }

  /** The key holds the weights' hash: a training that is resumed on another machine may come to slightly different ones. */
  private async keepAdapter(step: number, folder: string): Promise<ArtifactRef> {
    const { store, id } = this.training;
    const weights = sha256(await readFile(join(folder, 'adapter_model.safetensors')));
    const key = `adapter/${id}/step-${step}/${weights}`;
    const inputs = this.batches(step).map((batch) => batch.ref);
    return store.putFolder({ key, folder, files: ADAPTER_FILES, producer: 'train', inputs });
  }

  private async keepCheckpoint(learned: LearnedAt): Promise<void> {
    const policy = await this.policy(learned);
    await this.append(checkpointSchema, { kind: 'checkpoint', step: learned.step, policy });
  }

  private async checkpoints(steps: number): Promise<Checkpoint[]> {
    if (this.last?.step === steps) await this.keepCheckpoint(this.last);
    const known = this.latest(checkpointSchema);
    const counting = stepsTo(steps).filter((step) => step % this.training.checkpointEvery === 0 || step === steps);
    const checkpoints: Checkpoint[] = [];
    for (const step of counting) {
      const policy = known.get(step)?.policy;
      const intact = policy?.adapters.map(({ ref }) => isIntact(this.training.store, ref)) ?? [false];
      const isServable = (await Promise.all(intact)).every(Boolean);
      checkpoints.push({
        step,
        policy: policy && isServable ? policy : await this.fromFolder(step, policy),
        // Those that were found again are counted too.
        ...(this.training.maxRollouts !== undefined && { rollouts: this.spent.get(step) ?? 0 }),
      });
    }
    return checkpoints;
  }

  /** A checkpoint that a killed worker has not recorded, or that the store has lost, from the learner's own folder. */
  private async fromFolder(step: number, before: FixedPolicy | undefined): Promise<FixedPolicy> {
    const adapter = join(this.training.folder, `checkpoint-${step}`);
    const policy = await ifThere(this.policy({ step, policy: { adapter } }));
    const isSame = !before || digest(before) === digest(policy ?? null);
    return policy && isSame ? policy : this.redo(step, 'the adapter');
  }

  /** The next attempt goes on from the last checkpoint before the step, and finds the rollouts that are in the store. */
  private async redo(step: number, what: string): Promise<never> {
    await removeCheckpoints(this.training.folder, (made) => made >= step);
    throw new OutsideFailure('TrainerDied', `${what} of step ${step} is lost or damaged; the step is done again`);
  }

  /** The batches that the policy at `step` was learned from, in the order of the steps. */
  private batches(step: number): BatchRecord[] {
    const known = [...this.latest(batchSchema).values()];
    return known.filter((batch) => batch.step < step).sort((a, b) => a.step - b.step);
  }

  /** What was recorded last of every step. */
  private latest<Kept extends { step: number }>(schema: z.ZodType<Kept>): Map<number, Kept> {
    return new Map(this.records(schema).map((record) => [record.step, record]));
  }

  private records<Kept>(schema: z.ZodType<Kept>): Kept[] {
    return [...this.training.journal.records().values()].flatMap((one) => schema.safeParse(one).data ?? []);
  }

  /** Adds a record, unless it is what was recorded of its step last. */
  private async append<Kept extends { step: number }>(schema: z.ZodType<Kept>, record: Kept): Promise<void> {
    const last = this.latest(schema).get(record.step);
    if (!last || digest(last) !== digest(record)) await this.training.journal.append(randomUUID(), record);
  }
}

/** What batches come to. */
function countIn(batches: readonly BatchRecord[]) {
  const sum = (count: (batch: BatchRecord) => number) => batches.reduce((total, batch) => total + count(batch), 0);
  return {
    rollouts: sum(({ scored }) => scored),
    promptTokens: sum(({ promptTokens }) => promptTokens),
    completionTokens: sum(({ completionTokens }) => completionTokens),
  };
}

/** The steps of a training, from 1. */
const stepsTo = (steps: number): number[] => Array.from({ length: steps }, (_, n) => n + 1);

/** The learner's metrics, each step's line with the mean reward of every branch of its batch; its own file stays as it is. */
function withBranches(metrics: Buffer, batches: readonly BatchRecord[]): Buffer {
  // A batch names the steps finished before it, a line of the metrics those after it.
  const rewards = new Map(
    batches.flatMap(({ step, rewardByBranch }) => (rewardByBranch ? [[step + 1, rewardByBranch] as const] : [])),
  );
  if (rewards.size === 0) return metrics;
  const joined = (line: string): string => {
    const values = metricsLine.safeParse(line).data;
    const of = values && rewards.get(values.step);
    return of ? JSON.stringify({ ...values, reward_by_branch: of }) : line;
  };
  return Buffer.from(metrics.toString('utf8').split('\n').map(joined).join('\n'));
}

/**
 * Whether an artifact exists and matches its hash. Called before a kept result is used, so that damage is repaired by the step that made it, and
 * not found by a later one that can't.
 */
async function isIntact(store: ArtifactStore, ref: ArtifactRef): Promise<boolean> {
  try {
    const { key } = await store.provenance(ref);
    return (await store.find(key))?.sha256 === ref.sha256;
  } catch (error) {
    if (isFailure(error, 'ArtifactDamaged')) return false;
    throw error;
  }
}

/** What a result's other artifacts are. */
export const refsOf = ({ metrics, checkpoints }: TrainingResult): ArtifactRef[] => [
  metrics,
  ...checkpoints.flatMap(({ policy }) => policy.adapters.map(({ ref }) => ref)),
];

/** The result under a key, if all that it names can still be read; else it is forgotten, and the training is done again. */
export async function findResult(store: ArtifactStore, key: string): Promise<TrainingResult | undefined> {
  const known = await store.find(key);
  if (!known) return undefined;
  const result = await readJson(store, known, trainingResultSchema);
  const intact = await Promise.all(refsOf(result).map((ref) => isIntact(store, ref)));
  if (intact.every(Boolean)) return result;
  await store.forget(key);
  return undefined;
}
