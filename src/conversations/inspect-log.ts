/**
 * Logs of Inspect are read: `.json`, and `.eval`, which is a zip of one JSON file a sample: stored, deflated, or in Zstandard, as Inspect has written them
 * since April 2026. Invariants: a sample that broke or has no score is left out with a note: it is no failure of the agent's; what is read is what the
 * directory at the zip's end names; no entry becomes longer than it says there, and what that may be is bounded; a text is the one that was zipped.
 */
import { z } from 'zod';
import { rewardSchema, roundReward } from '../domain/environment';
import { reasonOf } from '../domain/failures';
import { countsOf } from '../domain/statistics';
import {
  clipped,
  type Conversation,
  type FileContents,
  notesOf,
  openNotes,
  problemsIn,
  type RawMessage,
  rawMessagesSchema,
  toMessages,
} from './messages';
import { conversionOf } from './convert';
import { mapLeaves, readJson } from './json';
import { constants } from 'node:buffer';
import { open, stat } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { crc32, inflateRawSync } from 'node:zlib';
import { Decompress } from 'fzstd';
import { type Entry, openPromise } from 'yauzl';

const sampleSchema = z.looseObject({
  id: z.union([z.string(), z.number()], { error: 'text or a number' }).transform(String),
  epoch: z.number({ error: 'a number' }).default(1),
  messages: rawMessagesSchema,
  scores: z
    .record(z.string(), z.looseObject({ value: z.unknown() }), { error: 'an object of scores by scorer' })
    .nullish(),
  /** Long text of its messages, where the log keeps it apart. */
  attachments: z.record(z.string(), z.string()).optional(),
});

interface Log {
  /** How messages call the file. */
  name: string;
  /** Whose score counts in a log with several. */
  scorer: string | undefined;
  /** Forms that are converted when they are read. */
  oddities?: string[];
}

/** Fields of Inspect's messages that say nothing of the conversation. */
const IGNORED = ['id', 'source', 'model', 'metadata', 'internal'];

const CONVERT = 'write it as JSON with `inspect log convert --to json --output-dir FOLDER FILE`';

/** `file`: a zip. */
export async function readEvalLog(file: string, log: Log): Promise<FileContents> {
  const oddities: string[] = [];
  try {
    return (
      (await readSamples(samplesIn(file, oddities), { ...log, oddities })) ??
      unreadable(`${log.name}: a zip without samples/*.json; give a log of Inspect, or JSON lines`)
    );
  } catch (error) {
    return unreadable(`${log.name}: can't be read (${reasonOf(error)}); ${CONVERT}`);
  }
}

async function* samplesIn(file: string, oddities: string[]): AsyncGenerator<unknown> {
  for await (const { name, text } of textsInZip(file, /^samples\/.+\.json$/))
    try {
      yield readJson(text, oddities);
    } catch (error) {
      throw new Error(`${name} in it is no JSON: ${reasonOf(error)}`, { cause: error });
    }
}

/** Reads the value of a JSON file. */
export async function readJsonLog(value: object, log: Log): Promise<FileContents> {
  const { samples } = value as { samples?: unknown };
  const read = Array.isArray(samples) ? await readSamples(samples, log) : undefined;
  const conversion = conversionOf(value);
  return (
    read ??
    unreadable(
      Array.isArray(value)
        ? `${log.name}: a list; write one conversation a line: \`jq -c '.[]' FILE.json > FILE.jsonl\``
        : conversion !== undefined
          ? `${log.name} ${conversion}`
          : `${log.name}: no log of Inspect with samples, nor JSON lines (one conversation a line); its fields: ${Object.keys(value).join(', ')}`,
    )
  );
}

const unreadable = (problem: string): FileContents => ({ conversations: [], problems: [problem], notes: [] });

/** One after the other; undefined if there is none. */
async function readSamples(
  samples: AsyncIterable<unknown> | Iterable<unknown>,
  { name, scorer, oddities = [] }: Log,
): Promise<FileContents | undefined> {
  const conversations: Conversation[] = [];
  const problems: string[] = [];
  const unscored: string[] = [];
  const noted = { ...openNotes(IGNORED), oddities };
  let count = 0;
  for await (const value of samples) {
    const where = `${name}: samples[${count++}]`;
    if ((value as { error?: unknown } | null)?.error) {
      unscored.push('it ended with an error');
      continue;
    }
    const { data, error } = sampleSchema.safeParse(value);
    if (!data) {
      problems.push(...problemsIn(error, value).map((problem) => `${where} ${problem}`));
      continue;
    }
    const { id, epoch, messages, scores, attachments } = data;
    const reward = rewardOf(scores ?? {}, scorer);
    if (reward === undefined) unscored.push('it has no score');
    else if (typeof reward === 'string') problems.push(`${where} (id ${id}) ${reward}`);
    else {
      const full = attachments ? withAttachments(messages, attachments, oddities) : messages;
      conversations.push({ id: `${id}-${epoch}`, task: id, messages: toMessages(full, noted), reward });
    }
  }
  if (count === 0) return undefined;
  const notes = [
    ...[...countsOf(unscored)].map(([why, left]) => `${name}: left out ${left} of ${count} samples: ${why}`),
    ...notesOf(noted).map((note) => `${name}: ${note}`),
  ];
  return { conversations, problems, notes };
}

/** Undefined where there is no score; text says what is wrong with it. */
export function rewardOf(
  scores: Record<string, { value?: unknown }>,
  scorer: string | undefined,
): number | string | undefined {
  const names = Object.keys(scores);
  if (names.length === 0) return undefined;
  if (scorer === undefined && names.length > 1)
    return `has scores of ${names.join(', ')}; say which one counts with --scorer NAME`;
  const name = scorer ?? names[0] ?? '';
  if (!Object.hasOwn(scores, name)) return `has no score of ${name}; --scorer may be ${names.join(', ')}`;
  const value = scores[name]?.value;
  if (value === null || Number.isNaN(value)) return undefined;
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (rewardSchema.safeParse(value).success) return roundReward(value as number);
  const grade = typeof value === 'string' ? grades[value.trim().toUpperCase()] : undefined;
  if (grade !== undefined) return grade;
  return `scores.${name}.value is ${clipped(value)}; it must be "C", "I", "P", "N", true, false or a number from 0 to 1`;
}

/** Correct, incorrect, partly, no answer. */
const grades: Record<string, number> = { C: 1, I: 0, P: 0.5, N: 0, TRUE: 1, FALSE: 0 };

const ATTACHMENT = 'attachment://';

/** Puts back the long texts in place of `attachment://HASH`. */
const withAttachments = (
  messages: readonly RawMessage[],
  attachments: Record<string, string>,
  oddities: string[],
): RawMessage[] =>
  mapLeaves(messages, (value) => {
    if (typeof value !== 'string' || !value.startsWith(ATTACHMENT)) return value;
    const text = attachments[value.slice(ATTACHMENT.length)];
    if (text === undefined) oddities.push('a long text that the log keeps apart is missing in it');
    return text ?? value;
  }) as RawMessage[];

const MIB = 2 ** 20;
/** No text can be longer. */
const LARGEST_ENTRY = constants.MAX_STRING_LENGTH;
const LARGEST_SUM = 32 * 1024 * MIB;

/** Of a file, and not of a pipe, which can be read but once. */
export async function isZip(file: string): Promise<boolean> {
  if (!(await stat(file)).isFile()) return false;
  const handle = await open(file);
  try {
    const { buffer: head } = await handle.read(Buffer.alloc(4), 0, 4);
    return head.toString('latin1') === 'PK\u0003\u0004';
  } finally {
    await handle.close();
  }
}

/** In order of their names. Of two of one name the later counts: so logs are edited. */
export async function* textsInZip(file: string, isWanted: RegExp): AsyncGenerator<{ name: string; text: string }> {
  const zip = await openPromise(file, { autoClose: false });
  try {
    const wanted = new Map<string, Entry>();
    for await (const entry of zip.eachEntry()) if (isWanted.test(entry.fileName)) wanted.set(entry.fileName, entry);
    const sizes = [...wanted.values()].map(({ uncompressedSize }) => uncompressedSize);
    const sum = sizes.reduce((a, b) => a + b, 0);
    if (sum > LARGEST_SUM) throw new Error(`it would be ${sum} bytes, more than ${LARGEST_SUM}`);
    for (const [name, entry] of [...wanted].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const { compressedSize, uncompressedSize } = entry;
      if (Math.max(compressedSize, uncompressedSize) > LARGEST_ENTRY)
        throw new Error(`${name} would be ${uncompressedSize} bytes, more than ${LARGEST_ENTRY}`);
      const packed = await buffer(await zip.openReadStreamPromise(entry, { decodeFileData: false }));
      yield { name, text: unpacked(packed, entry).toString('utf8') };
    }
  } finally {
    zip.close();
  }
}

function unpacked(packed: Buffer, entry: Entry): Buffer {
  const { fileName, compressionMethod, uncompressedSize: size } = entry;
  if (entry.isEncrypted()) throw new Error(`${fileName} is encrypted`);
  const unpack = methods[compressionMethod];
  if (!unpack) throw new Error(`${fileName} is compressed by method ${compressionMethod}, which is not known here`);
  const body = unpack(packed, size);
  if (body.length !== size || crc32(body) !== entry.crc32) throw new Error(`${fileName} is damaged`);
  return body;
}

/** By number: stored, deflated, Zstandard. */
const methods: Record<number, (packed: Buffer, size: number) => Buffer> = {
  0: (packed) => packed,
  // At least one byte must be allowed, also of nothing.
  8: (packed, size) => inflateRawSync(packed, { maxOutputLength: size || 1 }),
  93: unpackedZstd,
};

/** Decoders need not take larger windows (RFC 8878); Inspect's are of 2 MiB. */
const LARGEST_WINDOW = 8 * MIB;
/** fzstd counts bits in 32 of them, within what it is given at once. */
const SLICE = MIB;

function unpackedZstd(packed: Buffer, size: number): Buffer {
  checkWindows(packed);
  const body = Buffer.alloc(size);
  let end = 0;
  const stream = new Decompress((chunk) => {
    if (end + chunk.length > size) throw new Error('an entry is longer than it says');
    body.set(chunk, end);
    end += chunk.length;
  });
  for (let at = 0; at < packed.length; at += SLICE)
    stream.push(packed.subarray(at, at + SLICE), at + SLICE >= packed.length);
  return body.subarray(0, end);
}

/** fzstd takes up to 2 GiB for the window of a frame, and moves all of it with each block: each frame's is looked at before. */
function checkWindows(packed: Buffer): void {
  for (let at = 0; at < packed.length;) {
    const magic = packed.readUInt32LE(at);
    if (magic >>> 4 === 0x184d2a5) {
      at += 8 + packed.readUInt32LE(at + 4);
      continue;
    }
    if (magic !== 0xfd2fb528) throw new Error('an entry is no Zstandard');
    const flags = packed.readUInt8(at + 4);
    const isSingle = (flags & 32) !== 0;
    const dictionaryBytes = [0, 1, 2, 4][flags & 3]!;
    const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][flags >>> 6]!;
    at += 5;
    const exponent = isSingle ? 0 : packed.readUInt8(at++);
    at += dictionaryBytes;
    const window = isSingle
      ? frameSize(packed, at, sizeBytes)
      : 2 ** (10 + (exponent >>> 3)) * (1 + (exponent & 7) / 8);
    if (window > LARGEST_WINDOW) throw new Error(`a Zstandard window is ${window} bytes, more than ${LARGEST_WINDOW}`);
    at = afterBlocks(packed, at + sizeBytes) + (flags & 4);
  }
}

const frameSize = (packed: Buffer, at: number, bytes: number): number =>
  bytes === 8 ? Number(packed.readBigUInt64LE(at)) : packed.readUIntLE(at, bytes) + (bytes === 2 ? 256 : 0);

function afterBlocks(packed: Buffer, start: number): number {
  for (let at = start; ;) {
    const header = packed.readUIntLE(at, 3);
    // Of a block of one byte, repeated, only that byte is there.
    at += 3 + ((header & 6) === 2 ? 1 : header >>> 3);
    if (header & 1) return at;
  }
}
