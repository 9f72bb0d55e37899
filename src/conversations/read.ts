/**
 * Reads files of conversations (docs/conversations.md): JSON lines and logs of Inspect. Invariant: either every line of every file is used, or
 * nothing is used and every bad line is named.
 */
import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { checkFile } from '../domain/allowed';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { countsOf } from '../domain/statistics';
import { conversionOf } from './convert';
import { isZip, readSamples, samplesIn } from './inspect-log';
import { readJson } from './json';
import {
  clipped,
  type Conversation,
  type FileContents,
  isTooDeep,
  lineSchema,
  type Noted,
  notesOf,
  openNotes,
  problemsIn,
  rewardOf,
  toMessages,
  toTool,
  unreadNote,
} from './messages';

const SHOWN = 20;
/** A file with a zero among its first bytes is no text. */
const SNIFFED_BYTES = 8192;

/**
 * `scorer`: whose score counts in a log of Inspect with several.
 * @throws BadInput; the message's first line is the first problem, further lines are the others.
 */
export async function readConversations(o: {
  files: readonly string[];
  scorer?: string | undefined;
}): Promise<{ conversations: Conversation[]; notes: string[] }> {
  const contents: (FileContents & { file: string })[] = [];
  // One after the other: a shell gives thousands of names, and a process may not open as many files.
  for (const file of o.files) contents.push({ file, ...(await readOne(file, o.scorer)) });
  const problems = contents.flatMap((one) => [...one.problems, ...repeatedIds(one)]);
  if (problems.length > 0) throw badInput(problems);
  return { conversations: withDistinctIds(contents), notes: firstProblems(contents.flatMap(({ notes }) => notes)) };
}

/** The first of many problems or notes, and how many more there are. */
const firstProblems = (problems: readonly string[]): string[] =>
  problems.length > SHOWN
    ? [...problems.slice(0, SHOWN), `and ${problems.length - SHOWN} more like these`]
    : [...problems];

const badInput = (problems: readonly string[]) => new OutsideFailure('BadInput', firstProblems(problems).join('\n'));

async function readOne(file: string, scorer: string | undefined): Promise<FileContents> {
  const told = (error: unknown): never => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw badInput([`there is no file ${file}; name one with conversations`]);
    if (code === 'EISDIR') throw badInput([`${file} is a folder; name the files in it, such as ${file}/*.jsonl`]);
    throw badInput([`${file} can't be read: ${reasonOf(error)}`]);
  };
  const body = await readFile(file).catch(told);
  const noted = openNotes();
  const { oddities } = noted;
  const log = { name: file, scorer, oddities };
  if (isZip(body))
    return readSamples(samplesIn(body, oddities), log).catch((error: unknown) =>
      unreadable(`${file}: can't be read (${reasonOf(error)}); ${CONVERT}`),
    );
  if (body.subarray(0, SNIFFED_BYTES).includes(0))
    throw badInput([`${file} is no text; name JSON lines (docs/conversations.md) or logs of Inspect (.eval, .json)`]);
  if (!isUtf8(body)) oddities.push(NOT_UTF8);
  const value = file.endsWith('.json') ? jsonValue(body, oddities) : undefined;
  if (!value) return readLines(body, { name: file, noted });
  if (!Array.isArray(value['samples'])) return unreadable(`${file}${problemOf(value)}`);
  return readSamples(value['samples'], log);
}

const unreadable = (problem: string): FileContents => ({ conversations: [], problems: [problem], notes: [] });

const CONVERT = 'write it as JSON with `inspect log convert --to json --output-dir FOLDER FILE`';

/** Says what is wrong with a JSON file that is no log. */
function problemOf(value: object): string {
  if (Array.isArray(value)) return ": a list; write one conversation a line: `jq -c '.[]' FILE.json > FILE.jsonl`";
  const conversion = conversionOf(value);
  if (conversion !== undefined) return ` ${conversion}`;
  return `: no log of Inspect with samples, nor JSON lines (one conversation a line); its fields: ${Object.keys(value).join(', ')}`;
}

const NOT_UTF8 = 'bytes that are not UTF-8 are read as U+FFFD';

/** The file's one value; undefined for JSON lines, of which there may be only one. */
function jsonValue(body: Buffer, oddities: string[]): Record<string, unknown> | undefined {
  const own: string[] = [];
  try {
    const value = readJson(body.toString('utf8').replace(/^\uFEFF/, ''), own);
    if (typeof value !== 'object' || value === null || 'messages' in value) return undefined;
    oddities.push(...own);
    return value as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

const repeatedIds = ({ file, conversations }: { file: string; conversations: readonly Conversation[] }): string[] =>
  [...countsOf(conversations.map(({ id }) => id))].flatMap(([id, count]) =>
    count > 1
      ? [`${file}: id ${JSON.stringify(id)} is there more than once; give each conversation its own, or none`]
      : [],
  );

/** Where two files have the same id, each id begins with its file's name. */
function withDistinctIds(contents: readonly { file: string; conversations: Conversation[] }[]): Conversation[] {
  const all = contents.flatMap(({ conversations }) => conversations);
  if (new Set(all.map(({ id }) => id)).size === all.length) return all;
  const names = countsOf(contents.map(({ file }) => basename(file)));
  return contents.flatMap(({ file, conversations }) => {
    const prefix = names.get(basename(file)) === 1 ? basename(file) : file;
    return conversations.map((one) => ({ ...one, id: `${prefix}:${one.id}` }));
  });
}

function readLines(body: Buffer, { name, noted }: { name: string; noted: Noted }): FileContents {
  const conversations: Conversation[] = [];
  const problems: string[] = [];
  const unread: string[] = [];
  let failed = 0;
  for (const { line, text } of linesOf(body)) {
    const read = readLine({ line, text }, { noted, unread });
    if (Array.isArray(read)) problems.push(...read.map((problem) => `${name}:${line} ${problem}`));
    else if (read) conversations.push(read);
    else failed += 1;
  }
  const count = conversations.length + problems.length + failed;
  if (count === 0)
    problems.push(`${name}: holds no line; write one conversation a line, as docs/conversations.md shows`);
  const notes = [
    ...(failed > 0 ? [`left out ${failed} of ${count} conversations: they have an error and no reward`] : []),
    ...unreadNote('fields', unread),
    ...notesOf(noted),
  ];
  return { conversations, problems, notes: notes.map((note) => `${name}: ${note}`) };
}

/** A text may hold U+2028, which is no end of a line in JSON lines. */
function* linesOf(body: Buffer): Generator<{ line: number; text: string }> {
  for (let start = 0, line = 1; start < body.length; line++) {
    const found = body.indexOf(10, start);
    const end = found < 0 ? body.length : found;
    const text = body
      .toString('utf8', start, end)
      .replace(/^\uFEFF/, '')
      .trim();
    if (text !== '') yield { line, text };
    start = end + 1;
  }
}

/** Returns the problems of a line that can't be used, and undefined for a conversation that failed (infrastructure). */
function readLine(
  { line, text }: { line: number; text: string },
  { noted, unread }: { noted: Noted; unread: string[] },
): Conversation | string[] | undefined {
  let value: unknown;
  try {
    value = readJson(text, noted.oddities);
  } catch (error) {
    return [`is no JSON (${reasonOf(error)}): ${clipped(text)}; write each conversation as one line of JSON`];
  }
  if (isTooDeep(value)) return [`is nested too deep: ${clipped(value)}; a conversation is a list of messages`];
  if (hasFailed(value)) return undefined;
  const { data, error } = lineSchema.safeParse(value);
  if (!data) {
    const conversion = conversionOf(value);
    return conversion === undefined ? problemsIn(error, value) : [conversion];
  }
  const reward = rewardOf(data);
  if (typeof reward === 'string') return [reward];
  unread.push(...Object.keys(data).filter((field) => !Object.hasOwn(lineSchema.shape, field)));
  const { messages, reference, tools = data.functions, system } = data;
  const id = data.id ?? String(line);
  if (system) noted.oddities.push('system is read as the first message, and numbered so');
  return {
    id,
    task: data.task ?? id,
    messages: toMessages([...(system ? [{ role: 'system' as const, content: system }] : []), ...messages], noted),
    reward,
    ...(reference && { reference }),
    ...(tools && { tools: tools.map(toTool) }),
  };
}

function hasFailed(value: unknown): boolean {
  const { error, reward, passed, success } = (value ?? {}) as Record<string, unknown>;
  return Boolean(error) && (reward ?? passed ?? success) == null;
}

/** Those of a file with at least this reward. @throws BadInput where the file can't be used, or has none. */
export async function takeConversations(o: { file: string; minReward: number }): Promise<Conversation[]> {
  const { file, minReward } = o;
  checkFile('conversations', file);
  const { conversations } = await readConversations({ files: [file] });
  const taken = conversations.filter(({ reward }) => reward >= minReward);
  if (taken.length > 0) return taken;
  const best = Math.max(...conversations.map(({ reward }) => reward));
  throw new OutsideFailure(
    'BadInput',
    `${file}: none of its ${conversations.length} conversations has a reward of ${minReward} or more (the best has ${best}); ` +
      'lower minReward, or name a file of successful ones',
  );
}
