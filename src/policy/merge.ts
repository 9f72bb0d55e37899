/**
 * Merges adapters into one artifact. Invariant: the same parts are merged once, whoever asks and in whatever order they are named, and
 * the merged adapter knows its parts; one merge runs at a time, and one that hangs ends, so that the next begins.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { createLimit } from '../domain/concurrency';
import { mergeKey, partsOf, type Part } from './parts';
import { runPython } from './python';

/** `onWork` is called whenever the merge that runs can be seen to work, this one or one before it. */
export type Merge = (adapters: readonly Part[], onWork?: () => void) => Promise<ArtifactRef>;

interface MergerOptions {
  store: ArtifactStore;
  /** The interpreter of the trainer's virtual environment. */
  python: string;
  /** How long a merge may stand still. */
  idleSeconds?: number;
}

export function createMerger({ store, python, idleSeconds }: MergerOptions): Merge {
  const running = new Map<string, Promise<ArtifactRef>>();
  // Each is a Python process with torch: a router of many weightings would start one for each at once.
  const inTurn = createLimit(1);
  /** Of everyone who waits: as one runs at a time, its work is progress for all of them. */
  const waiting = new Set<() => void>();
  const onWork = (): void => waiting.forEach((tell) => tell());

  async function merge(key: string, parts: Part[]): Promise<ArtifactRef> {
    const known = await store.find(key);
    return known ?? inTurn(() => make(key, parts));
  }

  async function make(key: string, parts: Part[]): Promise<ArtifactRef> {
    const work = await mkdtemp(join(tmpdir(), 'merge-'));
    try {
      const [job, folder] = [join(work, 'merge.json'), join(work, 'adapter')];
      const adapters = await Promise.all(
        parts.map(async ({ ref, weight }) => ({ path: await store.folder(ref), weight })),
      );
      await writeFile(job, JSON.stringify({ adapters, output_dir: folder }));
      await runPython({ python, args: ['merge', '--job', job], onWork, ...(idleSeconds && { idleSeconds }) });
      return await store.putFolder({ key, producer: 'merge', inputs: parts.map(({ ref }) => ref), folder });
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }

  return async (adapters, tell) => {
    const parts = partsOf(adapters);
    const key = mergeKey(parts);
    // Not bound to any caller's signal: others may wait for the same merge.
    const run = running.get(key) ?? merge(key, parts).finally(() => running.delete(key));
    running.set(key, run);
    const heard = (): void => tell?.();
    waiting.add(heard);
    try {
      return await run;
    } finally {
      waiting.delete(heard);
    }
  };
}
