/**
 * How far labelings agree beyond chance. Invariants: pure functions, nothing depends on the order of labelers or trajectories; a trajectory
 * that only one labeler judged counts nowhere; where all labels are the same there is no variation to judge by, and the coefficient is
 * undefined instead of 0 or 1.
 */
import type { Label, LabelPass } from './capability';
import { sumOf } from './statistics';

/** `alpha` is undefined where no trajectory has two labels, or all labels are the same. */
export interface Agreement {
  /** Krippendorff's: 1 is perfect, 0 is chance. */
  alpha: number | undefined;
  /** Trajectories with at least two labels. */
  units: number;
}

export interface Comparison extends Agreement {
  /** Cohen's kappa. */
  kappa: number | undefined;
  /** Fraction of the trajectories with the same label. */
  observed: number | undefined;
}

/** By capability, over the passes that label it. */
export function agreementOf(passes: readonly LabelPass[]): Record<string, Agreement> {
  const labelings = passes.map(labelsOf);
  return byCapability(labelings, (own) => krippendorffAlpha(unitsOf(own)));
}

/** By capability that both label, over the trajectories that both judge, such as a model's labels and a person's. */
export function compareLabelings({ ours, theirs }: { ours: LabelPass; theirs: LabelPass }): Record<string, Comparison> {
  const labelings = [labelsOf(ours), labelsOf(theirs)];
  const compared = byCapability(labelings, (own) => {
    const pairs = unitsOf(own).flatMap(([a, b]) => (a && b ? [[a, b] as const] : []));
    return { ...krippendorffAlpha(pairs), ...cohensKappa(pairs) };
  });
  return Object.fromEntries(Object.entries(compared).filter(([name]) => labelings.every((own) => own.has(name))));
}

type Labeling = Map<string, Map<string, Label>>;

/** Labels by trajectory, by capability. */
export const labelsOf = (pass: LabelPass): Labeling =>
  new Map(
    Object.entries(pass.labels).map(([name, lists]) => {
      const all: [Label, string[]][] = [
        ['LACKING', [...lists.lacking_failed, ...lists.lacking_passed]],
        ['PRESENT', [...lists.present_failed, ...lists.present_passed]],
        ['NA', [...lists.na_failed, ...lists.na_passed]],
      ];
      return [name, new Map(all.flatMap(([label, ids]) => ids.map((id) => [id, label] as const)))];
    }),
  );

function byCapability<Found>(
  labelings: readonly Labeling[],
  judge: (own: readonly Map<string, Label>[]) => Found,
): Record<string, Found> {
  const names = [...new Set(labelings.flatMap((labeling) => [...labeling.keys()]))].sort();
  return Object.fromEntries(names.map((name) => [name, judge(labelings.flatMap((own) => own.get(name) ?? []))]));
}

/** The labels of each trajectory. */
function unitsOf(labelings: readonly Map<string, Label>[]): Label[][] {
  const ids = [...new Set(labelings.flatMap((labels) => [...labels.keys()]))];
  return ids.map((id) => labelings.flatMap((labels) => labels.get(id) ?? []));
}

/**
 * Krippendorff's alpha for nominal data; labels may be missing. K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011):
 * 1 - observed / expected disagreement, from the coincidences of labels within units.
 */
export function krippendorffAlpha(units: readonly (readonly string[])[]): Agreement {
  const pairable = units.filter(({ length }) => length >= 2);
  const totals = new Map<string, number>();
  const disagreements: number[] = [];
  for (const labels of pairable) {
    const counts = countsOf(labels);
    for (const [label, count] of counts) {
      disagreements.push((count * (labels.length - count)) / (labels.length - 1));
      totals.set(label, (totals.get(label) ?? 0) + count);
    }
  }
  const all = [...totals.values()].reduce((sum, count) => sum + count, 0);
  const expected = [...totals.values()].reduce((sum, count) => sum + count * (all - count), 0) / (all - 1);
  return { alpha: expected > 0 ? 1 - sumOf(disagreements) / expected : undefined, units: pairable.length };
}

/** Cohen's kappa (1960) of two labelers: (observed - expected) / (1 - expected agreement), each labeler's own frequencies expected. */
export function cohensKappa(pairs: readonly (readonly [string, string])[]): Pick<Comparison, 'kappa' | 'observed'> {
  const { length } = pairs;
  if (length === 0) return { kappa: undefined, observed: undefined };
  const observed = pairs.filter(([a, b]) => a === b).length / length;
  const [first, second] = [countsOf(pairs.map(([a]) => a)), countsOf(pairs.map(([, b]) => b))];
  const both = [...first].reduce((sum, [label, count]) => sum + count * (second.get(label) ?? 0), 0);
  const expected = both / (length * length);
  return { kappa: both < length * length ? (observed - expected) / (1 - expected) : undefined, observed };
}

function countsOf(labels: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return counts;
}
