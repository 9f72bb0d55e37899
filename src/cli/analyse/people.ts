/**
 * Labels by people (JSON lines or CSV) against the passes: the label of most of them, capability by capability. A line labels a conversation for a
 * capability or, without one, marks the message where its failure begins. Invariants: a file is refused that names what the passes don't know, or
 * something twice, and each such line is named; only what both labeled is compared; a coefficient that is not defined is left out.
 */
import { CsvError, parse as parseCsv } from 'csv-parse/sync';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { firstProblems } from '../../conversations/read';
import { beginningOf, commonest, type Label, type LabelPass } from '../../domain/capability';
import { cohensKappa, krippendorffAlpha } from '../../domain/selection';
import { type Blocks, fold, heading, paragraph, table } from '../../report/blocks';
import { messageOf, nearest, UserError } from '../errors';
import { labelNames, majority, votesOf } from './result';

/** Index into the conversation's messages. */
const message = z.number().int().nonnegative();
const labelSchema = z.strictObject({
  conversation: z.string(),
  capability: z.string(),
  label: z.enum(labelNames),
  message: message.optional(),
});
const markSchema = z.strictObject({ conversation: z.string(), message });
export const humanLabelsSchema = z.array(z.union([labelSchema, markSchema]));
export type HumanLabel = z.infer<typeof humanLabelsSchema>[number];

const isMark = (label: HumanLabel): label is z.infer<typeof markSchema> => !('capability' in label);

/** What a line holds, or what is wrong with it. */
type Row = { line: number; value: Record<string, unknown> | string };

/** @throws UserError that names each bad line. */
export function readHumanLabels({ file, passes }: { file: string; passes: readonly LabelPass[] }): HumanLabel[] {
  const [votes, failures] = [votesOf(passes), [...beginningsIn(passes).keys()]];
  const labels: HumanLabel[] = [];
  const problems: string[] = [];
  const lines = new Map<string, number>();
  for (const { line, value } of rowsOf(file)) {
    const read = typeof value === 'string' ? value : toLabel(value, votes, failures);
    if (typeof read === 'string') {
      problems.push(`${file}:${line} ${read}`);
      continue;
    }
    const { conversation } = read;
    const what = isMark(read)
      ? `marks where ${conversation} begins to fail`
      : `labels ${conversation} for ${read.capability}`;
    const before = lines.get(what);
    if (before !== undefined)
      problems.push(`${file}:${line} ${what} again, after line ${before}; leave one of them out`);
    lines.set(what, line);
    labels.push(read);
  }
  if (labels.length + problems.length === 0)
    problems.push(
      `${file}: holds no label; give lines such as {"conversation": "12", "capability": "...", "label": "LACKING"}`,
    );
  const [first, ...others] = firstProblems(problems);
  if (first === undefined) return labels;
  throw new UserError(first, others);
}

function rowsOf(file: string): Row[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw new UserError(`${file} can't be read (${messageOf(error)}); name a file with labels, JSON lines or CSV`);
  }
  if (!text.trimStart().startsWith('{')) return csvRows(text);
  return text.split('\n').flatMap((line, n) => (line.trim() === '' ? [] : [{ line: n + 1, value: jsonObject(line) }]));
}

function jsonObject(line: string): Row['value'] {
  const problem = 'is no JSON object; write one label a line';
  try {
    return z.record(z.string(), z.unknown()).safeParse(JSON.parse(line)).data ?? problem;
  } catch {
    return problem;
  }
}

const HEAD = 'begin with a line such as conversation,capability,label,message';

/** As spreadsheets write it: with commas or semicolons. */
function csvRows(text: string): Row[] {
  const options = {
    delimiter: /^[^\n,]*;/.test(text) ? ';' : ',',
    columns: columnsOf,
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
    trim: true,
    info: true,
  };
  try {
    // With `info` each record comes with where it stands, of which the package's types know nothing.
    const records = parseCsv(text, options) as unknown as { record: Record<string, string>; info: { lines: number } }[];
    return records.map(({ record, info }) => ({ line: info.lines, value: record }));
  } catch (error) {
    const line = error instanceof CsvError && typeof error['lines'] === 'number' ? error['lines'] : 1;
    const problem = error instanceof CsvError ? `is no CSV (${messageOf(error)})` : messageOf(error);
    return [{ line, value: `${problem}; ${HEAD}` }];
  }
}

/** Marks of where failures begin have neither capability nor label. */
function columnsOf(head: readonly string[]): string[] {
  const names = head.map((name) => name.toLowerCase());
  const has = (...some: string[]) => some.some((name) => names.includes(name));
  const needed = has('message') && !has('capability', 'label') ? [] : ['capability', 'label'];
  const missing = [...(has('conversation', 'rollout') ? [] : ['conversation']), ...needed.filter((name) => !has(name))];
  if (missing.length > 0) throw new Error(`has no column ${missing.join(', ')}`);
  return names;
}

/** `failures`: conversations of which the passes say where their failure begins. */
function toLabel(
  value: Record<string, unknown>,
  votes: ReturnType<typeof votesOf>,
  failures: readonly string[],
): HumanLabel | string {
  const text = (field: string): string => String(value[field] ?? '').trim();
  const [named, capability, at] = [text('conversation') || text('rollout'), text('capability'), text('message')];
  const marks = capability === '' && text('label') === '';
  const known = votes.get(capability);
  if (!known && !marks) return `capability is "${capability}"; ${oneOf(capability, [...votes.keys()])}`;
  if (named === '') return 'conversation is missing; give the id of one';
  const ids = known ? [...known.keys()] : failures;
  const [conversation, ...others] = ids.includes(named) ? [named] : ids.filter((id) => isBeginning(named, id));
  if (conversation === undefined || others.length > 0) {
    const why = marks ? 'of which no pass says where it begins to fail' : `which no pass labels for ${capability}`;
    return `conversation is "${named}", ${why}; ${oneOf(named, ids)}`;
  }
  if (marks)
    return /^\d+$/.test(at)
      ? { conversation, message: Number(at) }
      : `message is "${at}"; without a capability it must be the number of the message where the failure begins, counted from 0`;
  const label = labelNames.find((name) => name === text('label').toUpperCase());
  if (!label) return `label is "${text('label')}"; it must be one of ${labelNames.join(', ')}`;
  if (!/^\d*$/.test(at)) return `message is "${at}"; it must be a message's number, counted from 0, or be left out`;
  return { conversation, capability, label, ...(at !== '' && { message: Number(at) }) };
}

/** Of a rollout's key, the first 8 characters or more are enough. */
const isBeginning = (text: string, id: string): boolean =>
  text.length >= 8 && /^[0-9a-f]{64}$/.test(id) && id.startsWith(text);

function oneOf(word: string, known: readonly string[]): string {
  if (known.length === 0) return 'there is none';
  const guess = nearest(word, known);
  if (guess !== undefined) return `did you mean "${guess}"?`;
  return `there is ${known.slice(0, 10).join(', ')}${known.length > 10 ? ` and ${known.length - 10} more` : ''}`;
}

/** Where each failure begins, by trajectory. */
function beginningsIn(passes: readonly LabelPass[]): Map<string, number> {
  const ids = new Set(passes.flatMap(({ failures = {} }) => Object.keys(failures)));
  return new Map(
    [...ids].flatMap((id) => {
      const begins = beginningOf(passes.flatMap(({ failures }) => failures?.[id] ?? []));
      return begins ? [[id, begins.message] as const] : [];
    }),
  );
}

export type Comparison = ReturnType<typeof compare>;

export function compare({ labels, passes }: { labels: readonly HumanLabel[]; passes: readonly LabelPass[] }) {
  const votes = votesOf(passes);
  const pairs = labels.flatMap((given): Pair[] => {
    if (isMark(given)) return [];
    const { conversation, capability, label, message } = given;
    const own = votes.get(capability)?.get(conversation);
    if (!own) return [];
    const most = majority(own);
    const step = label === 'LACKING' && most === label ? stepOf(passes, capability, conversation) : undefined;
    const apart = message !== undefined && step !== undefined ? Math.abs(message - step) : undefined;
    return [{ capability, human: label, passes: most, apart }];
  });
  const names = [...new Set(pairs.map(({ capability }) => capability))].sort();
  const rows = names.map((name) =>
    comparedOf(
      name,
      pairs.filter(({ capability }) => capability === name),
    ),
  );
  const marks = labels.filter(isMark);
  return {
    labels: labels.length,
    passes: passes.length,
    rows: names.length > 1 ? [...rows, comparedOf('all', pairs)] : rows,
    // Where failures begin, if people marked it.
    ...(marks.length > 0 && { begins: compareMarks(marks, beginningsIn(passes)) }),
  };
}

interface Pair {
  capability: string;
  human: Label;
  passes: Label;
  /** How far apart both put the step, where both call it LACKING and name a message. */
  apart: number | undefined;
}

/** The message that most passes name that call it LACKING. */
function stepOf(passes: readonly LabelPass[], capability: string, conversation: string): number | undefined {
  const named = passes.flatMap((pass) => {
    const lists = pass.labels[capability];
    const lacks = lists?.lacking_failed.includes(conversation) || lists?.lacking_passed.includes(conversation);
    return lacks ? (pass.reasons?.[capability]?.[conversation]?.message ?? []) : [];
  });
  return commonest(named)?.message;
}

type Confusion = Record<Label, Record<Label, number>>;
const byLabel = <Value>(of: (label: Label) => Value) =>
  Object.fromEntries(labelNames.map((label) => [label, of(label)])) as Record<Label, Value>;

/** `capability`: `all` of them, or one. */
function comparedOf(capability: string, pairs: readonly Pair[]) {
  const two = pairs.map(({ human, passes }) => [human, passes] as const);
  const { kappa, observed } = cohensKappa(two);
  const { alpha } = krippendorffAlpha(two);
  const apart = pairs.flatMap((pair) => pair.apart ?? []);
  const within = (most: number) => apart.filter((distance) => distance <= most).length;
  // By the person's label, then the passes'.
  const confusion: Confusion = byLabel((human) =>
    byLabel((label) => two.filter(([a, b]) => a === human && b === label).length),
  );
  return {
    capability,
    compared: pairs.length,
    ...(observed !== undefined && { observed }),
    ...(kappa !== undefined && { kappa }),
    ...(alpha !== undefined && { alpha }),
    confusion,
    steps: { compared: apart.length, same: within(0), nextTo: within(1) },
  };
}

/** Shares of the `compared` failures, of which both say where they begin. */
function compareMarks(marks: readonly z.infer<typeof markSchema>[], begins: ReadonlyMap<string, number>) {
  const apart = marks.flatMap(({ conversation, message }) => {
    const own = begins.get(conversation);
    return own === undefined ? [] : [Math.abs(own - message)];
  });
  const compared = apart.length;
  const within = (most: number) => apart.filter((distance) => distance <= most).length / compared;
  return { compared, ...(compared > 0 && { same: within(0), within1: within(1), within2: within(2) }) };
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
