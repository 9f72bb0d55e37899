/**
 * What a training goes on from: the checkpoints in its learner's folder and, where the store is no disk of this host, what of them is in the store.
 * Invariant: any host goes on from the step that the training's journal names last, and from no other.
 */
import { randomUUID } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ifThere } from '../artifacts/durable-file';
import { sha256 } from '../artifacts/hash';
import { filesIn } from '../artifacts/objects';
import type { ArtifactStore, Journal } from '../artifacts/store';
import { isFailure, OutsideFailure } from '../domain/failures';
import { jsonText } from '../domain/messages';

const stateSchema = z.object({
  kind: z.literal('state'),
  step: z.number().int().nonnegative(),
  /** Of the snapshot. */
  name: z.string(),
  /** sha256 of the checkpoint's manifest. */
  manifest: z.string(),
  /** Lines of metrics.jsonl since the last. */
  metrics: z.array(z.string()),
});
type StateRecord = z.infer<typeof stateSchema>;

/** States, and checkpoints that do not count, that are kept. */
const KEPT = 2;
const METRICS = 'metrics.jsonl';

interface TrainingStateOptions {
  store: ArtifactStore;
  /** Under `key`; its records of other kinds are passed over. */
  journal: Journal;
  key: string;
  /** The learner's own folder. */
  folder: string;
  checkpointEvery: number;
}

export class TrainingState {
  private uploading: Promise<void> = Promise.resolve();
  /** An older state goes: nobody waits for it. By its name: another host may have begun to upload one that is not known here. */
  private tidying: Promise<void> = Promise.resolve();
  private last = 0;

  constructor(private readonly training: TrainingStateOptions) {}

  /**
   * Puts into the learner's folder what was trained last, by whatever host. What lies there beyond it is of a training that another one has gone
   * on with, or of a step that nobody was told of.
   */
  async restore(): Promise<void> {
    const { store, key, folder } = this.training;
    if (!store.snapshots) return;
    const states = this.states();
    for (const state of states.slice(-KEPT).reverse()) {
      if ((await manifestIn(folder, state.step)) !== state.manifest) {
        await removeCheckpoints(folder, (step) => step >= state.step);
        if (!(await store.snapshots.restore(key, state.name, folder))) continue;
        const lines = new Map(states.slice(0, states.indexOf(state) + 1).flatMap(({ metrics }) => metrics.map(byStep)));
        const body = [...lines].flatMap(([step, line]) => (step <= state.step ? [`${line}\n`] : [])).join('');
        await writeFile(join(folder, METRICS), body);
      }
      return removeCheckpoints(folder, (step) => step > state.step);
    }
    await removeCheckpoints(folder, () => true);
  }

  /** A checkpoint has been saved: it is uploaded while the next rollouts are played, and old ones go. Throws what became of the one before. */
  async add(step: number): Promise<void> {
    const { folder, checkpointEvery } = this.training;
    await this.uploaded();
    this.begin(step);
    await removeCheckpoints(folder, (old) => old % checkpointEvery !== 0 && old <= step - KEPT);
  }

  private begin(step: number): void {
    this.last = step;
    this.uploading = this.upload(step);
    this.uploading.catch(() => undefined); // whoever awaits it next is told
  }

  /** Once the last checkpoint is where any host finds it: where the store was away, it is tried again. Throws what becomes of it. */
  async uploaded(): Promise<void> {
    try {
      await this.uploading;
    } catch (error) {
      if (!isFailure(error, 'StoreUnavailable')) throw error;
      this.begin(this.last);
      await this.uploading;
    }
  }

  /** What is for resuming alone goes once the training has ended. */
  async remove(): Promise<void> {
    await this.uploaded();
    await this.tidying;
    await this.training.store.snapshots?.remove(this.training.key);
  }

  private async upload(step: number): Promise<void> {
    const { store, key, folder, journal } = this.training;
    const manifest = await manifestIn(folder, step);
    if (!store.snapshots || manifest === undefined) return;
    const last = this.states().at(-1);
    if (last?.manifest === manifest) return;
    const files = await filesIn(join(folder, `checkpoint-${step}`));
    const paths = files.map((file) => `checkpoint-${step}/${file}`);
    const name = await store.snapshots.put(key, folder, paths);
    const lines = (await metricsIn(folder)).toString('utf8').split('\n').filter(Boolean).map(byStep);
    const metrics = lines.flatMap(([n, line]) => (n > (last?.step ?? 0) && n <= step ? [line] : []));
    await journal.append(randomUUID(), { kind: 'state', step, name, manifest, metrics } satisfies StateRecord);
    const old = this.states().at(-KEPT - 1);
    if (old) this.tidying = store.snapshots.remove(key, old.name).catch(() => undefined);
  }

  private states(): StateRecord[] {
    return [...this.training.journal.records().values()].flatMap((one) => stateSchema.safeParse(one).data ?? []);
  }
}

/** Of a checkpoint in a learner's folder; undefined if there is none. */
async function manifestIn(folder: string, step: number): Promise<string | undefined> {
  const manifest = await ifThere(readFile(join(folder, `checkpoint-${step}`, 'manifest.json')));
  return manifest && sha256(manifest);
}

export async function removeCheckpoints(folder: string, isGone: (step: number) => boolean): Promise<void> {
  for (const name of (await ifThere(readdir(folder))) ?? []) {
    const [, step] = /^checkpoint-(\d+)$/.exec(name) ?? [];
    if (step !== undefined && isGone(Number(step))) await rm(join(folder, name), { recursive: true, force: true });
  }
}

export async function metricsIn(folder: string): Promise<Buffer> {
  const file = join(folder, METRICS);
  const metrics = await ifThere(readFile(file));
  if (metrics) return metrics;
  const rule = 'a learner writes a line of it for every finished step (docs/learner-protocol.md)';
  throw new OutsideFailure('BadJob', `${file} is missing: ${rule}`);
}

/** A line of metrics.jsonl. */
export const metricsLine = jsonText.pipe(z.looseObject({ step: z.number() }));

const byStep = (line: string): [step: number, line: string] => [metricsLine.safeParse(line).data?.step ?? 0, line];
