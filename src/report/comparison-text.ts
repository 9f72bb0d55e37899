/** A comparison of runs as short text on a terminal. */
import type { Comparison } from './comparison';
import { byRunText, measuredText, percent, standingTexts, valueText } from './format';
import { clip, fittingWidth, tableLines } from './terminal';

/** Returns the policies over all runs, the routed policy beside each, and what limits the comparison. */
export function comparisonText(comparison: Comparison, columns?: number): string {
  const width = fittingWidth(columns);
  const { runs, target, baseModel, arms, differences } = comparison;
  const rows = arms.map(({ name, successRate, allRollouts, byRun }) => [
    ...[name, measuredText(successRate), valueText(allRollouts)],
    byRun.map((one) => percent(one.successRate)).join(' '),
  ]);
  const pairs = differences.map((pair) => {
    const { arm, against, standing, difference } = pair;
    const shown = standing === 'same_policy' ? '' : `${measuredText(difference)}, `;
    return `${arm} to ${against}: ${shown}${standingTexts[standing]}; by run: ${byRunText(pair)}`;
  });
  return [
    ...clip(`${runs.length} runs on ${target.name} ${target.version}, base model ${baseModel}`, width),
    ...tableLines(['policy', 'success rate', 'rollouts', 'by run'], rows, width),
    ...[...pairs, ...comparison.notes].flatMap((text) => clip(text, width)),
  ].join('\n');
}
