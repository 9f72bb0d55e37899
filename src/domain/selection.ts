/**
 * Selection of the lacking capabilities (the method's step 1.4), as pure functions over labeling passes, and how far the passes agree.
 * Invariants: lists that do not partition the trajectories are refused; the result does not depend on the order of passes, capabilities or ids; fewer
 * passes than votes select nothing, and the result says so. Delta is compared with its threshold after rounding to 8 decimals, so that 0.6 - 0.4
 * reaches 0.2; the figures are not rounded, as in the published implementation.
 */
import type { SelectionRule } from './campaign';
import { type Candidate, commonest, type Label, type LabelPass, type Selection } from './capability';
import { comparable, countsOf, mean, populationStd, sumOf } from './statistics';

const outcomes = ['failed', 'passed'] as const;
const labelLists = { LACKING: 'lacking', PRESENT: 'present', NA: 'na' } as const;
const labelNames = Object.keys(labelLists) as (keyof typeof labelLists)[];
type CapabilityLabels = LabelPass['labels'][string];

/** The thresholds, and how many passes were planned where that is known: a pass that failed for good is one that did not vote. */
type Thresholds = Pick<SelectionRule, 'rho' | 'delta' | 'votes' | 'evidence'> & Partial<Pick<SelectionRule, 'passes'>>;

const quote = (ids: string[]) => ids.slice(0, 20).join(', ') + (ids.length > 20 ? ` and ${ids.length - 20} more` : '');

/**
 * Returns what is wrong with a pass; empty if nothing is. The lists of a capability must hold each trajectory once: as many failed and passed ones as
 * `totals` says, and the same ones as the first capability holds.
 */
export function checkPartition({ labels, totals }: LabelPass): string[] {
  return outcomes.flatMap((outcome) => {
    const lists = `lists lacking_${outcome}, present_${outcome}, na_${outcome}`;
    const total = totals[`total_${outcome}`];
    const held = Object.entries(labels).map(([name, own]) => ({
      name,
      counts: countsOf(labelNames.flatMap((label) => own[`${labelLists[label]}_${outcome}`])),
    }));
    return held.flatMap(({ name, counts }) => {
      const first = held[0]!;
      const ids = [...counts.keys()];
      const problems: [problem: string, ids: string[]][] = [
        ['hold twice', ids.filter((id) => counts.get(id)! > 1)],
        [`lack ids of "${first.name}"`, [...first.counts.keys()].filter((id) => !counts.has(id))],
        [`hold ids that "${first.name}" does not have`, ids.filter((id) => !first.counts.has(id))],
        [`hold ${ids.length} ids and totals.total_${outcome} is ${total}`, ids.length === total ? [] : ids],
      ];
      return problems.flatMap(([problem, wrong]) =>
        wrong.length > 0 ? [`capability "${name}": ${lists} ${problem}: ${quote(wrong)}`] : [],
      );
    });
  });
}

/** One capability in one pass. Rates are fractions; x/0 counts as 0. */
interface PassStatistics {
  coverage: number;
  delta: number;
  vote: boolean;
}

const ratio = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);

export function passStatistics(o: {
  labels: CapabilityLabels;
  totals: LabelPass['totals'];
  rule: Pick<Thresholds, 'rho' | 'delta'>;
}): PassStatistics {
  const { labels, totals, rule } = o;
  const coverage = ratio(labels.lacking_failed.length, totals.total_failed);
  const errorRate = (lacking: readonly string[], present: readonly string[]) =>
    ratio(lacking.length, lacking.length + present.length);
  const delta =
    errorRate(labels.lacking_failed, labels.present_failed) - errorRate(labels.lacking_passed, labels.present_passed);
  return { coverage, delta, vote: coverage >= rule.rho && comparable(delta) >= rule.delta };
}

const NO_CANDIDATE = 'no candidate: the analyst found none';

/** All candidates, for an analyst that labels none: `passes` is 0, so nothing was measured and the figures stand for nothing. */
export function selectOutright(candidates: readonly Candidate[]): Selection {
  const figure = { mean: 0, std: 0 };
  return {
    passes: 0,
    capabilities: candidates.map(({ name }) => ({
      name,
      coverage: figure,
      delta: figure,
      votes: 0,
      passes: 0,
      selected: true,
      evidence: [],
    })),
    ...(candidates.length === 0 && { reason: NO_CANDIDATE }),
  };
}

/** Applies the rule to the passes that there are, with the votes of the rule. Throws if one is not a partition. */
export function selectCapabilities({ passes, rule }: { passes: readonly LabelPass[]; rule: Thresholds }): Selection {
  for (const pass of passes) {
    const [problem] = checkPartition(pass);
    if (problem !== undefined) throw new Error(`pass ${pass.attempt}: ${problem}`);
  }
  const names = new Set(passes.flatMap((pass) => Object.keys(pass.labels)));
  const capabilities = [...names]
    .map((name) => summarize({ name, passes, rule }))
    .sort((a, b) => b.delta.mean - a.delta.mean || (a.name < b.name ? -1 : 1));
  const reason = capabilities.some((capability) => capability.selected) ? undefined : whyNothing(passes, rule, names);
  return { passes: passes.length, capabilities, ...(reason !== undefined && { reason }) };
}

function summarize({ name, passes, rule }: { name: string; passes: readonly LabelPass[]; rule: Thresholds }) {
  const containing = passes.flatMap(({ labels, totals }) => {
    const own = Object.hasOwn(labels, name) ? labels[name] : undefined;
    return own ? [{ labels: own, statistics: passStatistics({ labels: own, totals, rule }) }] : [];
  });
  const summary = (of: (statistics: PassStatistics) => number) => {
    const values = containing.map(({ statistics }) => of(statistics));
    return { mean: mean(values), std: populationStd(values) };
  };
  const votes = containing.filter(({ statistics }) => statistics.vote).length;
  const evidence = [...new Set(containing.flatMap(({ labels }) => labels.lacking_failed))].sort();
  return {
    name,
    coverage: summary((statistics) => statistics.coverage),
    delta: summary((statistics) => statistics.delta),
    votes,
    passes: containing.length,
    selected: votes >= rule.votes,
    evidence: evidence.slice(0, rule.evidence),
  };
}

function whyNothing(passes: readonly LabelPass[], rule: Thresholds, names: ReadonlySet<string>): string {
  const { rho, delta, votes, passes: planned = passes.length } = rule;
  if (passes.length < votes)
    return planned > passes.length
      ? `fewer passes (${passes.length} of ${planned}) than votes (${votes}): see why the others failed, or lower votes`
      : `fewer passes (${passes.length}) than votes (${votes}): add passes or lower votes`;
  if (passes.every((pass) => pass.totals.total_failed === 0))
    return 'no failed trajectory, so there is nothing to analyse';
  if (passes.every((pass) => pass.totals.total_passed === 0))
    return 'no passed trajectory, so there is nothing to contrast the failures with';
  if (names.size === 0) return NO_CANDIDATE;
  const failed = planned > passes.length ? `; ${planned} were planned` : '';
  return `no capability reached Cov >= ${rho} and Delta >= ${delta} in ${votes} of ${passes.length} passes${failed}`;
}

/** `alpha` is undefined where no trajectory has two labels, or all labels are the same. */
export interface Agreement {
  /** Krippendorff's: 1 is perfect, 0 is chance. */
  alpha: number | undefined;
  units: number;
}

/** Returns the agreement by capability, over the passes that label it. */
export const agreementOf = (passes: readonly LabelPass[]): Record<string, Agreement> =>
  Object.fromEntries(
    [...readingsOf(passes)]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, own]) => [
        name,
        krippendorffAlpha([...own.values()].map((readings) => readings.map(({ label }) => label))),
      ]),
  );

export interface Reading {
  pass: LabelPass['attempt'];
  label: Label;
  /** Set by analysts that give reasons. */
  reason?: string;
  message?: number | undefined;
}

/** Returns the labels by capability and trajectory, in the order of the passes. */
export function readingsOf(passes: readonly LabelPass[]): Map<string, Map<string, Reading[]>> {
  const all = new Map<string, Map<string, Reading[]>>();
  for (const { attempt: pass, labels, reasons } of passes)
    for (const [capability, lists] of Object.entries(labels)) {
      const own = all.get(capability) ?? new Map<string, Reading[]>();
      all.set(capability, own);
      for (const label of labelNames)
        for (const id of outcomes.flatMap((outcome) => lists[`${labelLists[label]}_${outcome}`])) {
          const reading = { pass, label, ...reasons?.[capability]?.[id] };
          if (!own.get(id)?.push(reading)) own.set(id, [reading]);
        }
    }
  return all;
}

/** The label of most; in a tie PRESENT comes first, as within a pass, and LACKING last. */
export function majorityOf(readings: readonly Pick<Reading, 'label'>[]): Label {
  const votes = (label: Label) => readings.filter((reading) => reading.label === label).length;
  return (['PRESENT', 'NA', 'LACKING'] as const).reduce((most, label) => (votes(label) > votes(most) ? label : most));
}

/** The readings that say LACKING, and the message that most of them cite, which so many do. */
export function lackingIn(readings: readonly Reading[]) {
  const lacking = readings.filter(({ label }) => label === 'LACKING');
  const { message, votes: citing = 0 } = commonest(lacking.flatMap(({ message }) => message ?? [])) ?? {};
  return { lacking, message, citing };
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
