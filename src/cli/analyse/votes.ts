/**
 * What the passes say of a trajectory, taken together. Invariant: passes that did not look at it count neither way; in a tie PRESENT comes first,
 * as within a pass, and LACKING last.
 */
import { type Beginning, beginningOf, type Label, type LabelPass } from '../../domain/capability';
import { labelsOf } from '../../domain/selection';

export const labelNames = ['LACKING', 'PRESENT', 'NA'] as const satisfies readonly Label[];
export type Votes = Record<Label, number>;

/** By capability and trajectory. */
export type CapabilityVotes = ReadonlyMap<string, ReadonlyMap<string, Votes>>;

export function votesOf(passes: readonly LabelPass[]): CapabilityVotes {
  const all = new Map<string, Map<string, Votes>>();
  for (const pass of passes)
    for (const [capability, labels] of labelsOf(pass)) {
      const own = all.get(capability) ?? new Map<string, Votes>();
      all.set(capability, own);
      for (const [id, label] of labels) {
        const votes = own.get(id) ?? { LACKING: 0, PRESENT: 0, NA: 0 };
        own.set(id, votes);
        votes[label]++;
      }
    }
  return all;
}

/** The label with most votes; undefined without any. */
export function majority(votes: Votes): Label | undefined {
  const most = Math.max(...Object.values(votes));
  if (most === 0) return undefined;
  return (['PRESENT', 'NA', 'LACKING'] as const).find((label) => votes[label] === most);
}

/** Where each failure begins, by trajectory. */
export function beginningsIn(passes: readonly LabelPass[]): Map<string, Beginning> {
  const ids = new Set(passes.flatMap(({ failures = {} }) => Object.keys(failures)));
  return new Map(
    [...ids].flatMap((id) => {
      const begins = beginningOf(passes.flatMap(({ failures }) => failures?.[id] ?? []));
      return begins ? [[id, begins] as const] : [];
    }),
  );
}
