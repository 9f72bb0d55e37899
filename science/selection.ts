/**
 * What a selection would have been: by another rule, with fewer passes, or with the labels shuffled. Invariant: pure functions of stored labels,
 * through the project's own selection.
 */
import type { LabelPass } from '../src/domain/capability';
import { selectCapabilities, type Thresholds } from '../src/domain/selection';

/** The share of the passes that have to vote, where there are fewer of them. */
const VOTING = 0.8;

export interface Variant {
  name: string;
  rule: Thresholds;
  passes: number;
}

/** The rule as it is, and each of its constants by itself at other values. */
export function variantsOf(rule: Thresholds & { passes: number }): Variant[] {
  const of = (name: string, changed: Partial<Thresholds>, passes = rule.passes): Variant => ({
    name,
    passes,
    rule: { ...rule, ...changed, passes },
  });
  return [
    of(`as it is: N ${rule.passes}, rho ${rule.rho}, delta ${rule.delta}, K ${rule.votes}`, {}),
    ...[1, 3, 5]
      .filter((n) => n < rule.passes)
      .map((n) => of(`N ${n}, K ${Math.ceil(VOTING * n)}`, { votes: Math.ceil(VOTING * n) }, n)),
    ...[0.01, 0.05, 0.2, 0.3, 0.4].map((rho) => of(`rho ${rho}`, { rho })),
    ...[0.05, 0.1, 0.4, 0.6, 0.8].map((delta) => of(`delta ${delta}`, { delta })),
    ...[1, 5, 10].filter((votes) => votes <= rule.passes).map((votes) => of(`K ${votes}`, { votes })),
  ];
}

export const selectedBy = ({ passes, rule }: { passes: readonly LabelPass[]; rule: Thresholds }): string[] =>
  selectCapabilities({ passes, rule }).capabilities.flatMap(({ name, selected }) => (selected ? [name] : []));

type Lists = LabelPass['labels'][string];
type Outcome = 'failed' | 'passed';
const kinds = ['lacking', 'present', 'na'] as const;

/**
 * The same labels on trajectories of other outcomes: these are dealt out anew over all trajectories of all passes, of which each looks at a
 * sample. All labels of a trajectory stay together, so that passes agree as much as before.
 */
export function shuffledLabels(passes: readonly LabelPass[], random: () => number): LabelPass[] {
  const of = (outcome: Outcome) =>
    unionOf(passes.flatMap(({ labels }) => Object.values(labels).flatMap((lists) => idsOf(lists, outcome))));
  const failed = of('failed');
  const dealt = new Set(shuffled([...failed, ...of('passed')], random).slice(0, failed.length));
  return passes.map(({ attempt, labels }) => {
    const dealtOut = Object.entries(labels).map(([name, lists]) => [name, dealtLists(lists, dealt)] as const);
    const [some] = dealtOut.map(([, lists]) => lists);
    const total = (outcome: Outcome) => (some ? idsOf(some, outcome).flat().length : 0);
    const totals = { total_failed: total('failed'), total_passed: total('passed') };
    return { attempt, totals, labels: Object.fromEntries(dealtOut) };
  });
}

const idsOf = (lists: Lists, outcome: Outcome): string[][] => kinds.map((kind) => lists[`${kind}_${outcome}`]);

function dealtLists(lists: Lists, failed: ReadonlySet<string>): Lists {
  const of = (kind: (typeof kinds)[number], isFailed: boolean): string[] =>
    [...lists[`${kind}_failed`], ...lists[`${kind}_passed`]].filter((id) => failed.has(id) === isFailed);
  return {
    ...{ lacking_failed: of('lacking', true), present_failed: of('present', true), na_failed: of('na', true) },
    ...{ lacking_passed: of('lacking', false), present_passed: of('present', false), na_passed: of('na', false) },
  };
}

/** Fisher and Yates. */
function shuffled(values: readonly string[], random: () => number): string[] {
  const all = [...values];
  for (let last = all.length - 1; last > 0; last--) {
    const other = Math.floor(random() * (last + 1));
    [all[last], all[other]] = [all[other] as string, all[last] as string];
  }
  return all;
}

/** Each once, in the order in which they come. */
export const unionOf = (lists: readonly (readonly string[])[]): string[] => [...new Set(lists.flat())];
