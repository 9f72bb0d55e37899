/** A comparison on a terminal. Invariant: no line is longer than the terminal is wide. */
import { shortPercent, valueText, wholeNumber } from '../format';
import { align, clip, wrap } from '../terminal-columns';
import type { Comparison } from './comparison';
import { differenceText, heldOutText, notesOf, pairText, rateText, spanText } from './words';

const [WIDTH, NARROWEST] = [99, 40];

export function comparisonText(comparison: Comparison, columns: number = WIDTH): string {
  const width = Math.max(NARROWEST, Math.min(columns, WIDTH));
  const { target, runs, arms, differences, level } = comparison;
  const interval = `${shortPercent(level)} interval`;
  const rows = [
    ['arm', 'runs', 'train', 'all', 'success', interval, 'to base', 'interval', 'by run'],
    ...arms.map((arm) => [
      arm.name,
      `${arm.byRun.length}`,
      wholeNumber(arm.trainingRollouts),
      wholeNumber(arm.allRollouts),
      rateText(arm.successRate.value),
      spanText(arm.successRate, 'fraction'),
      arm.differenceToBase ? differenceText(arm.differenceToBase.value) : '',
      arm.differenceToBase ? spanText(arm.differenceToBase, 'difference') : '',
      arm.byRun
        .map(({ successRate }) => valueText({ value: successRate, unit: 'fraction' }).replace('%', ''))
        .join(' '),
    ]),
  ];
  const table = align(
    { rows, widths: [30, 4, 9, 9, 8, 14, 8, 14, 30], right: [1, 2, 3, 4, 6], spare: [3, 7, 5, 1, 8] },
    width,
  );
  const said = [
    ...differences.map(pairText),
    'success on held-out train tasks of the target at so many training rollouts, mean over the runs:',
    ...arms.flatMap((arm) => heldOutText(arm) ?? []),
    ...notesOf(comparison),
  ];
  return [
    clip(`${runs.length} runs on ${target.name} ${target.version}`, width),
    '',
    ...table,
    'train, all: rollouts of training, and all to come to the arm; means over the runs',
    '',
    ...said.flatMap((line) => wrap(line, width)),
  ].join('\n');
}
