/**
 * What one training has made so far: its batches, and the policy of every checkpoint, as artifacts. Invariants: it is known again after any
 * crash; where a step was done again, the later one counts; a result lacks no step's rollouts, unless it was learned without any, or there is none.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { keptJson, readJson } from '../artifacts/json';
import { isCode } from '../artifacts/durable-file';
import { canonical, digest, sha256 } from '../artifacts/hash';
import type { ArtifactStore, Journal } from '../artifacts/store';
import { type ArtifactRef, artifactRefSchema, refsIn } from '../domain/artifacts';
import { isFailure, OutsideFailure } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { type Checkpoint, type TrainingResult, type TrainingSummary, trainingResultSchema } from '../domain/results';
import { type FixedPolicy, fixedPolicySchema, type RolloutSummary } from '../domain/rollout';
import type { Learned } from './learner-process';

type LearnedAt = { step: number; policy: Learned };

/** A PEFT folder's own files: beside them a checkpoint holds the optimizer's. */
const ADAPTER_FILES = ['adapter_config.json', 'adapter_model.safetensors'] as const;

/** `id` is derived from everything that decides the result. */
export interface TrainingRecordOptions extends TrainingLogOptions {
  /** The learner's own folder. */
  folder: string;
  base: string;
  /** What it learns from, where no step asks for rollouts; without it, every step does. */
  given?: ArtifactRef;
  /** The adapter that the first step has started from. */
  from?: ArtifactRef | undefined;
  /** Checkpoints that count: every so many steps, and the last. One that an interruption saved is for resuming alone. */
  checkpointEvery: number;
}

export class TrainingRecord {
  private readonly log: TrainingLog;

  constructor(private readonly training: TrainingRecordOptions) {
    this.log = new TrainingLog(training);
  }

  /** What was learned, as a policy that can be served from the store. */
  async policy({ step, policy }: LearnedAt): Promise<FixedPolicy> {
    const { base } = this.training;
    if ('base' in policy) return { base, adapters: [] };
    if ('prompt' in policy) return { base, adapters: [], prompt: policy.prompt };
    return { base, adapters: [{ ref: await this.keepAdapter(step, policy.adapter), weight: 1 }] };
  }

  async addCheckpoint({ step, policy: learned }: LearnedAt): Promise<void> {
    const policy = await this.policy({ step, policy: learned });
    await this.log.append({
      ...{ kind: 'checkpoint', step, policy },
      ...('adapter' in learned && { folder: learned.adapter }),
    });
  }

  /** `shared`: its rollouts are the campaign's base rollouts. */
  async addBatch(step: number, summary: RolloutSummary, { shared = false } = {}): Promise<void> {
    const { ref, scored, broken, promptTokens, completionTokens, branches } = summary;
    const rewards = Object.entries(branches ?? {}).map(([branch, { meanReward }]) => [branch, meanReward]);
    await this.log.append({
      ...{ kind: 'batch', step, ref, scored, broken, promptTokens, completionTokens },
      ...(shared && { shared }),
      ...(rewards.length > 0 && { rewardByBranch: Object.fromEntries(rewards) }),
    });
  }

  /** `steps` is where it ended: a learner may be done before its last step. */
  async result(steps: number): Promise<TrainingResult> {
    const { store, id, folder, given } = this.training;
    const batches = await this.batches(steps);
    const missing = (given ? [] : stepsTo(steps)).find((step) => !batches.some((batch) => batch.step === step - 1));
    if (missing !== undefined)
      throw this.lost(
        `what was rolled out for step ${missing} was never asked for, or is lost in the journal and the store`,
      );
    const body = withBranches(await metricsIn(folder), batches);
    const metrics = await store.put({
      // A learner whose worker stops answering ends early, and may go further another time; one that is made anew comes to others.
      key: `training/${id}/metrics/${steps}/${sha256(body)}`,
      producer: 'train',
      inputs: [...(given ? [given] : []), ...batches.map((batch) => batch.ref)],
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
      checkpoints: await this.checkpoints(steps),
    };
  }

  /** The key holds the weights' hash: a training that is resumed on another machine may come to slightly different ones. */
  private async keepAdapter(step: number, folder: string): Promise<ArtifactRef> {
    const { store, id, from, given } = this.training;
    const weights = sha256(await readFile(join(folder, 'adapter_model.safetensors')));
    const key = `adapter/${id}/step-${step}/${weights}`;
    const inputs = [
      ...[from, given].flatMap((ref) => (ref ? [ref] : [])),
      ...(await this.batches(step)).map((batch) => batch.ref),
    ];
    const known = await store.find(key);
    return known ?? store.putFolder({ key, folder, files: ADAPTER_FILES, producer: 'train', inputs });
  }

  /** Those that count, and all of them. */
  private async checkpoints(steps: number): Promise<Checkpoint[]> {
    const { checkpointEvery, folder } = this.training;
    const known = new Map((await this.log.checkpoints()).map((one) => [one.step, one]));
    const checkpoints: Checkpoint[] = [];
    for (const step of stepsTo(steps)) {
      if (step % checkpointEvery !== 0 && step !== steps) continue;
      const kept = known.get(step);
      checkpoints.push(kept ? await this.served(kept) : await this.again(step, join(folder, `checkpoint-${step}`)));
    }
    return checkpoints;
  }

  /** A checkpoint that can be served. An adapter that is damaged in the store is put there again from the learner's own folder. */
  private async served({ step, policy, folder = '' }: CheckpointRecord): Promise<Checkpoint> {
    const intact = await Promise.all(policy.adapters.map(({ ref }) => isIntact(this.training.store, ref)));
    return intact.every(Boolean) ? { step, policy } : this.again(step, folder, policy);
  }

  /** A checkpoint from the learner's own folder; `before`: what it was, if that is known. */
  private async again(step: number, folder: string, before?: FixedPolicy): Promise<Checkpoint> {
    const lost = () =>
      this.lost(`the adapter of step ${step} is damaged in the store, and ${folder} no longer holds it`);
    const policy = await this.policy({ step, policy: { adapter: folder } }).catch((error: unknown) => {
      throw isCode(error, 'ENOENT') ? lost() : error;
    });
    if (before && before.adapters[0]?.ref.sha256 !== policy.adapters[0]?.ref.sha256) throw lost();
    return { step, policy };
  }

  private lost(what: string): Error {
    return new OutsideFailure(
      'ArtifactDamaged',
      `${what}; remove ${this.training.folder}, and the training is made anew`,
    );
  }

  /** The batches that the policy at `step` was learned from. */
  private async batches(step: number): Promise<BatchRecord[]> {
    return (await this.log.batches()).filter((batch) => batch.step < step);
  }
}

function countIn(
  batches: readonly BatchRecord[],
): Pick<TrainingResult, 'rollouts' | 'promptTokens' | 'completionTokens'> {
  const sum = (count: (batch: BatchRecord) => number) => batches.reduce((total, batch) => total + count(batch), 0);
  return {
    rollouts: sum(({ scored }) => scored),
    promptTokens: sum(({ promptTokens }) => promptTokens),
    completionTokens: sum(({ completionTokens }) => completionTokens),
  };
}

/** The steps of a training, from 1. */
const stepsTo = (steps: number): number[] => Array.from({ length: steps }, (_, n) => n + 1);

async function metricsIn(folder: string): Promise<Buffer> {
  const file = join(folder, 'metrics.jsonl');
  try {
    return await readFile(file);
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error;
    const rule = 'a learner writes a line of it for every finished step (docs/learner-protocol.md)';
    throw new OutsideFailure('BadJob', `${file} is missing: ${rule}`);
  }
}

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

const metricsLine = jsonText.pipe(z.looseObject({ step: z.number() }));

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
const checkpointSchema = z.object({
  kind: z.literal('checkpoint'),
  step: count,
  policy: fixedPolicySchema,
  /** Where the learner keeps the adapter. */
  folder: z.string().optional(),
});
const recordSchema = z.discriminatedUnion('kind', [batchSchema, checkpointSchema]);
type LogRecord = z.infer<typeof recordSchema>;
type BatchRecord = z.infer<typeof batchSchema>;
type CheckpointRecord = z.infer<typeof checkpointSchema>;

interface TrainingLogOptions {
  store: ArtifactStore;
  journal: Journal;
  /** Of the training: names the artifacts. */
  id: string;
}

class TrainingLog {
  private known: Map<number, LogRecord> | undefined;

  constructor(private readonly training: TrainingLogOptions) {}

  /** Adds a record, unless it is what was said of its step last. May be tried again after a failure. */
  async append(record: LogRecord): Promise<void> {
    const known = await this.records();
    const last = [...known.values()].findLast(({ kind, step }) => kind === record.kind && step === record.step);
    if (last && digest(last) === digest(record)) return;
    let number = Math.max(-1, ...known.keys()) + 1;
    // A number that another attempt has used meanwhile stays that attempt's.
    while (!(await this.keep(number, record))) number++;
    known.set(number, record);
  }

  /** What was said last of every step, in the order of the steps. */
  async batches(): Promise<BatchRecord[]> {
    return latestByStep([...(await this.records()).values()].filter((record) => record.kind === 'batch'));
  }

  async checkpoints(): Promise<CheckpointRecord[]> {
    return latestByStep([...(await this.records()).values()].filter((record) => record.kind === 'checkpoint'));
  }

  /** By number, ascending. Read when it is first asked for: then the learner has begun, and one that was before it has ended. */
  private async records(): Promise<Map<number, LogRecord>> {
    this.known ??= await this.read();
    return this.known;
  }

  private async read(): Promise<Map<number, LogRecord>> {
    const { journal } = this.training;
    const known = new Map<number, LogRecord>();
    const last = Math.max(-1, ...[...journal.records().keys()].map(Number).filter(Number.isInteger));
    for (let number = 0; ; number++) {
      const told = journal.records().get(String(number));
      const record = told === undefined ? await this.stored(number) : recordSchema.parse(told);
      if (record) {
        await this.keep(number, record);
        known.set(number, record);
      } else if (number > last) return known;
    }
  }

  private async stored(number: number): Promise<LogRecord | undefined> {
    const ref = await this.training.store.find(this.key(number));
    return ref && readJson(this.training.store, ref, recordSchema);
  }

  /** Both times, unless it is there; false if another record has the number. */
  private async keep(number: number, record: LogRecord): Promise<boolean> {
    const body = canonical(record);
    const { sha256: kept } = await this.training.store.put({
      key: this.key(number),
      producer: 'train',
      inputs: inputsOf(record),
      mediaType: 'application/json',
      body,
    });
    if (kept !== sha256(body)) return false;
    await this.training.journal.append(String(number), record);
    return true;
  }

  private key(number: number): string {
    return `training/${this.training.id}/record/${number}`;
  }
}

const inputsOf = (record: LogRecord): ArtifactRef[] =>
  record.kind === 'batch' ? [record.ref] : record.policy.adapters.map(({ ref }) => ref);

function latestByStep<T extends { step: number }>(records: readonly T[]): T[] {
  return [...new Map(records.map((record) => [record.step, record])).values()].sort((a, b) => a.step - b.step);
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

/**
 * The result under a key, if all that it names can still be read; and the key for a new one: the first that was made anew after some damage
 * came to other artifacts, and stands beside the damaged one.
 */
export async function findResult(
  store: ArtifactStore,
  key: string,
): Promise<{ result?: TrainingResult; next: string }> {
  for (let n = 1; ; n++) {
    const next = n === 1 ? key : `${key}/${n}`;
    const known = await store.find(next);
    if (!known) return { next };
    const result = await readJson(store, known, trainingResultSchema);
    const intact = await Promise.all(refsOf(result).map((ref) => isIntact(store, ref)));
    if (intact.every(Boolean)) return { result, next };
  }
}

/** A training as the workflow is told of it. */
export async function summaryOf(
  store: ArtifactStore,
  { checkpoints, ...training }: TrainingResult,
): Promise<TrainingSummary> {
  const kept = { key: `checkpoints/${digest(checkpoints)}`, producer: 'train', inputs: refsIn(checkpoints) };
  return { ...training, checkpoints: await keptJson(store, kept, (): Checkpoint[] => checkpoints) };
}
