/**
 * Labels by people, from JSON lines or CSV: a line labels a conversation for a capability or, without one, marks the message where its failure begins.
 * A file is refused that names what the passes don't know, or something twice. They are held against the label of most passes, capability by
 * capability: only what both labeled is compared, and a coefficient that is not defined is left out.
 */
import { readFileSync } from 'node:fs';
import { CsvError, parse as parseCsv } from 'csv-parse/sync';
import { z } from 'zod';
import { firstProblems, linesOf } from '../../conversations/read';
import { beginningOf, type Label, type LabelPass } from '../../domain/capability';
import { cohensKappa, krippendorffAlpha, labelNames, lackingIn, majorityOf, readingsOf } from '../../domain/selection';
import { type Blocks, fold, heading, paragraph, table } from '../../report/blocks';
import { messageOf, nearest, UserError } from '../errors';

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

/** The conversations that can be named: by the capability that the passes label them for, and those of which they say where the failure begins. */
interface Known {
  labeled: ReadonlyMap<string, readonly string[]>;
  failed: readonly string[];
}

/** @throws UserError that names each bad line. */
export function readHumanLabels(file: string, passes: readonly LabelPass[]): HumanLabel[] {
  const known: Known = {
    labeled: new Map([...readingsOf(passes)].map(([capability, own]) => [capability, [...own.keys()]])),
    failed: [...new Set(passes.flatMap(({ failures = {} }) => Object.keys(failures)))],
  };
  const labels: HumanLabel[] = [];
  const problems: string[] = [];
  const lines = new Map<string, number>();
  for (const { line, fields } of rowsOf(file)) {
    const read = typeof fields === 'string' ? fields : toLabel(fields, known);
    if (typeof read === 'string') {
      problems.push(`${file}:${line} ${read}`);
      continue;
    }
    const { conversation } = read;
    const what =
      'label' in read ? `labels ${conversation} for ${read.capability}` : `marks where ${conversation} begins to fail`;
    const before = lines.get(what);
    if (before !== undefined)
      problems.push(`${file}:${line} ${what} again, after line ${before}; leave one of them out`);
    lines.set(what, line);
    labels.push(read);
  }
  const none = `${file}: holds no label; give lines such as {"conversation": "12", "capability": "...", "label": "LACKING"}`;
  const [first, ...others] = firstProblems(labels.length + problems.length === 0 ? [none] : problems);
  if (first !== undefined) throw new UserError(first, others);
  return labels;
}

/** The fields of each line, or what is wrong with it. */
type Rows = { line: number; fields: Record<string, unknown> | string }[];

function rowsOf(file: string): Rows {
  let body: Buffer;
  try {
    body = readFileSync(file);
  } catch (error) {
    throw new UserError(`${file} can't be read (${messageOf(error)}); name a file with labels, JSON lines or CSV`);
  }
  const lines = [...linesOf(body)];
  if (!lines[0]?.text.startsWith('{')) return csvRows(body.toString('utf8').replace(/^\uFEFF/, ''));
  return lines.map(({ line, text }) => ({ line, fields: jsonFields(text) }));
}

function jsonFields(text: string): Record<string, unknown> | string {
  const problem = 'is no JSON object; write one label a line';
  try {
    return z.record(z.string(), z.unknown()).safeParse(JSON.parse(text)).data ?? problem;
  } catch {
    return problem;
  }
}

/** As spreadsheets write it: with commas or semicolons. */
function csvRows(text: string): Rows {
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
    return records.map(({ record, info }) => ({ line: info.lines, fields: record }));
  } catch (error) {
    const line = error instanceof CsvError && typeof error['lines'] === 'number' ? error['lines'] : 1;
    const problem = error instanceof CsvError ? `is no CSV (${messageOf(error)})` : messageOf(error);
    return [{ line, fields: `${problem}; begin with a line such as conversation,capability,label,message` }];
  }
}

/** Marks of where failures begin have neither capability nor label. */
function columnsOf(head: readonly string[]): string[] {
  const names = head.map((name) => name.toLowerCase());
  const marksAlone = names.includes('message') && !names.includes('capability') && !names.includes('label');
  const missing = ['conversation', ...(marksAlone ? [] : ['capability', 'label'])].filter(
    (name) => !names.includes(name) && !(name === 'conversation' && names.includes('rollout')),
  );
  if (missing.length > 0) throw new Error(`has no column ${missing.join(', ')}`);
  return names;
}

function toLabel(fields: Record<string, unknown>, { labeled, failed }: Known): HumanLabel | string {
  const text = (field: string): string => String(fields[field] ?? '').trim();
  const [named, capability, at] = [text('conversation') || text('rollout'), text('capability'), text('message')];
  const isMark = capability === '' && text('label') === '';
  const ids = isMark ? failed : labeled.get(capability);
  if (!ids) return `capability is "${capability}"; ${oneOf(capability, [...labeled.keys()])}`;
  const [conversation, ...others] = ids.includes(named) ? [named] : ids.filter((id) => isBeginning(named, id));
  if (conversation === undefined || others.length > 0) {
    const why = isMark ? 'of which no pass says where it begins to fail' : `which no pass labels for ${capability}`;
    return `conversation is "${named}", ${why}; ${oneOf(named, ids)}`;
  }
  if (!/^\d*$/.test(at) || (isMark && at === '')) {
    const what = isMark ? 'the number of the message where the failure begins' : "a message's number, or be left out";
    return `message is "${at}"; it must be ${what}; numbers count from 0`;
  }
  if (isMark) return { conversation, message: Number(at) };
  const label = labelNames.find((name) => name === text('label').toUpperCase());
  if (!label) return `label is "${text('label')}"; it must be one of ${labelNames.join(', ')}`;
  return { conversation, capability, label, message: at === '' ? undefined : Number(at) };
}

/** Of a rollout's key, the first 8 characters or more are enough. */
const isBeginning = (text: string, id: string): boolean =>
  text.length >= 8 && /^[0-9a-f]{64}$/.test(id) && id.startsWith(text);

function oneOf(word: string, known: readonly string[]): string {
  const guess = nearest(word, known);
  if (guess !== undefined) return `did you mean "${guess}"?`;
  return `there is ${known.slice(0, 10).join(', ') || 'none'}${known.length > 10 ? ` and ${known.length - 10} more` : ''}`;
}

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
