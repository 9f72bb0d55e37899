/**
 * Reads files of conversations (docs/conversations.md): JSON lines and logs of Inspect. Invariant: either every line of every file is used, or
 * nothing is used and every bad line is named.
 */
import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { countsOf } from '../domain/statistics';
import { conversionOf } from './convert';
import { isZip, readSamples, samplesIn } from './inspect-log';
import { readJson } from './json';
import { type Conversation, readLine } from './line';

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
  const contents: FileContents[] = [];
  // One after the other: a shell gives thousands of names, and a process may not open as many files.
  for (const file of o.files) contents.push(await readOne(file, o.scorer));
  const problems = contents.flatMap((one) => [...one.problems, ...repeatedIds(one)]);
  if (problems.length > 0) throw badInput(problems);
  const notes = contents.flatMap(({ file, warnings }) =>
    [...countsOf(warnings)].map(([text, count]) => `${file}: ${text} (${count})`),
  );
  return { conversations: withDistinctIds(contents), notes: firstProblems(notes) };
}

/** The first of many problems or notes, and how many more there are. */
const firstProblems = (problems: readonly string[]): string[] =>
  problems.length > SHOWN
    ? [...problems.slice(0, SHOWN), `and ${problems.length - SHOWN} more like these`]
    : [...problems];

const badInput = (problems: readonly string[]) => new OutsideFailure('BadInput', firstProblems(problems).join('\n'));

/** The contents of one file. A file with problems is not used at all. */
interface FileContents {
  file: string;
  conversations: Conversation[];
  /** Each names file, line, field, value and fix. */
  problems: string[];
  /** Sentences about what is left out, or read in another way than it is written. */
  warnings: string[];
}

async function readOne(file: string, scorer: string | undefined): Promise<FileContents> {
  const body = await readFile(file).catch((error: unknown) => {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') throw badInput([`there is no file ${file}; name one with conversations`]);
    if (code === 'EISDIR') throw badInput([`${file} is a folder; name the files in it, such as ${file}/*.jsonl`]);
    throw badInput([`${file} can't be read: ${reasonOf(error)}`]);
  });
  const warnings: string[] = [];
  const contents = { file, conversations: [], warnings };
  const samplesOf = (samples: Parameters<typeof readSamples>[0]) => readSamples(samples, { file, scorer, warnings });
  if (isZip(body))
    return samplesOf(samplesIn(body, warnings)).then(
      (read) => ({ ...contents, ...read }),
      (error: unknown) => ({ ...contents, problems: [`${file}: can't be read (${reasonOf(error)}); ${CONVERT}`] }),
    );
  if (body.subarray(0, SNIFFED_BYTES).includes(0))
    throw badInput([`${file} is no text; name JSON lines (docs/conversations.md) or logs of Inspect (.eval, .json)`]);
  if (!isUtf8(body)) warnings.push('bytes that are not UTF-8 are read as U+FFFD');
  const value = file.endsWith('.json') ? jsonValue(body, warnings) : undefined;
  if (!value) return { ...contents, ...readLines(body, file, warnings) };
  if (!Array.isArray(value['samples'])) return { ...contents, problems: [`${file}${problemOf(value)}`] };
  return { ...contents, ...(await samplesOf(value['samples'])) };
}

const CONVERT = 'write it as JSON with `inspect log convert --to json --output-dir FOLDER FILE`';

/** Says what is wrong with a JSON file that is no log. */
function problemOf(value: object): string {
  if (Array.isArray(value)) return ": a list; write one conversation a line: `jq -c '.[]' FILE.json > FILE.jsonl`";
  const conversion = conversionOf(value);
  if (conversion !== undefined) return ` ${conversion}`;
  return `: no log of Inspect with samples, nor JSON lines (one conversation a line); its fields: ${Object.keys(value).join(', ')}`;
}

/** The file's one value; undefined for JSON lines, of which there may be only one. */
function jsonValue(body: Buffer, warnings: string[]): Record<string, unknown> | undefined {
  const own: string[] = [];
  try {
    const value = readJson(body.toString('utf8').replace(/^\uFEFF/, ''), own);
    if (typeof value !== 'object' || value === null || 'messages' in value) return undefined;
    warnings.push(...own);
    return value as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

const repeatedIds = ({ file, conversations }: FileContents): string[] =>
  [...countsOf(conversations.map(({ id }) => id))].flatMap(([id, count]) =>
    count > 1
      ? [`${file}: id ${JSON.stringify(id)} is there more than once; give each conversation its own, or none`]
      : [],
  );

/** Where two files have the same id, each id begins with its file's name. */
function withDistinctIds(contents: readonly FileContents[]): Conversation[] {
  const all = contents.flatMap(({ conversations }) => conversations);
  if (new Set(all.map(({ id }) => id)).size === all.length) return all;
  const names = countsOf(contents.map(({ file }) => basename(file)));
  return contents.flatMap(({ file, conversations }) => {
    const prefix = names.get(basename(file)) === 1 ? basename(file) : file;
    return conversations.map((one) => ({ ...one, id: `${prefix}:${one.id}` }));
  });
}

function readLines(body: Buffer, file: string, warnings: string[]): Pick<FileContents, 'conversations' | 'problems'> {
  const conversations: Conversation[] = [];
  const problems: string[] = [];
  let count = 0;
  for (const { line, text } of linesOf(body)) {
    count += 1;
    const read = readLine(text, line, warnings);
    if (typeof read === 'string') problems.push(`${file}:${line} ${read}`);
    else if (read) conversations.push(read);
  }
  if (count === 0)
    problems.push(`${file}: holds no line; write one conversation a line, as docs/conversations.md shows`);
  return { conversations, problems };
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
