/**
 * Labels by people, from JSON lines or CSV. A line labels a conversation for a capability or, without one, marks the message where its failure
 * begins. A file is refused that names what the passes don't know, or something twice, and each such line is named.
 */
import { CsvError, parse as parseCsv } from 'csv-parse/sync';
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { firstProblems, linesOf } from '../../conversations/read';
import type { LabelPass } from '../../domain/capability';
import { labelNames, readingsOf } from '../../domain/selection';
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
