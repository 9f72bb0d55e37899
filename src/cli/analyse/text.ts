/** An analysis as short text on the terminal. */
import { countsOf } from '../../domain/statistics';
import { languageModelCost } from '../../report/build/cost';
import { dollarsText, valueText, wholeNumber } from '../../report/format';
import { clip, fittingWidth, tableLines } from '../../report/terminal';
import { failedPassesText } from '../../report/verdict';
import type { Analysis } from './result';

const MOST_FAILURES = 5;

export function analysisText(analysis: Analysis, columns?: number): string {
  const width = fittingWidth(columns);
  const { conversations, selection, failures, spent, budget } = analysis;
  const { total, failed, passed } = conversations;
  const begun = failures.flatMap((one) => (one.begins ? [{ ...one, begins: one.begins }] : []));
  const counts = [...countsOf(failures.flatMap(({ explainedBy }) => explainedBy))].map(([what, n]) => `${what}: ${n}`);
  const summary = [`${begun.length} of ${failures.length} failed conversations`, ...counts].join('; ');
  const { total: cost } = languageModelCost(spent, budget) ?? {};
  const rows = selection.candidates.map(({ name, votes, passes, coverage, selected }) => [
    name,
    passes === 0 ? 'given' : `${votes}/${passes}`,
    coverage ? valueText(coverage) : '',
    selected ? 'yes' : 'no',
  ]);
  const shown = begun.slice(0, MOST_FAILURES).map(({ conversation, begins, messages }) => {
    return `${conversation}, message ${begins.message} of ${messages}: ${begins.reason}`;
  });
  const prose = (...lines: (string | false | undefined)[]): string[] =>
    lines.flatMap((line) => (line ? clip(line, width, 3) : []));
  return [
    ...prose(
      `${wholeNumber(total)} conversations: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed`,
      failedPassesText(selection),
      selection.reason,
    ),
    ...tableLines(['capability', 'votes', 'of failures', 'selected'], rows, width),
    ...prose(
      begun.length > 0 && `where each failure begins: ${summary}`,
      ...shown,
      begun.length > shown.length && `${begun.length - shown.length} more on the page`,
      cost && `language model: ${wholeNumber(cost.requests)} requests, ${dollarsText(cost.dollars)}`,
    ),
  ].join('\n');
}
