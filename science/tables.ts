/** Tables of the results, as CSV. Whatever was not measured is a dash, never a number. */
import { type PairedTest, wilsonInterval } from '../src/domain/statistics';
import { MISSING, pText, shortSha, spreadText, valueText, wholeNumber } from '../src/report/format';
import type { Span } from '../src/report/comparison';
import type { Source } from './campaigns';
import { LEVEL, type Row } from './rows';

export interface Table {
  head: readonly string[];
  rows: readonly (readonly string[])[];
  /** The campaigns that it rests on; without them it rests on no campaign. */
  campaigns?: readonly Source[];
}

const csvCell = (text: string): string => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

export const csvOf = ({ head, rows }: Table): string =>
  [head, ...rows].map((cells) => `${cells.map(csvCell).join(',')}\n`).join('');

/** Which campaigns each table rests on: name, seed and the report's hash, with which `campaign lineage` goes on. */
export const campaignsTable = (tables: Readonly<Record<string, Table>>): Table => ({
  head: ['table', 'campaign', 'seed', 'report', 'commit', 'failed'],
  rows: Object.entries(tables).flatMap(([name, { campaigns = [] }]) =>
    campaigns.map(({ campaign, seed, reportSha256, commit, failed }) => [
      name,
      campaign,
      `${seed}`,
      shortSha(reportSha256 ?? ''),
      commit ?? '',
      failed ?? '',
    ]),
  ),
});

type Unit = 'fraction' | 'difference';

const ends = ({ low, high }: { low: number; high: number }, unit: Unit): string =>
  spreadText({ unit, interval: { low, high, level: LEVEL, method: '' } }) ?? MISSING;

/** `74.5% (70.2 to 78.8)`. */
export const spanText = (span: Span | undefined, unit: Unit): string =>
  span ? `${valueText({ value: span.value, unit })} (${ends(span, unit)})` : MISSING;

/** `3 × 200`: seeds and tasks. */
export const sizeText = (span: Span | undefined): string => (span ? `${span.runs} × ${span.tasks}` : MISSING);

/** `9 of 10, 90.0% (59.6 to 98.2)`. */
export function shareText(successes: number, trials: number): string {
  if (trials === 0) return MISSING;
  const { mean, low, high } = wilsonInterval({ successes, trials, confidence: LEVEL });
  const value = valueText({ value: mean, unit: 'fraction' });
  return `${successes} of ${trials}, ${value} (${ends({ low, high }, 'fraction')})`;
}

const testText = (test: PairedTest | undefined): string =>
  test ? `+${test.better} -${test.worse} p ${pText(test.p)}` : MISSING;

const count = (value: number | undefined): string => (value === undefined ? MISSING : wholeNumber(value));

/** `reasons`: of rows that have no figures, by name. */
export function rowsTable(o: { rows: readonly Row[]; reasons?: Readonly<Record<string, string>> }): Table {
  const { rows, reasons = {} } = o;
  const against = rows[0]?.differences.map((difference) => difference.against) ?? [];
  return {
    head: [
      'policy',
      'training rollouts',
      'all rollouts',
      'success',
      'n',
      ...against.flatMap((name) => [`minus ${name}`, `McNemar by seed`]),
      'by seed',
    ],
    rows: rows.map((row) => [
      row.name,
      count(row.trainingRollouts),
      count(row.allRollouts),
      row.success ? spanText(row.success, 'fraction') : (reasons[row.name] ?? MISSING),
      sizeText(row.success),
      ...row.differences.flatMap(({ difference, tests }) => [
        spanText(difference, 'difference'),
        tests.map(testText).join('; ') || MISSING,
      ]),
      row.bySeed.map(({ seed, success }) => `${seed}: ${valueText({ value: success, unit: 'fraction' })}`).join(', '),
    ]),
  };
}
