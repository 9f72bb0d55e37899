/**
 * What a policy's adapters come to, and their merge into one artifact. Invariants: policies of the same weights have the same parts in the same order,
 * and so the same names and keys, however they were put together; the same parts are merged once, whoever asks, and the merged adapter knows its
 * parts; one merge runs at a time, and one that hangs ends, so that the next begins.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { digest } from '../artifacts/hash';
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { createLimit, limited } from '../domain/concurrency';
import type { FixedPolicy } from '../domain/rollout';
import { runPython } from './python';

export type Part = FixedPolicy['adapters'][number];

/** Changes whenever merging would make other weights of the same parts. */
const MERGE_VERSION = 1;

/** By content, without those that weigh nothing. */
export const partsOf = (adapters: readonly Part[]): Part[] =>
  adapters
    .filter(({ weight }) => weight !== 0)
    .sort((a, b) => {
      if (a.ref.sha256 === b.ref.sha256) return a.weight - b.weight;
      return a.ref.sha256 < b.ref.sha256 ? -1 : 1;
    });

/** What keys of parts are derived from. */
export const contentOf = (parts: readonly Part[]): [sha256: string, weight: number][] =>
  parts.map(({ ref, weight }) => [ref.sha256, weight]);

/** The adapter that serves the parts as it is: the only one, with weight 1. */
export function plainAdapter([first, ...others]: readonly Part[]): ArtifactRef | undefined {
  return others.length === 0 && first?.weight === 1 ? first.ref : undefined;
}

/** Under which the merged adapter is stored. */
const mergeKey = (parts: readonly Part[]): string =>
  `merge/${digest({ version: MERGE_VERSION, adapters: contentOf(parts) })}`;

/** The same for policies of the same weights; undefined for the base model. A prompt changes no weights. */
export function weightsOf({ adapters }: FixedPolicy): string | undefined {
  const parts = partsOf(adapters);
  return parts.length === 0 ? undefined : mergeKey(parts);
}

export type Merge = (adapters: readonly Part[]) => Promise<ArtifactRef>;

/** `python`: the interpreter of the trainer's virtual environment. */
export function createMerger({ store, python }: { store: ArtifactStore; python: string }): Merge {
  const running = new Map<string, Promise<ArtifactRef>>();
  // Each is a Python process with torch: a router of many weightings would start one for each at once.
  const inTurn = createLimit(1);

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
      await runPython({ python, args: ['merge', '--job', job] });
      return await store.putFolder({ key, producer: 'merge', inputs: parts.map(({ ref }) => ref), folder });
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  }

  return (adapters) => {
    const parts = partsOf(adapters);
    const key = mergeKey(parts);
    // Not bound to any caller's signal: others may wait for the same merge.
    const run = running.get(key) ?? merge(key, parts).finally(() => running.delete(key));
    running.set(key, run);
    return limited(run);
  };
}
