/**
 * Labels by people: JSON lines or CSV. A line labels a conversation for a capability, or, without one, marks the message where its failure
 * begins. Invariant: what a line names the passes know, each pair once; a file with a line of which they don't is refused, and each such line
 * is named.
 */
import { CsvError, parse as parseCsv } from 'csv-parse/sync';
import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import type { LabelPass } from '../../domain/capability';
import { messageOf, nearest, UserError } from '../errors';
import type { Place } from './folder';
import { beginningsIn, type CapabilityVotes, labelNames, votesOf } from './votes';

/** Index into the conversation's messages. */
const messageSchema = z.number().int().nonnegative();
const labelSchema = z.strictObject({
  conversation: z.string(),
  capability: z.string(),
  label: z.enum(labelNames),
  message: messageSchema.optional(),
});
/** Where a failure begins. */
const markSchema = z.strictObject({ conversation: z.string(), message: messageSchema });
const humanLabelSchema = z.union([labelSchema, markSchema]);
export type HumanLabel = z.infer<typeof humanLabelSchema>;
export type Mark = z.infer<typeof markSchema>;

export const isMark = (label: HumanLabel): label is Mark => !('capability' in label);

const SHOWN = 20;

/** @throws UserError that names each bad line. */
export function readHumanLabels({ file, passes }: { file: string; passes: readonly LabelPass[] }): HumanLabel[] {
  const votes = votesOf(passes);
  const failures = [...beginningsIn(passes).keys()];
  const labels: HumanLabel[] = [];
  const problems: string[] = [];
  const lines = new Map<string, number>();
  for (const { line, value } of valuesOf(file)) {
    const read = typeof value === 'string' ? value : toLabel(value, { votes, failures });
    if (typeof read === 'string') problems.push(`${file}:${line} ${read}`);
    else {
      const [pair, what] = isMark(read)
        ? [read.conversation, `marks where ${read.conversation} begins to fail`]
        : [`${read.conversation}\n${read.capability}`, `labels ${read.conversation} for ${read.capability}`];
      const before = lines.get(pair);
      lines.set(pair, line);
      if (before !== undefined)
        problems.push(`${file}:${line} ${what} again, after line ${before}; leave one of them out`);
      labels.push(read);
    }
  }
  if (labels.length + problems.length === 0)
    problems.push(
      `${file}: holds no label; give lines such as {"conversation": "12", "capability": "...", "label": "LACKING"}`,
    );
  if (problems[0] === undefined) return labels;
  const more = problems.length - SHOWN;
  throw new UserError(problems[0], [...problems.slice(1, SHOWN), ...(more > 0 ? [`and ${more} more like these`] : [])]);
}

/** Those that were imported before. */
export function keptLabels({ humanLabels }: Pick<Place, 'humanLabels'>): HumanLabel[] | undefined {
  if (!existsSync(humanLabels)) return undefined;
  try {
    return z.array(humanLabelSchema).parse(JSON.parse(readFileSync(humanLabels, 'utf8')));
  } catch (error) {
    throw new UserError(`${humanLabels} is damaged (${messageOf(error)}); import the labels again`);
  }
}

type Value = Record<string, unknown>;

/** A line's fields; text says what is wrong with the line. */
function valuesOf(file: string): { line: number; value: Value | string }[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw new UserError(`${file} can't be read (${messageOf(error)}); name a file with labels, JSON lines or CSV`);
  }
  if (!text.trimStart().startsWith('{')) return csvRows(text);
  return text.split('\n').flatMap((line, n) => (line.trim() === '' ? [] : [{ line: n + 1, value: parsed(line) }]));
}

function parsed(line: string): Value | string {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === 'object' && value !== null) return value as Value;
  } catch {
    // Said below.
  }
  return 'is no JSON object; write one label a line';
}

interface Known {
  votes: CapabilityVotes;
  /** Conversations of which the passes say where their failure begins. */
  failures: readonly string[];
}

/** The label, or what is wrong with it. */
function toLabel(value: Value, { votes, failures }: Known): HumanLabel | string {
  const text = (field: string): string => String(value[field] ?? '').trim();
  const [conversation, capability] = [text('conversation') || text('rollout'), text('capability')];
  const marks = capability === '' && text('label') === '';
  const known = votes.get(capability);
  if (!known && !marks) return `capability is "${capability}"; ${oneOf(capability, [...votes.keys()])}`;
  if (conversation === '') return 'conversation is missing; give the id of one';
  const ids = known ? [...known.keys()] : failures;
  const found = ids.includes(conversation) ? [conversation] : ids.filter((id) => isBeginning(conversation, id));
  if (found.length !== 1 || found[0] === undefined)
    return (
      `conversation is "${conversation}", ${marks ? 'of which no pass says where it begins to fail' : `which no pass labels for ${capability}`}; ` +
      oneOf(conversation, ids)
    );
  if (marks) return toMark(found[0], text('message'));
  const label = labelNames.find((name) => name === text('label').toUpperCase());
  if (!label) return `label is "${text('label')}"; it must be one of ${labelNames.join(', ')}`;
  const message = text('message');
  if (!/^\d*$/.test(message))
    return `message is "${message}"; it must be a message's number, counted from 0, or be left out`;
  return { conversation: found[0], capability, label, ...(message !== '' && { message: Number(message) }) };
}

const toMark = (conversation: string, message: string): Mark | string =>
  /^\d+$/.test(message)
    ? { conversation, message: Number(message) }
    : `message is "${message}"; without a capability it must be the number of the message where the failure begins, counted from 0`;

/** Of a rollout's key, the first 8 characters or more are enough. */
const isBeginning = (text: string, id: string): boolean =>
  text.length >= 8 && /^[0-9a-f]{64}$/.test(id) && id.startsWith(text);

function oneOf(word: string, known: readonly string[]): string {
  if (known.length === 0) return 'there is none';
  const guess = nearest(word, known);
  if (guess !== undefined) return `did you mean "${guess}"?`;
  return `there is ${known.slice(0, 10).join(', ')}${known.length > 10 ? ` and ${known.length - 10} more` : ''}`;
}

const HEAD = 'begin with a line such as conversation,capability,label,message';

interface CsvRecord {
  record: string[];
  info: { lines: number };
}

/** As spreadsheets write it: with commas or semicolons. */
function csvRows(text: string): { line: number; value: Value | string }[] {
  let records: CsvRecord[];
  try {
    const delimiter = /^[^\n,]*;/.test(text) ? ';' : ',';
    const options = { delimiter, relax_column_count: true, skip_empty_lines: true, trim: true };
    // With `info` each record comes with where it stands, of which the package's types know nothing.
    records = parseCsv(text, { ...options, info: true }) as unknown as CsvRecord[];
  } catch (error) {
    const line = error instanceof CsvError && typeof error['lines'] === 'number' ? error['lines'] : 1;
    return [{ line, value: `is no CSV (${messageOf(error)}); ${HEAD}` }];
  }
  const [head, ...rows] = records;
  const names = head?.record.map((name) => name.toLowerCase()) ?? [];
  // Marks of where failures begin have neither.
  const marks = names.includes('message') && !names.includes('capability') && !names.includes('label');
  const missing = marks ? [] : ['capability', 'label'].filter((name) => !names.includes(name));
  if (!names.includes('conversation') && !names.includes('rollout')) missing.unshift('conversation');
  if (missing.length > 0)
    return [{ line: head?.info.lines ?? 1, value: `has no column ${missing.join(', ')}; ${HEAD}` }];
  return rows
    .filter(({ record }) => record.some((cell) => cell !== ''))
    .map(({ record, info }) => ({
      line: info.lines,
      value: Object.fromEntries(names.map((name, n): [string, unknown] => [name, record[n] ?? ''])),
    }));
}
