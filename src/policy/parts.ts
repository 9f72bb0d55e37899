/**
 * What a policy's adapters come to. Invariant: policies of the same weights have the same parts in the same order, and so the same
 * names and keys, however they were put together.
 */
import { digest } from '../artifacts/hash';
import type { ArtifactRef } from '../domain/artifacts';
import type { FixedPolicy } from '../domain/rollout';

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
export const mergeKey = (parts: readonly Part[]): string =>
  `merge/${digest({ version: MERGE_VERSION, adapters: contentOf(parts) })}`;

/** What the server calls a policy; undefined for the base model. A prompt is no matter of the server's. */
export function modelName({ adapters }: FixedPolicy): string | undefined {
  const parts = partsOf(adapters);
  if (parts.length === 0) return undefined;
  const plain = plainAdapter(parts);
  return plain ? `a-${plain.sha256.slice(0, 12)}` : `m-${digest(mergeKey(parts)).slice(0, 12)}`;
}
