/**
 * How good an analysis is, where it is known what was planted. Invariants: a capability counts as found by the hand-made mapping alone; a
 * candidate that is not selected counts neither for nor against.
 */
import { agreementOf, krippendorffAlpha, majorityOf, passStatistics, readingsOf } from '../../src/domain/selection';
import type { Label, LabelPass, Selection } from '../../src/domain/capability';

interface ScoreInput {
  /** By skill: the capabilities that mean it. */
  mapping: Record<string, string[]>;
  planted: readonly string[];
  passes: readonly LabelPass[];
  selection: Selection;
  reference: LabelPass;
  rule: { rho: number; delta: number };
}

interface Score {
  /** Of the selected capabilities, those that mean a planted skill; undefined where none is selected. */
  precision: number | undefined;
  /** Of the planted skills, those that a selected capability means. */
  recall: number;
  missed: string[];
  /** Selected, and in no planted skill's mapping. */
  mistaken: string[];
  /** By capability of the mapping that was labeled. */
  capabilities: Record<string, CapabilityScore>;
  /** What the reference labels say of each skill. */
  skills: Record<string, { coverage: number; delta: number }>;
}

interface CapabilityScore {
  skill: string;
  selected: boolean;
  /** Krippendorff's alpha of the passes' majority with the reference: over the three labels, and over LACKING or not. */
  agreement: number | undefined;
  agreementLacking: number | undefined;
  /** Of those that the reference calls LACKING, and of those that the passes do. */
  lackingFound: number | undefined;
  lackingRight: number | undefined;
  /** Krippendorff's alpha of the passes with each other. */
  alpha: number | undefined;
}

export function scoreAnalysis(o: ScoreInput): Score {
  const { mapping, planted, passes, selection, reference, rule } = o;
  const selected = selection.capabilities.filter((one) => one.selected).map(({ name }) => name);
  const meant = (skill: string) => mapping[skill] ?? [];
  const mistaken = selected.filter((name) => !planted.some((skill) => meant(skill).includes(name)));
  const missed = planted.filter((skill) => !meant(skill).some((name) => selected.includes(name)));
  const votes = readingsOf(passes);
  const alphas = agreementOf(passes);
  const real = readingsOf([reference]);
  const scores = Object.entries(mapping).flatMap(([skill, names]) =>
    names.flatMap((name): [string, CapabilityScore][] => {
      const [ours, theirs] = [votes.get(name), real.get(skill)];
      if (!ours || !theirs) return [];
      const pairs = [...ours].flatMap(([id, own]) => {
        const [other] = theirs.get(id) ?? [];
        return other ? [[majorityOf(own), other.label] as const] : [];
      });
      const score = {
        skill,
        selected: selected.includes(name),
        agreement: krippendorffAlpha(pairs).alpha,
        agreementLacking: krippendorffAlpha(pairs.map((pair) => pair.map(lackingOrNot))).alpha,
        lackingFound: share(pairs.filter(([, b]) => b === 'LACKING').map(([a]) => a)),
        lackingRight: share(pairs.filter(([a]) => a === 'LACKING').map(([, b]) => b)),
        alpha: alphas[name]?.alpha,
      };
      return [[name, score]];
    }),
  );
  return {
    precision: selected.length > 0 ? (selected.length - mistaken.length) / selected.length : undefined,
    recall: (planted.length - missed.length) / planted.length,
    missed,
    mistaken,
    capabilities: Object.fromEntries(scores),
    skills: Object.fromEntries(
      Object.entries(reference.labels).map(([skill, labels]) => {
        const { coverage, delta } = passStatistics({ labels, totals: reference.totals, rule });
        return [skill, { coverage, delta }];
      }),
    ),
  };
}

const lackingOrNot = (label: Label): string => (label === 'LACKING' ? label : 'other');
const share = (labels: Label[]): number | undefined =>
  labels.length > 0 ? labels.filter((label) => label === 'LACKING').length / labels.length : undefined;
