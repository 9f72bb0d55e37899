/**
 * What a training has been told by its learner, record after record. Invariant: every record stands twice, in the training's journal and
 * as an artifact, under its number; what one of them has lost is put there again from the other, in its place in the order.
 */
import { z } from 'zod';
import { canonical, digest, sha256 } from '../artifacts/hash';
import type { ArtifactStore, Journal } from '../artifacts/store';
import { artifactRefSchema, type ArtifactRef } from '../domain/artifacts';
import { fixedPolicySchema } from '../domain/rollout';
import { readJson } from './context';

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
export type BatchRecord = z.infer<typeof batchSchema>;
export type CheckpointRecord = z.infer<typeof checkpointSchema>;

export interface TrainingLogOptions {
  store: ArtifactStore;
  journal: Journal;
  /** Of the training: names the artifacts. */
  id: string;
}

export class TrainingLog {
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
