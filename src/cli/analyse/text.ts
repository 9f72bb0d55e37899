/** An analysis as short text on the terminal, and which capability explains each failure. */
import { countsOf } from '../../domain/statistics';
import { languageModelCost } from '../../report/build/cost';
import { dollarsText, valueText, wholeNumber } from '../../report/format';
import { clip, fittingWidth, tableLines } from '../../report/terminal';
import { failedPassesText } from '../../report/verdict';
import type { AnalysedFailure, Analysis } from './result';

export const FAULTS = { environment: 'fault of the environment', user: 'fault of the user' };
const NOT_EXPLAINED = 'not explained by a capability';

/** Returns the selected capabilities that most passes label LACKING, else whose fault it is; nothing if no pass labeled the failure. */
function explanationsOf({ begins, lacking }: AnalysedFailure, selected: ReadonlySet<string>): string[] {
  if (!begins) return [];
  if (begins.of !== 'agent') return [FAULTS[begins.of]];
  const names = lacking.filter(({ capability, label }) => label === 'LACKING' && selected.has(capability));
  return names.length > 0 ? names.map(({ capability }) => capability) : [NOT_EXPLAINED];
}

/** Returns the failures whose beginning the passes found, each with its explanations, and a line that counts them. */
export function explanations({ failures, selection }: Analysis) {
  const passes = selection.passes - selection.failedPasses.length;
  const selected = new Set(selection.candidates.flatMap((one) => (one.selected ? [one.name] : [])));
  const explained = failures.map((failure) => ({ ...failure, by: explanationsOf(failure, selected) }));
  const begun = explained.flatMap((one) => (one.begins ? [{ ...one, begins: one.begins }] : []));
  const counts = [...countsOf(explained.flatMap(({ by }) => by))].map(([what, number]) => `${what}: ${number}`);
  const summary = [`${begun.length} of ${failures.length} failed conversations`, ...counts].join('; ');
  return { passes, failures, begun, summary };
}

const MOST_FAILURES = 5;

export function analysisText(analysis: Analysis, columns?: number): string {
  const width = fittingWidth(columns);
  const { conversations, selection, spent, budget } = analysis;
  const { total, failed, passed } = conversations;
  const { begun, summary } = explanations(analysis);
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
