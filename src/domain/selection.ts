/**
 * Selection of the lacking capabilities (the method's step 1.4), as pure functions over labeling passes. The result does not depend on the order of passes,
 * capabilities or ids. Delta is compared with its threshold after rounding to 8 decimals, so that 0.6 - 0.4 reaches 0.2; the figures are not rounded, as in
 * the published implementation.
 */
import { isDeepStrictEqual } from 'node:util';
import type { SelectionRule } from './campaign';
import { type Candidate, commonest, type Label, type LabelPass, type Selection } from './capability';
import { comparable, mean, populationStd } from './statistics';

const outcomes = ['failed', 'passed'] as const;
const labelLists = { LACKING: 'lacking', PRESENT: 'present', NA: 'na' } as const;
const labelNames = Object.keys(labelLists) as (keyof typeof labelLists)[];
type CapabilityLabels = LabelPass['labels'][string];

/** The thresholds, and the number of planned passes if known: a pass that failed for good counts as one that did not vote. */
type Thresholds = Pick<SelectionRule, 'rho' | 'delta' | 'votes' | 'evidence'> & Partial<Pick<SelectionRule, 'passes'>>;

/** Returns the problem if a pass does not list each trajectory once, and the same ones for every capability; undefined if there is none. */
export function partitionProblem({ labels, totals }: LabelPass): string | undefined {
  for (const outcome of outcomes) {
    const idsOf = (own: CapabilityLabels) =>
      labelNames.flatMap((label) => own[`${labelLists[label]}_${outcome}`]).sort();
    const [first] = Object.values(labels).map(idsOf);
    for (const [name, own] of Object.entries(labels)) {
      const ids = idsOf(own);
      const total = totals[`total_${outcome}`];
      if (new Set(ids).size === total && ids.length === total && isDeepStrictEqual(ids, first)) continue;
      const lists = `lacking_${outcome}, present_${outcome} and na_${outcome}`;
      return `capability "${name}": ${lists} are no partition of the ${total} trajectories that ${outcome}`;
    }
  }
  return undefined;
}

interface PassStatistics {
  coverage: number;
  delta: number;
  vote: boolean;
}

const ratio = (part: number, whole: number) => (whole === 0 ? 0 : part / whole);

function passStatistics(o: {
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

/** Applies the rule to the given passes. `rule.votes` stays the same if there are fewer passes than planned. */
export function selectCapabilities({ passes, rule }: { passes: readonly LabelPass[]; rule: Thresholds }): Selection {
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

export interface Reading {
  pass: LabelPass['attempt'];
  label: Label;
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

/** Returns the most frequent label. In a tie PRESENT precedes NA, and LACKING is last, as within a pass. */
export function majorityOf(readings: readonly Pick<Reading, 'label'>[]): Label {
  const votes = (label: Label) => readings.filter((reading) => reading.label === label).length;
  return (['PRESENT', 'NA', 'LACKING'] as const).reduce((most, label) => (votes(label) > votes(most) ? label : most));
}

/** Tasks by the label that more than half of the readings of a capability give their trajectories; `mixed` if no label has more than half. */
export interface TasksByLabel {
  lacking: string[];
  present: string[];
  mixed: string[];
}

/** `taskOf` maps the id of a trajectory to its task. Tasks that are mostly NA are in no list. */
export function tasksByLabel(o: {
  passes: readonly LabelPass[];
  capability: string;
  taskOf: ReadonlyMap<string, string>;
}): TasksByLabel {
  const byTask = new Map<string, Label[]>();
  for (const [id, readings] of readingsOf(o.passes).get(o.capability) ?? []) {
    const task = o.taskOf.get(id);
    if (task === undefined) continue;
    byTask.set(task, [...(byTask.get(task) ?? []), ...readings.map(({ label }) => label)]);
  }
  const tasks: TasksByLabel = { lacking: [], present: [], mixed: [] };
  for (const [task, labels] of byTask) {
    const isMost = (label: Label) => 2 * labels.filter((one) => one === label).length > labels.length;
    if (isMost('LACKING')) tasks.lacking.push(task);
    else if (isMost('PRESENT')) tasks.present.push(task);
    else if (!isMost('NA')) tasks.mixed.push(task);
  }
  return tasks;
}

/** Returns the number of LACKING readings, the message that most of them cite, and the first of their reasons. */
export function lackingIn(readings: readonly Reading[]) {
  const lacking = readings.filter(({ label }) => label === 'LACKING');
  const { message } = commonest(lacking.flatMap(({ message }) => message ?? [])) ?? {};
  const says = lacking.find((one) => one.reason !== undefined && one.message === message)?.reason;
  return { lacking: lacking.length, message, says };
}
