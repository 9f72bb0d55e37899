/**
 * Rollouts counted over batches. Invariant: a rollout that several batches hold is counted once, in the first group of batches that has it; one
 * that is broken in one batch and scored in another is a scored one.
 */
import type { ArtifactStore } from '../../artifacts/store';
import type { ArtifactRef } from '../../domain/artifacts';
import { causesIn, causesOf, type BrokenCause } from '../../domain/rollout';
import type { Outcome } from '../../domain/outcomes';
import type { RolloutSummary } from '../../domain/rollout';
import type { SynthesisRound } from '../../domain/calibration';
import { readOutcomes } from '../../rollout/read';
import { distinct } from './evidence';

export interface Count {
  scored: number;
  broken: number;
  promptTokens: number;
  completionTokens: number;
  /** Of the broken ones. */
  causes: BrokenCause[];
}

/** Those that calibrated an environment, round by round, without hints first. */
export const calibrationBatches = (rounds: readonly SynthesisRound[]): RolloutSummary[] =>
  rounds.flatMap(({ calibrationRollouts, aided = [] }) =>
    [calibrationRollouts, ...aided.map((one) => one.calibrationRollouts)].filter((batch) => batch !== undefined),
  );

/** By the sha256 of its batch. */
export type Contents = ReadonlyMap<string, readonly Outcome[]>;

type Batch = { ref: ArtifactRef };

export async function contentsOf(store: ArtifactStore, batches: readonly Batch[]): Promise<Contents> {
  const contents = new Map<string, readonly Outcome[]>();
  for (const { ref } of distinct(batches)) contents.set(ref.sha256, await readOutcomes({ store, ref }));
  return contents;
}

/** A count for each group, in the order given. */
export function countGroups(contents: Contents, groups: readonly (readonly Batch[])[]): Count[] {
  const all = groups.map((batches) => batches.flatMap(({ ref }) => inBatch(contents, ref)));
  const scored = new Set(
    all.flatMap((group) => group.flatMap(({ status, key }) => (status === 'scored' ? [key] : []))),
  );
  const counted = new Set<string>();
  return all.map((group) => {
    const count: Count = { scored: 0, broken: 0, promptTokens: 0, completionTokens: 0, causes: [] };
    for (const held of group) {
      if (counted.has(held.key) || (held.status === 'broken' && scored.has(held.key))) continue;
      counted.add(held.key);
      count[held.status] += 1;
      if (held.status === 'broken') count.causes.push(...causesIn([held]));
      else {
        count.promptTokens += held.promptTokens;
        count.completionTokens += held.completionTokens;
      }
    }
    return { ...count, causes: causesOf(count.causes) };
  });
}

export const countOnce = (contents: Contents, batches: readonly Batch[]): Count => countGroups(contents, [batches])[0]!;

/** The batches that hold rollouts which broke so. */
export const brokenBy = <B extends Batch>(contents: Contents, batches: readonly B[], errorType: string): B[] =>
  batches.filter(({ ref }) =>
    contents.get(ref.sha256)?.some((held) => held.status === 'broken' && held.error.type === errorType),
  );

function inBatch(contents: Contents, ref: ArtifactRef): readonly Outcome[] {
  const held = contents.get(ref.sha256);
  if (!held) throw new Error(`batch ${ref.uri} is counted and was not read; name it in batchesByPurpose`);
  return held;
}
