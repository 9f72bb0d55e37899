/**
 * Files of conversations (docs/conversations.md): JSON lines, logs of Inspect, and trajectories of Harbor (ATIF). Invariant: either every line of every file could be used, or
 * nothing is used and every bad line is named.
 */
import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { checkFile } from '../domain/allowed';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { countsOf } from '../domain/statistics';
import { isTrajectory, readTrajectory } from './atif';
import { conversionOf } from './convert';
import { readEvalLog, readJsonLog, isZip } from './inspect-log';
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
export const firstProblems = (problems: readonly string[]): string[] =>
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
  if (await isZip(file).catch(told)) return readEvalLog(file, { name: file, scorer });
  const body = await readFile(file).catch(told);
  if (body.subarray(0, SNIFFED_BYTES).includes(0))
    throw badInput([
      `${file} is no text; name JSON lines (docs/conversations.md), logs of Inspect (.eval, .json) or trajectories (ATIF)`,
    ]);
  const noted = openNotes();
  if (!isUtf8(body)) noted.oddities.push(NOT_UTF8);
  const value = file.endsWith('.json') ? jsonValue(body, noted.oddities) : undefined;
  if (value && !isTrajectory(value)) return readJsonLog(value, { name: file, scorer, oddities: noted.oddities });
  return readLines(value ? [{ value }] : linesOf(body), { name: file, scorer, noted });
}

const NOT_UTF8 = 'bytes that are not UTF-8 are read as U+FFFD';

/** The file's one value; undefined for JSON lines, of which there may be only one. */
function jsonValue(body: Buffer, oddities: string[]): object | undefined {
  const own: string[] = [];
  try {
    const value = readJson(body.toString('utf8').replace(/^\uFEFF/, ''), own);
    if (typeof value !== 'object' || value === null || 'messages' in value) return undefined;
    oddities.push(...own);
    return value;
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

/** Lines, or the one value of a file. */
async function readLines(
  lines: Iterable<{ line: number; text: string } | { value: object }>,
  { name, scorer, noted }: { name: string; scorer: string | undefined; noted: Noted },
): Promise<FileContents> {
  const conversations: Conversation[] = [];
  const problems: string[] = [];
  const seen: Seen = { unread: [], noted, unscored: 0 };
  for (const one of lines) {
    const [where, read] =
      'value' in one
        ? [name, await readTrajectory(one.value, { file: name, scorer, noted })]
        : [`${name}:${one.line}`, await readLine(one, { name, scorer, seen })];
    if (Array.isArray(read)) problems.push(...read.map((problem) => `${where} ${problem}`));
    else if (read) conversations.push(read);
    else seen.unscored += 1;
  }
  const { unread, unscored } = seen;
  const count = conversations.length + problems.length + unscored;
  if (count === 0)
    problems.push(`${name}: holds no line; write one conversation a line, as docs/conversations.md shows`);
  const notes = [
    ...(unscored > 0
      ? [
          `left out ${unscored} of ${count} trajectories: nothing says how they ended (extra.reward, or Harbor's result.json)`,
        ]
      : []),
    ...unreadNote('fields', unread),
    ...notesOf(noted),
  ];
  return { conversations, problems, notes: notes.map((note) => `${name}: ${note}`) };
}

/** A text may hold U+2028, which is no end of a line in JSON lines. */
export function* linesOf(body: Buffer): Generator<{ line: number; text: string }> {
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

/** What the notes tell of a file's lines. */
interface Seen {
  unread: string[];
  noted: Noted;
  /** Trajectories that nobody scored. */
  unscored: number;
}

/** @returns the problems of a line that can't be used; undefined for a trajectory that nobody scored. */
async function readLine(
  { line, text }: { line: number; text: string },
  { name, scorer, seen }: { name: string; scorer: string | undefined; seen: Seen },
): Promise<Conversation | string[] | undefined> {
  const { noted } = seen;
  let value: unknown;
  try {
    value = readJson(text, noted.oddities);
  } catch (error) {
    return [`is no JSON (${reasonOf(error)}): ${clipped(text)}; write each conversation as one line of JSON`];
  }
  if (isTrajectory(value)) return readTrajectory(value, { file: `${name}:${line}`, scorer, noted });
  if (isTooDeep(value)) return [`is nested too deep: ${clipped(value)}; a conversation is a list of messages`];
  const { data, error } = lineSchema.safeParse(value);
  if (!data) {
    const conversion = conversionOf(value);
    return conversion === undefined ? problemsIn(error, value) : [conversion];
  }
  const reward = rewardOf(data);
  if (typeof reward === 'string') return [reward];
  seen.unread.push(...Object.keys(data).filter((field) => !Object.hasOwn(lineSchema.shape, field)));
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
