/**
 * What a learner goes on from: the checkpoints in its folder, and the last of them in the store, so that any host can go on. Invariant: a learner goes
 * on from a state that a marker names, and from no other.
 */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ifThere } from '../store/durable-file';
import { sha256 } from '../store/hash';
import { FileHashes, filesIn } from '../store/objects';
import type { ArtifactStore } from '../store/store';
import { forEachBounded } from '../domain/concurrency';
import { OutsideFailure } from '../domain/failures';
import { type Marker, metricsLine } from './markers';

/** States, and checkpoints that are no candidates, that are kept. */
export const KEPT = 2;
/** Files of a state that are stored, fetched or removed at once. */
const TRANSFERS = 8;
const METRICS = 'metrics.jsonl';

export class StateStore {
  private readonly hashes = new FileHashes();

  /** `path`: of the training, in the store. `folder`: the learner's own. */
  constructor(
    private readonly store: Pick<ArtifactStore, 'files'>,
    private readonly path: string,
    private readonly folder: string,
  ) {}

  /** Stores the checkpoint of a step under the id of its marker. */
  async put(id: string, step: number): Promise<Marker['files']> {
    const stored: Marker['files'] = [];
    for (const name of await filesIn(join(this.folder, `checkpoint-${step}`))) {
      const path = `checkpoint-${step}/${name}`;
      stored.push({ path, sha256: (await this.hashes.of(join(this.folder, path))) ?? '' });
    }
    const work = ({ path }: Marker['files'][number]) =>
      this.store.files.putFile(`${this.pathOf(id)}/${path}`, join(this.folder, path));
    await forEachBounded({ items: stored, concurrency: TRANSFERS, work });
    return stored;
  }

  remove(id: string): Promise<void> {
    return this.store.files.removeFolder(this.pathOf(id));
  }

  removeAll(): Promise<void> {
    return this.store.files.removeFolder(`${this.path}/states`);
  }

  /**
   * Puts the newest state of these markers that is whole into the learner's folder, and returns its step, or 0. Removes the checkpoints there that are
   * no state of a marker.
   */
  async restore(line: readonly Marker[]): Promise<number> {
    const byStep = new Map(line.map((marker) => [marker.step, marker]));
    for (const step of await checkpointsIn(this.folder))
      if ((await manifestIn(this.folder, step)) !== byStep.get(step)?.manifest || !byStep.has(step))
        await removeCheckpoints(this.folder, (one) => one === step);
    for (const marker of line.toReversed()) {
      const { step, manifest } = marker;
      if (manifest === undefined) continue;
      if ((await manifestIn(this.folder, step)) !== manifest) {
        if (!(await this.fetch(marker))) continue;
        const metrics = line.flatMap((one) => (one.step <= step ? one.metrics : []));
        await writeFile(join(this.folder, METRICS), metrics.map((text) => `${text}\n`).join(''));
      }
      await removeCheckpoints(this.folder, (one) => one > step);
      return step;
    }
    return 0;
  }

  /** Returns false where the state is damaged or gone. */
  private async fetch({ id, step, files }: Marker): Promise<boolean> {
    let isWhole = files.length > 0;
    const work = async ({ path, sha256: sha }: Marker['files'][number]) => {
      const file = join(this.folder, path);
      const isThere = isWhole && (await this.store.files.getFile(`${this.pathOf(id)}/${path}`, file));
      if (!isThere || (await this.hashes.of(file)) !== sha) isWhole = false;
    };
    await forEachBounded({ items: files, concurrency: TRANSFERS, work });
    if (!isWhole) await removeCheckpoints(this.folder, (one) => one === step);
    return isWhole;
  }

  private pathOf(id: string): string {
    return `${this.path}/states/${id}`;
  }
}

/** Returns the sha256 of a checkpoint's manifest in a learner's folder; undefined if there is none. */
export async function manifestIn(folder: string, step: number): Promise<string | undefined> {
  const manifest = await ifThere(readFile(join(folder, `checkpoint-${step}`, 'manifest.json')));
  return manifest && sha256(manifest);
}

async function checkpointsIn(folder: string): Promise<number[]> {
  const names = (await ifThere(readdir(folder))) ?? [];
  return names.flatMap((name) => /^checkpoint-(\d+)$/.exec(name)?.[1] ?? []).map(Number);
}

export async function removeCheckpoints(folder: string, isGone: (step: number) => boolean): Promise<void> {
  for (const step of await checkpointsIn(folder))
    if (isGone(step)) await rm(join(folder, `checkpoint-${step}`), { recursive: true, force: true });
}

export async function metricsIn(folder: string): Promise<Buffer> {
  const file = join(folder, METRICS);
  const metrics = await ifThere(readFile(file));
  if (metrics) return metrics;
  const rule = 'a learner writes a line of it for every finished step (docs/learner-protocol.md)';
  throw new OutsideFailure('BadJob', `${file} is missing: ${rule}`);
}

/** Lines of metrics.jsonl after a step, up to another one. */
export async function metricsBetween(folder: string, after: number, upTo: number): Promise<string[]> {
  const text = await ifThere(readFile(join(folder, METRICS), 'utf8'));
  return (text ?? '').split('\n').filter((line) => {
    const step = metricsLine.safeParse(line).data?.step ?? 0;
    return step > after && step <= upTo;
  });
}
