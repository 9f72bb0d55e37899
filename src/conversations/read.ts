/**
 * Files of conversations, read as a whole. Invariant: either every line of every file could be used, or nothing is used and every bad line
 * is named.
 */
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { OutsideFailure, reasonOf } from '../domain/failures';
import type { Conversation, FileContents } from './conversation';
import { isZip, readEvalLog, readJsonLog } from './inspect-log';
import { readJsonLines } from './json-lines';

const SHOWN = 20;
/** Bytes in which a file that is no text has a zero. */
const LOOKED_AT = 8192;

export interface ReadInput {
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
