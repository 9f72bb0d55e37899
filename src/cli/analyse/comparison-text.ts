/** A comparison of people's labels with the passes, as rows: for the terminal and the page. */
import type { Compared, Comparison } from './compare';
import type { ComparedBegins } from './compare-begins';
import { aligned } from './table';
import { labelNames } from './tally';

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
    ...(rows.length > 0 ? ['', ...aligned([comparisonHead, ...rows.map(comparisonRow)])] : []),
    ...rows.flatMap((row) => [
      '',
      row.capability,
      ...aligned([confusionHead, ...confusionRows(row)]).map((line) => `  ${line}`),
    ]),
  ].join('\n');
}
