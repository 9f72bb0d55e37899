/**
 * Labels by people against the label of most passes, capability by capability, and where both say that a failure begins. Only what both labeled is
 * compared; a coefficient that is not defined is left out.
 */
import { beginningOf, type Label, type LabelPass } from '../../domain/capability';
import { cohensKappa, krippendorffAlpha, labelNames, lackingIn, majorityOf, readingsOf } from '../../domain/selection';
import { type Blocks, fold, heading, paragraph, table } from '../../report/blocks';
import type { HumanLabel } from './people';

export type Comparison = ReturnType<typeof compare>;

export function compare(labels: readonly HumanLabel[], passes: readonly LabelPass[]) {
  const readings = readingsOf(passes);
  const pairs = labels.flatMap((given): Pair[] => {
    if (!('label' in given)) return [];
    const { conversation, capability, label, message } = given;
    const own = readings.get(capability)?.get(conversation);
    if (!own) return [];
    const ofMost = majorityOf(own);
    const apart = label === 'LACKING' && ofMost === label ? distance(message, lackingIn(own).message) : [];
    return [{ capability, human: label, passes: ofMost, apart }];
  });
  const names = [...new Set(pairs.map(({ capability }) => capability))].sort();
  const rows = names.map((name) =>
    comparedOf(
      name,
      pairs.filter(({ capability }) => capability === name),
    ),
  );
  const marks = labels.filter((given) => !('label' in given));
  const apart = marks.flatMap(({ conversation, message }) =>
    distance(message, beginningOf(passes.flatMap(({ failures }) => failures?.[conversation] ?? []))?.message),
  );
  const share = (most: number) => (apart.length > 0 ? within(apart, most) / apart.length : undefined);
  return {
    labels: labels.length,
    passes: passes.length,
    rows: names.length > 1 ? [...rows, comparedOf('all', pairs)] : rows,
    /** Where failures begin, if people marked it: shares of the `compared` failures, of which both say it. */
    begins:
      marks.length > 0 ? { compared: apart.length, same: share(0), within1: share(1), within2: share(2) } : undefined,
  };
}

interface Pair {
  capability: string;
  human: Label;
  passes: Label;
  /** How far apart both put the step, where both call it LACKING and name a message. */
  apart: number[];
}

const distance = (a: number | undefined, b: number | undefined): number[] =>
  a === undefined || b === undefined ? [] : [Math.abs(a - b)];
const within = (apart: readonly number[], most: number): number => apart.filter((one) => one <= most).length;

const byLabel = <Value>(of: (label: Label) => Value) =>
  Object.fromEntries(labelNames.map((label) => [label, of(label)])) as Record<Label, Value>;

/** `capability`: `all` of them, or one. */
function comparedOf(capability: string, pairs: readonly Pair[]) {
  const two = pairs.map(({ human, passes }) => [human, passes] as const);
  const { kappa, observed } = cohensKappa(two);
  const apart = pairs.flatMap((pair) => pair.apart);
  return {
    capability,
    compared: pairs.length,
    observed,
    kappa,
    alpha: krippendorffAlpha(two).alpha,
    /** By the person's label, then the passes'. */
    confusion: byLabel((human) => byLabel((label) => two.filter(([a, b]) => a === human && b === label).length)),
    steps: { compared: apart.length, same: within(apart, 0), nextTo: within(apart, 1) },
  };
}

const percent = (share: number | undefined) => (share === undefined ? undefined : `${(100 * share).toFixed(0)}%`);

export function comparisonBlocks({ labels, passes, rows, begins }: Comparison): Blocks {
  const steps = (count: 'same' | 'nextTo') => (row: Comparison['rows'][number]) =>
    row.steps.compared === 0 ? undefined : `${row.steps[count]}/${row.steps.compared}`;
  return [
    heading('Labels by people'),
    paragraph(
      `${labels} labels by people against the label of most of ${passes} passes (kappa: Cohen's, alpha: Krippendorff's; 1 is perfect, 0 is chance)`,
    ),
    begins &&
      paragraph(
        begins.compared === 0
          ? 'where failures begin: the passes tell it of no failure that people marked'
          : `where failures begin: the same message in ${percent(begins.same)} of ${begins.compared} failures, within 1 in ${percent(begins.within1)}, within 2 in ${percent(begins.within2)}`,
      ),
    table(rows, [
      ['capability', ({ capability }) => capability],
      ['labels', ({ compared }) => `${compared}`],
      ['equal', ({ observed }) => percent(observed)],
      ['kappa', ({ kappa }) => kappa?.toFixed(2)],
      ['alpha', ({ alpha }) => alpha?.toFixed(2)],
      ['same step', steps('same')],
      ['within 1', steps('nextTo')],
    ]),
    ...rows.map(({ capability, confusion }) =>
      fold(`${capability}: label by label`, [
        table(labelNames, [
          ['people say', (human) => human],
          ...labelNames.map((label) => [`passes: ${label}`, (human: Label) => `${confusion[human][label]}`] as const),
        ]),
      ]),
    ),
  ];
}
