/**
 * Merges a policy's adapters into one artifact. Invariants: policies with the same weights have the same parts in the same order, and so the same names
 * and keys; the same parts are merged once, and the merged adapter's provenance names them; one merge runs at a time.
 */
import { z } from 'zod';
import { digest } from '../store/hash';
import { keptFolder, type ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { createLimit } from '../domain/concurrency';
import type { FixedPolicy } from '../domain/rollout';
import { askPython } from './python';

export type Part = FixedPolicy['adapters'][number];

/** Changes whenever merging would make other weights of the same parts. */
const MERGE_VERSION = 1;

/** Drops weights of 0 and sorts by hash and weight, so that equal policies have equal parts. */
export const partsOf = (adapters: readonly Part[]): Part[] =>
  adapters
    .filter(({ weight }) => weight !== 0)
    .sort((a, b) => (a.ref.sha256 < b.ref.sha256 ? -1 : a.ref.sha256 > b.ref.sha256 ? 1 : a.weight - b.weight));

export const contentOf = (parts: readonly Part[]): [sha256: string, weight: number][] =>
  parts.map(({ ref, weight }) => [ref.sha256, weight]);

/** Returns the adapter that serves the parts without a merge: the only one, with weight 1. */
export function plainAdapter([first, ...others]: readonly Part[]): ArtifactRef | undefined {
  return others.length === 0 && first?.weight === 1 ? first.ref : undefined;
}

const mergeKey = (parts: readonly Part[]): string =>
  `merge/${digest({ version: MERGE_VERSION, adapters: contentOf(parts) })}`;

/** Returns a key that policies with the same weights share; undefined for the base model. A prompt changes no weights. */
export function weightsOf({ adapters }: FixedPolicy): string | undefined {
  const parts = partsOf(adapters);
  return parts.length === 0 ? undefined : mergeKey(parts);
}

export type Merge = (adapters: readonly Part[]) => Promise<ArtifactRef>;

export function createMerger({ store, python }: { store: ArtifactStore; python: string }): Merge {
  // Each merge is a Python process with torch, and a router may need many at once.
  const inTurn = createLimit(1);
  return async (adapters) => {
    const parts = partsOf(adapters);
    const about = { key: mergeKey(parts), producer: 'merge', inputs: parts.map(({ ref }) => ref) };
    const write = async (folder: string): Promise<void> => {
      const from = await Promise.all(parts.map(async ({ ref, weight }) => ({ path: await store.folder(ref), weight })));
      const question = { adapters: from, output_dir: folder };
      await askPython({ command: 'merge', question, answer: z.unknown(), program: { python } });
    };
    // Other callers of the same merge find it when their turn comes.
    return (await store.find(about.key)) ?? inTurn(() => keptFolder(store, about, write));
  };
}
