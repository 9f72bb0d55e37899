/**
 * People's labels against the passes: the label of most passes, capability by capability. Invariant: only what both labeled is compared; a
 * coefficient that is not defined is left out, never 0.
 */
import { commonest, type Label, type LabelPass } from '../../domain/capability';
import { cohensKappa, krippendorffAlpha } from '../../domain/selection';
import { type HumanLabel, isMark } from './people';
import { alignColumns } from '../../terminal';
import { beginningsIn, labelNames, majority, votesOf } from './votes';

interface Compared {
  /** `all` of them, or one. */
  capability: string;
  compared: number;
  /** Share of equal labels. */
  observed?: number;
  kappa?: number;
  alpha?: number;
  /** By the person's label, then the passes'. */
  confusion: Record<Label, Record<Label, number>>;
  /** Of what both call LACKING, with a message by both. */
  steps: { compared: number; same: number; nextTo: number };
}

export interface Comparison {
  labels: number;
  passes: number;
  rows: Compared[];
  /** Where failures begin, if people marked it. */
  begins?: ComparedBegins;
}

interface Pair {
  capability: string;
  human: Label;
  passes: Label;
  /** How far apart both put the step. */
  apart?: number;
}

export function compare({
  labels,
  passes,
}: {
  labels: readonly HumanLabel[];
  passes: readonly LabelPass[];
}): Comparison {
  const allVotes = votesOf(passes);
  const pairs = labels.flatMap((given): Pair[] => {
    if (isMark(given)) return [];
    const { conversation, capability, label, message } = given;
    const votes = allVotes.get(capability)?.get(conversation);
    const most = votes && majority(votes);
    if (!most) return [];
    const step = stepOf({ passes, capability, conversation });
    const apart = label === 'LACKING' && most === label && message !== undefined && step !== undefined;
    return [{ capability, human: label, passes: most, ...(apart && { apart: Math.abs(message - step) }) }];
  });
  const begins = compareBegins({ labels, passes });
  const names = [...new Set(pairs.map(({ capability }) => capability))].sort();
  const pairsOf = (name: string) => pairs.filter(({ capability }) => capability === name);
  return {
    labels: labels.length,
    passes: passes.length,
    rows: [
      ...names.map((name) => comparedOf(name, pairsOf(name))),
      ...(names.length > 1 ? [comparedOf('all', pairs)] : []),
    ],
    ...(begins && { begins }),
  };
}

/** The message that most passes name that call it LACKING. */
const stepOf = (o: { passes: readonly LabelPass[]; capability: string; conversation: string }): number | undefined => {
  const { passes, capability, conversation } = o;
  const named = passes.flatMap((pass) => {
    const lists = pass.labels[capability];
    const lacks = lists?.lacking_failed.includes(conversation) || lists?.lacking_passed.includes(conversation);
    const message = pass.reasons?.[capability]?.[conversation]?.message;
    return lacks && message !== undefined ? [message] : [];
  });
  return commonest(named)?.message;
};

function comparedOf(capability: string, pairs: readonly Pair[]): Compared {
  const two = pairs.map(({ human, passes }) => [human, passes] as const);
  const { kappa, observed } = cohensKappa(two);
  const { alpha } = krippendorffAlpha(two);
  const apart = pairs.flatMap((pair) => pair.apart ?? []);
  const row = (human: Label) =>
    Object.fromEntries(
      labelNames.map((label) => [label, two.filter(([a, b]) => a === human && b === label).length]),
    ) as Record<Label, number>;
  return {
    capability,
    compared: pairs.length,
    ...(observed !== undefined && { observed }),
    ...(kappa !== undefined && { kappa }),
    ...(alpha !== undefined && { alpha }),
    confusion: Object.fromEntries(labelNames.map((human) => [human, row(human)])) as Compared['confusion'],
    steps: {
      compared: apart.length,
      same: apart.filter((distance) => distance === 0).length,
      nextTo: apart.filter((distance) => distance <= 1).length,
    },
  };
}

/** People's marks of where a failure begins against the message that the passes say together: shares of the `compared` failures, which have both. */
interface ComparedBegins {
  compared: number;
  same?: number;
  within1?: number;
  within2?: number;
}

/** Undefined where people marked none. */
function compareBegins(o: { labels: readonly HumanLabel[]; passes: readonly LabelPass[] }): ComparedBegins | undefined {
  const marks = o.labels.filter(isMark);
  if (marks.length === 0) return undefined;
  const begins = beginningsIn(o.passes);
  const apart = marks.flatMap(({ conversation, message }) => {
    const own = begins.get(conversation);
    return own ? [Math.abs(own.message - message)] : [];
  });
  const compared = apart.length;
  if (compared === 0) return { compared };
  const within = (most: number) => apart.filter((distance) => distance <= most).length / compared;
  return { compared, same: within(0), within1: within(1), within2: within(2) };
}

// As rows, for the terminal and the page.
export const comparisonHead = ['capability', 'labels', 'equal', 'kappa', 'alpha', 'same step', 'within 1'];

const decimal = (value: number | undefined): string => (value === undefined ? '–' : value.toFixed(2));

export const comparisonRow = ({ capability, compared, observed, kappa, alpha, steps }: Compared): string[] => [
  capability,
  String(compared),
  observed === undefined ? '–' : `${(100 * observed).toFixed(0)}%`,
  decimal(kappa),
  decimal(alpha),
  ...[steps.same, steps.nextTo].map((count) => (steps.compared === 0 ? '–' : `${count}/${steps.compared}`)),
];

export const confusionHead = ['people say', ...labelNames.map((label) => `passes: ${label}`)];

export const confusionRows = ({ confusion }: Compared): string[][] =>
  labelNames.map((human) => [human, ...labelNames.map((label) => String(confusion[human][label]))]);

export const comparisonIntro = ({ labels, passes }: Comparison): string =>
  `${labels} labels by people against the label of most of ${passes} passes (kappa: Cohen's, alpha: Krippendorff's; 1 is perfect, 0 is chance)`;

const percent = (share = 0): string => `${(100 * share).toFixed(0)}%`;

/** One line. */
export const beginsText = ({ compared, same, within1, within2 }: ComparedBegins): string =>
  compared === 0
    ? 'where failures begin: the passes tell it of no failure that people marked'
    : `where failures begin: the same message in ${percent(same)} of ${compared} failures, within 1 in ${percent(within1)}, within 2 in ${percent(within2)}`;

export function comparisonText(comparison: Comparison): string {
  const { rows, begins } = comparison;
  return [
    comparisonIntro(comparison),
    ...(begins ? ['', beginsText(begins)] : []),
    ...(rows.length > 0 ? ['', ...alignColumns([comparisonHead, ...rows.map(comparisonRow)])] : []),
    ...rows.flatMap((row) => [
      '',
      row.capability,
      ...alignColumns([confusionHead, ...confusionRows(row)]).map((line) => `  ${line}`),
    ]),
  ].join('\n');
}
