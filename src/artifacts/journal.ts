/**
 * An append-only log of finished records as JSON lines `["<checksum>","<key>",<record>]`. A record is either whole or not there; the first
 * record under a key stays; any number of processes may append at once (each flush is one O_APPEND write that begins with a line break, so
 * a line torn by a crash never swallows its neighbour).
 */
import { randomUUID } from 'node:crypto';
import { open, rm, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { breathing } from '../domain/concurrency';
import { OutsideFailure } from '../domain/failures';
import { flush as flushPath, ifThere, makeFolder, withRoom } from './durable-file';
import { sha256 } from './hash';
import type { Journal } from './store';

/** Appends that arrive within this time share one write and one flush. */
const GROUP_COMMIT_MS = 4;
const CHECKSUM_LENGTH = 16;
const HEAD = CHECKSUM_LENGTH + '["",'.length;
const READ_BYTES = 4 * 1024 ** 2;

const checksum = (text: string): string => sha256(text).slice(0, CHECKSUM_LENGTH);

export function formatLine(key: string, record: unknown): string {
  const rest = `${JSON.stringify(key)},${JSON.stringify(record)}]`;
  return `["${checksum(rest)}",${rest}\n`;
}

/** The entry of a whole line; undefined for a torn one. */
export function parseLine(line: string): [key: string, record: unknown] | undefined {
  const rest = line.slice(HEAD);
  if (line.slice(0, HEAD) !== `["${checksum(rest)}",`) return undefined;
  const [, key, record] = JSON.parse(line) as [string, string, unknown];
  return [key, record];
}

/**
 * Reads a journal that grows: each call gives the records that are whole by then, and reads what came since the last; none where there is no
 * journal. The map is the same one as long as the file is.
 */
export function journalReader(path: string): () => Promise<Map<string, unknown>> {
  const nothing = (file = '') => ({ file, records: new Map<string, unknown>(), size: 0, ended: 0 });
  let seen = nothing();

  async function readOn(handle: FileHandle): Promise<void> {
    const { size, dev, ino, birthtimeMs } = await handle.stat();
    const file = [dev, ino, birthtimeMs].join();
    if (file !== seen.file || size < seen.size) seen = nothing(file);
    if (size === seen.size) return;
    const breathe = breathing();
    // A line that had not ended is read once more.
    let rest = Buffer.alloc(0);
    for (let at = seen.ended; at < size;) {
      const { bytesRead, buffer } = await handle.read(Buffer.alloc(Math.min(READ_BYTES, size - at)), { position: at });
      if (bytesRead === 0) break;
      at += bytesRead;
      rest = Buffer.concat([rest, buffer.subarray(0, bytesRead)]);
      for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
        add(rest.toString('utf8', 0, end));
        rest = rest.subarray(end + 1);
        await breathe(end);
      }
      [seen.size, seen.ended] = [at, at - rest.length];
    }
    add(rest.toString('utf8'));
  }

  function add(line: string): void {
    const [key, record] = parseLine(line) ?? [];
    if (key !== undefined && !seen.records.has(key)) seen.records.set(key, record);
  }

  return async () => {
    const handle = await ifThere(open(path, 'r'));
    if (!handle) seen = nothing();
    else await readOn(handle).finally(() => handle.close());
    return seen.records;
  };
}

async function openToAppend(path: string): Promise<FileHandle> {
  await makeFolder(dirname(path));
  const file = await open(path, 'a');
  await flushPath(dirname(path));
  return file;
}

/**
 * One write for the whole group. A short write (a full disk) leaves a torn line behind, and all of the group is written again: by
 * the next write, or else by whoever appends again once there is room.
 */
async function appendWhole(file: FileHandle, bytes: Buffer): Promise<void> {
  while ((await file.write(bytes)).bytesWritten < bytes.length);
  await file.datasync();
}

/** Is given all records there are before any is written; throws where none may be. */
export type Guard = (records: ReadonlyMap<string, unknown>) => void;

const EPOCH = 'epoch/';
const epochIn = (records: ReadonlyMap<string, unknown>): number =>
  Math.max(0, ...[...records.keys()].flatMap((key) => (key.startsWith(EPOCH) ? Number(key.slice(EPOCH.length)) : [])));

/** Opens a journal for `owner`, who is its only one from then on: the records tell who, by an epoch each. */
export async function openOwned(open: (guard: Guard) => Promise<Journal>, owner: string): Promise<Journal> {
  let mine = Infinity;
  const journal = await open((records) => {
    const newest = epochIn(records);
    if (newest <= mine) return;
    const { owner: by } = records.get(EPOCH + newest) as { owner: string };
    throw new OutsideFailure('Superseded', `${by} has taken this work over from ${owner}`);
  });
  const id = randomUUID();
  for (;;) {
    const epoch = epochIn(journal.records()) + 1;
    await journal.append(EPOCH + epoch, { id, owner });
    if ((journal.records().get(EPOCH + epoch) as { id: string }).id !== id) continue;
    mine = epoch;
    return journal;
  }
}

/** Opens (or creates) the journal at `path`. Torn lines are passed over, never repaired: another process may be appending. */
export async function openJournal(path: string, guard?: Guard): Promise<Journal> {
  const read = journalReader(path);
  const records = await withRoom({ path }, read);
  const file = await withRoom({ path }, () => openToAppend(path));
  const pending = new Map<string, Promise<void>>();
  let group: { lines: string[]; done: Promise<void> } | undefined;
  let lastFlush = Promise.resolve();

  const add = (key: string, record: unknown) => void (records.has(key) || records.set(key, record));

  async function flush(previous: Promise<void>, lines: string[]): Promise<void> {
    await Promise.all([previous.catch(() => undefined), sleep(GROUP_COMMIT_MS)]);
    group = undefined; // from here on appends go into the next group
    const bytes = Buffer.from(`\n${lines.join('')}`);
    if (guard) guard(await read());
    try {
      await withRoom({ path, bytes: bytes.length }, () => appendWhole(file, bytes));
      // Under a key another process may have been first.
      if (guard) await read();
    } catch (error) {
      // Lines that came to the disk whole count now, as they will when the journal is opened again.
      const kept = await file
        .datasync()
        .then(journalReader(path))
        .catch(() => new Map<string, unknown>());
      for (const [key, record] of kept) add(key, record);
      throw error;
    }
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
      await rm(path, { force: true });
    },
  };
}
