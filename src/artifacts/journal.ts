/**
 * An append-only log of finished records as JSON lines `["<checksum>","<key>",<record>]`. Invariants: a record is either whole or
 * not there; the first record under a key stays; any number of processes may append at once (each flush is one O_APPEND write
 * that begins with a line break, so a line torn by a crash never swallows its neighbour).
 */
import { open, readFile, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { breathing } from '../domain/concurrency';
import { withRoom } from './disk-full';
import { flush as flushPath, isCode, makeFolder } from './durable-file';
import { sha256 } from './hash';
import type { Journal } from './store';

/** Appends that arrive within this time share one write and one flush. */
const GROUP_COMMIT_MS = 4;
const CHECKSUM_LENGTH = 16;
const HEAD = CHECKSUM_LENGTH + '["",'.length;

const checksum = (text: string): string => sha256(text).slice(0, CHECKSUM_LENGTH);

function formatLine(key: string, record: unknown): string {
  const rest = `${JSON.stringify(key)},${JSON.stringify(record)}]`;
  return `["${checksum(rest)}",${rest}\n`;
}

/** The entry of a whole line; undefined for a torn one. */
function parseLine(line: string): [key: string, record: unknown] | undefined {
  const rest = line.slice(HEAD);
  if (line.slice(0, HEAD) !== `["${checksum(rest)}",`) return undefined;
  const [, key, record] = JSON.parse(line) as [string, string, unknown];
  return [key, record];
}

/** Adds what is whole in the bytes of a journal, without what is there already. Returns the place after the last line that ended. */
export async function addRecords(bytes: Buffer, records: Map<string, unknown>): Promise<number> {
  const breathe = breathing();
  let start = 0;
  for (;;) {
    const lineBreak = bytes.indexOf(10, start);
    const end = lineBreak < 0 ? bytes.length : lineBreak;
    const entry = parseLine(bytes.toString('utf8', start, end));
    if (entry && !records.has(entry[0])) records.set(...entry);
    if (lineBreak < 0) return start;
    await breathe(end - start);
    start = end + 1;
  }
}

/** What is whole in the journal at `path`; nothing where there is none. */
async function readRecords(path: string): Promise<Map<string, unknown>> {
  const records = new Map<string, unknown>();
  const bytes = await readFile(path).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return Buffer.alloc(0);
    throw error;
  });
  await addRecords(bytes, records);
  return records;
}

/**
 * One write for the whole group. A short write (a full disk) leaves a torn line behind, and all of the group is written again: by
 * the next write, or else by whoever appends again once there is room.
 */
async function appendWhole(file: FileHandle, bytes: Buffer): Promise<void> {
  while ((await file.write(bytes)).bytesWritten < bytes.length);
  await file.datasync();
}

interface Opened {
  file: FileHandle;
  records: Map<string, unknown>;
}

async function openWhole(path: string): Promise<Opened> {
  await makeFolder(dirname(path));
  const file = await open(path, 'a');
  try {
    await flushPath(dirname(path));
    return { file, records: await readRecords(path) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** Opens (or creates) the journal at `path`. Torn lines are passed over, never repaired: another process may be appending. */
export async function openJournal(path: string): Promise<Journal> {
  const { file, records } = await withRoom({ path, bytes: 0 }, () => openWhole(path));
  const pending = new Map<string, Promise<void>>();
  let group: { lines: string[]; done: Promise<void> } | undefined;
  let lastFlush = Promise.resolve();

  const add = (key: string, record: unknown) => void (records.has(key) || records.set(key, record));

  async function flush(previous: Promise<void>, lines: string[]): Promise<void> {
    await Promise.all([previous.catch(() => undefined), sleep(GROUP_COMMIT_MS)]);
    group = undefined; // from here on appends go into the next group
    const bytes = Buffer.from(`\n${lines.join('')}`);
    try {
      await withRoom({ path, bytes: bytes.length }, () => appendWhole(file, bytes));
    } catch (error) {
      await keepWhole().catch(() => undefined); // the next opening finds them
      throw error;
    }
  }

  /** Of a group that failed, the lines that came to the disk whole count now, as they will when the journal is opened again. */
  async function keepWhole(): Promise<void> {
    await file.datasync();
    for (const [key, record] of await readRecords(path)) add(key, record);
  }

  function append(key: string, record: unknown): Promise<void> {
    if (records.has(key)) return Promise.resolve();
    const waiting = pending.get(key);
    if (waiting) return waiting;
    if (!group) {
      const lines: string[] = [];
      group = { lines, done: flush(lastFlush, lines) };
      lastFlush = group.done;
    }
    group.lines.push(formatLine(key, record));
    const appended = group.done.then(() => add(key, record)).finally(() => pending.delete(key));
    pending.set(key, appended);
    return appended;
  }

  async function close(): Promise<void> {
    await lastFlush.catch(() => undefined); // a failed flush has already rejected its appends
    await file.close();
  }

  return {
    records: () => records,
    append,
    close,
    remove: async () => {
      await close();
      await removeJournal(path);
    },
  };
}

/** Also where there is none. */
export const removeJournal = (path: string): Promise<void> => rm(path, { force: true });
