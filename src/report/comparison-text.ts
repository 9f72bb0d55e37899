/** A comparison of runs as short text on a terminal. */
import type { ComparedPair, Comparison } from './comparison';
import { measuredText, percent, testText, valueText, wholeNumber } from './format';
import { clip, fittingWidth, tableLines } from './terminal';

/** Returns the policies over all runs, the routed policy beside each, and what limits the comparison. */
export function comparisonText(comparison: Comparison, columns?: number): string {
  const width = fittingWidth(columns);
  const { runs, target, baseModel, arms, differences } = comparison;
  const rate = (value: number): string => valueText({ value, unit: 'fraction' });
  const rows = arms.map(({ name, successRate, allRollouts, byRun }) => [
    name,
    rate(successRate.value),
    'low' in successRate ? `${percent(successRate.low)} to ${percent(successRate.high)}` : '',
    wholeNumber(allRollouts),
    byRun.map((one) => rate(one.successRate)).join(' '),
  ]);
  return [
    ...clip(`${runs.length} runs on ${target.name} ${target.version}, base model ${baseModel}`, width),
    ...tableLines(['policy', 'success rate', 'interval', 'rollouts', 'by run'], rows, width),
    ...differences.flatMap((pair) => clip(pairText(pair), width)),
    ...comparison.notes.flatMap((text) => clip(text, width)),
  ].join('\n');
}

const standingText = {
  ahead: 'better over trainings',
  behind: 'worse over trainings',
  undecided: 'no significant difference over trainings',
  one_training: 'one training of each',
  same_policy: 'one policy',
} as const satisfies Record<ComparedPair['standing'], string>;

/** `trace to grpo_target: +3.5 pt (-4.0 to +11.0), one training of each; by run: demo +3.5 pt, better on 20 tasks, worse on 13, p 0.296`. */
function pairText({ arm, against, difference, standing, byRun }: ComparedPair): string {
  const runs = byRun.map(({ run, difference: value, test, samePolicy }) => {
    const tested = samePolicy ? 'one policy' : testText({ test });
    return [`${run} ${valueText({ value, unit: 'difference' })}`, tested].filter(Boolean).join(', ');
  });
  const { value, low, high } = difference;
  const head =
    standing === 'same_policy'
      ? `${arm} and ${against} are one policy, and their figures samples of it`
      : `${arm} to ${against}: ${measuredText({ value, unit: 'difference', interval: { low, high, level: 0, method: '' } })}, ${standingText[standing]}`;
  return `${head}; by run: ${runs.join('; ')}`;
}
