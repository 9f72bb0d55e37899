/** The states of a learner: its last checkpoints, in the store. It continues from a state that a marker names, on whatever host it runs. */
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ifThere } from '../store/durable-file';
import { sha256 } from '../store/hash';
import { FileHashes, filesIn } from '../store/objects';
import type { ArtifactStore } from '../store/store';
import { forEachBounded } from '../domain/concurrency';
import { OutsideFailure } from '../domain/failures';
import { type Marker, metricsLine } from './markers';

/** Number of states in the store, and of checkpoints in the learner's folder. */
export const KEPT = 2;
const TRANSFERS = 8;
const METRICS = 'metrics.jsonl';

export class StateStore {
  private readonly hashes = new FileHashes();

  constructor(
    private readonly store: Pick<ArtifactStore, 'files'>,
    private readonly path: string,
    private readonly folder: string,
  ) {}

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

  /** Replaces the checkpoints in the learner's folder, which may be overtaken, by the newest whole state of these markers. Returns its step, or 0. */
  async restore(line: readonly Marker[]): Promise<number> {
    await removeCheckpoints(this.folder, () => true);
    for (const marker of line.toReversed()) {
      if (!(await this.fetch(marker))) continue;
      const metrics = line.flatMap((one) => (one.step <= marker.step ? one.metrics : []));
      await writeFile(join(this.folder, METRICS), metrics.map((text) => `${text}\n`).join(''));
      return marker.step;
    }
    return 0;
  }

  /** Returns false where the state is damaged or gone, or where the learner keeps none. */
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

export async function removeCheckpoints(folder: string, isRemoved: (step: number) => boolean): Promise<void> {
  for (const name of (await ifThere(readdir(folder))) ?? []) {
    const step = /^checkpoint-(\d+)$/.exec(name)?.[1];
    if (step !== undefined && isRemoved(Number(step))) await rm(join(folder, name), { recursive: true, force: true });
  }
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
