/**
 * Files of conversations (docs/conversations.md), read as a whole: JSON lines, and logs of Inspect. Invariant: either every line of every file
 * could be used, or nothing is used and every bad line is named.
 */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { isZip, readEvalLog, readJsonLog } from './inspect-log';
import {
  type Conversation,
  type FileContents,
  lineFields,
  lineSchema,
  problemsIn,
  clipped,
  Tally,
  toMessages,
  toTool,
} from './messages';

const SHOWN = 20;
/** Bytes in which a file that is no text has a zero. */
const LOOKED_AT = 8192;

interface ReadInput {
  files: readonly string[];
  /** Of Inspect's logs with several. */
  scorer?: string | undefined;
}

/** @throws BadInput; the message's first line is the first problem, further lines are the others. */
export async function readConversations({
  files,
  scorer,
}: ReadInput): Promise<{ conversations: Conversation[]; notes: string[] }> {
  const read = await Promise.all(files.map(async (file) => ({ file, ...(await readOne({ file, scorer })) })));
  const problems = read.flatMap((one) => [...one.problems, ...repeatedIds(one)]);
  if (problems.length > 0) throw badInput(problems);
  const conversations = apart(read);
  return { conversations, notes: read.flatMap(({ notes }) => notes) };
}

const badInput = (problems: readonly string[]) => {
  const more = problems.length - SHOWN;
  return new OutsideFailure(
    'BadInput',
    [...problems.slice(0, SHOWN), ...(more > 0 ? [`and ${more} more like these`] : [])].join('\n'),
  );
};

async function readOne({ file, scorer }: { file: string; scorer: string | undefined }): Promise<FileContents> {
  const body = await readFile(file).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw badInput([`there is no file ${file}; name one with conversations`]);
    if (code === 'EISDIR') throw badInput([`${file} is a folder; name the files in it, such as ${file}/*.jsonl`]);
    throw badInput([`${file} can't be read: ${reasonOf(error)}`]);
  });
  if (isZip(body)) return readEvalLog({ body, name: file, scorer });
  if (body.subarray(0, LOOKED_AT).includes(0))
    throw badInput([`${file} is no text; name JSON lines (docs/conversations.md), or logs of Inspect (.eval, .json)`]);
  const whole = file.endsWith('.json') ? parsed(body) : undefined;
  return whole === undefined ? readJsonLines({ body, name: file }) : readJsonLog({ value: whole, name: file, scorer });
}

/** The object that the file is; a file of JSON lines is none. */
function parsed(body: Buffer): object | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8').replace(/^\uFEFF/, ''));
    return typeof value === 'object' && value !== null && !('messages' in value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function repeatedIds({ file, conversations }: { file: string; conversations: readonly Conversation[] }): string[] {
  const seen = new Set<string>();
  const twice = new Set<string>();
  for (const { id } of conversations) (seen.has(id) ? twice : seen).add(id);
  return [...twice].map(
    (id) => `${file}: id ${JSON.stringify(id)} is there more than once; give each conversation its own, or none`,
  );
}

/** Of several files: an id that two of them have begins with the file's name. */
function apart(read: readonly { file: string; conversations: Conversation[] }[]): Conversation[] {
  const all = read.flatMap(({ conversations }) => conversations);
  if (new Set(all.map(({ id }) => id)).size === all.length) return all;
  const names = read.map(({ file }) => basename(file));
  const prefix = (n: number): string =>
    names.indexOf(names[n] ?? '') === names.lastIndexOf(names[n] ?? '') ? (names[n] ?? '') : (read[n]?.file ?? '');
  return read.flatMap(({ conversations }, n) => conversations.map((one) => ({ ...one, id: `${prefix(n)}:${one.id}` })));
}

/** `name` is how the file is called in messages. */
function readJsonLines({ body, name }: { body: Buffer; name: string }): FileContents {
  const contents: FileContents = { conversations: [], problems: [], notes: [] };
  const unread = new Tally();
  const oddities = new Tally();
  for (const { line, text } of linesOf(body)) {
    const problems = (found: string[]) =>
      contents.problems.push(...found.map((problem) => `${name}:${line} ${problem}`));
    const read = readLine({ text, line, oddities });
    if ('problems' in read) problems(read.problems);
    else {
      contents.conversations.push(read.conversation);
      for (const field of read.unread) unread.add(field);
    }
  }
  if (contents.conversations.length + contents.problems.length === 0)
    contents.problems.push(`${name}: holds no line; write one conversation a line, as docs/conversations.md shows`);
  contents.notes.push(
    ...unread.line((list) => `${name}: fields that are not read: ${list}`),
    ...oddities.map((what, count) => `${name}: ${what} (${count})`),
  );
  return contents;
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

type Line = { problems: string[] } | { conversation: Conversation; unread: string[] };

function readLine({ text, line, oddities }: { text: string; line: number; oddities: Tally }): Line {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { problems: [`is no JSON (${reason}): ${clipped(text)}; write each conversation as one line of JSON`] };
  }
  const parsed = lineSchema.safeParse(value);
  if (!parsed.success) return { problems: problemsIn({ error: parsed.error, value }) };
  const { id = null, task = null, messages, reference, tools } = parsed.data;
  const reward = rewardOf(parsed.data);
  if (typeof reward === 'string') return { problems: [reward] };
  const own = id ?? String(line);
  return {
    conversation: {
      id: own,
      task: task ?? own,
      messages: toMessages({ raw: messages, oddities }),
      reward,
      ...(reference && { reference }),
      ...(tools && { tools: tools.map(toTool) }),
    },
    unread: Object.keys(parsed.data).filter((field) => !lineFields.includes(field)),
  };
}

type Outcome = {
  reward?: number | null | undefined;
  passed?: boolean | null | undefined;
  success?: boolean | null | undefined;
};

/** The reward, or what is wrong with it. */
function rewardOf({ reward, passed, success, ...others }: Outcome): number | string {
  const outcome = passed ?? success;
  if (passed != null && success != null && passed !== success)
    return `passed is ${passed} and success is ${success}; leave one of them out`;
  if (reward == null && outcome == null)
    return (
      `says nothing of how it ended (its fields: ${Object.keys(others).join(', ')}); ` +
      'give "reward" (0 to 1, where 1 is success), "passed" or "success" (true or false)'
    );
  if (reward != null && outcome != null && reward >= 1 !== outcome)
    return `reward is ${reward}, which is ${reward >= 1 ? 'a' : 'no'} success, and ${passed == null ? 'success' : 'passed'} is ${outcome}; leave one of them out`;
  return reward ?? (outcome ? 1 : 0);
}

/** Those of a file with at least this reward. @throws BadInput where the file can't be used, or has none. */
export async function takeConversations({
  file,
  minReward,
}: {
  file: string;
  minReward: number;
}): Promise<Conversation[]> {
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
