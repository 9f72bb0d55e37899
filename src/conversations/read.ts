/**
 * Reads files of conversations (docs/conversations.md): JSON lines, lists and logs of Inspect. Invariant: either every line of every file is
 * used, or nothing is used and every bad line is named.
 */
import { isUtf8 } from 'node:buffer';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { badInput, reasonOf } from '../domain/failures';
import { countsOf } from '../domain/statistics';
import { conversationsIn, fieldsIn } from './forms';
import { isZip, readSamples, samplesIn } from './inspect-log';
import { readJson } from './json';
import { type Conversation, readLine } from './line';

const SHOWN = 20;

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
  if (problems.length > 0) throw refusal(problems);
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

const refusal = (problems: readonly string[]) => badInput(firstProblems(problems).join('\n'));

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
    throw refusal([`${file} can't be read: ${reasonOf(error)}; name a file of conversations`]);
  });
  const warnings: string[] = [];
  const contents = { file, conversations: [], warnings };
  const samplesOf = (samples: Parameters<typeof readSamples>[0]) => readSamples(samples, { file, scorer, warnings });
  if (isZip(body))
    return samplesOf(samplesIn(body)).then(
      (read) => ({ ...contents, ...read }),
      (error: unknown) => ({ ...contents, problems: [`${file}: can't be read (${reasonOf(error)}); ${CONVERT}`] }),
    );
  // Text has no zero among its first bytes.
  if (body.subarray(0, 8192).includes(0)) throw refusal([`${file} is no text; name JSON lines or logs of Inspect`]);
  if (!isUtf8(body)) warnings.push('bytes that are not UTF-8 are read as U+FFFD');
  const value = jsonValue(body.toString('utf8').trim());
  const { samples } = fieldsIn(value);
  if (Array.isArray(samples)) return { ...contents, ...(await samplesOf(samples)) };
  return { ...contents, ...readLines(value === undefined ? linesIn(body) : listIn(value, file), file, warnings) };
}

const CONVERT = 'write it as JSON with `inspect log convert --to json --output-dir FOLDER FILE`';

/** The file's one value; undefined for JSON lines. */
function jsonValue(text: string): unknown {
  if (/^\{.*\}\s*\n/.test(text)) return undefined;
  try {
    return readJson(text);
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

/** Puts the file's name before each id if two files have the same id. */
function withDistinctIds(contents: readonly FileContents[]): Conversation[] {
  const all = contents.flatMap(({ conversations }) => conversations);
  if (new Set(all.map(({ id }) => id)).size === all.length) return all;
  return contents.flatMap(({ file, conversations }) =>
    conversations.map((one) => ({ ...one, id: `${file}:${one.id}` })),
  );
}

/** A conversation, with its place in the file and its id where it has none. */
type Line = [place: string, name: string, line: unknown];

/** A text may hold U+2028, which is no end of a line in JSON lines. */
const linesIn = (body: Buffer): Line[] =>
  [...body.toString('utf8').split('\n').entries()].flatMap(([n, text]) =>
    text.trim() === '' ? [] : [[`:${n + 1}`, String(n + 1), text.trim()]],
  );

const listIn = (value: unknown, file: string): Line[] =>
  conversationsIn(value).map((one, n, { length }) =>
    length === 1 ? ['', basename(file), one] : [`[${n}]`, String(n), one],
  );

function readLines(lines: readonly Line[], file: string, warnings: string[]) {
  const conversations: Conversation[] = [];
  const problems: string[] = [];
  for (const [place, name, line] of lines) {
    const read = readLine(line, name, warnings);
    if (typeof read === 'string') problems.push(`${file}${place} ${read}`);
    else if (read) conversations.push(read);
  }
  if (lines.length === 0)
    problems.push(`${file}: holds no line; write one conversation a line, as docs/conversations.md shows`);
  return { conversations, problems };
}
