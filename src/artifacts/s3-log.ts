/**
 * A journal in a bucket, for any number of writers on any host: segments `journals/<name>/<number>` of whole lines, each created once under the
 * number that follows the last one, so that all writers' appends stand in one order. A segment whose number is divisible by FULL_EVERY begins with
 * all records before it, and what is older is removed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { forEachBounded } from '../domain/concurrency';
import { formatLine, type Guard, parseLine } from './journal';
import type { Bucket } from './s3-bucket';
import type { Journal } from './store';

/** Appends that come within this time of the last segment share the next one: at most two writes a second are paid for. */
const SPACING_MS = 500;
const FULL_EVERY = 128;
/** Segments that are read at once. */
const CONCURRENCY = 16;

const folderOf = (name: string): string => `journals/${name}/`;
const pathOf = (name: string, number: number): string => folderOf(name) + String(number).padStart(10, '0');
const numberOf = (path: string): number => Number(path.slice(path.lastIndexOf('/') + 1));
const isFull = (number: number): boolean => number > 0 && number % FULL_EVERY === 0;

/** Reads a log that grows: each call gives the records by then, and asks for the segments since the last. */
export class LogReader {
  private readonly all = new Map<string, unknown>();
  private last: { number: number; etag: string } | undefined;
  private reading: Promise<ReadonlyMap<string, unknown>> = Promise.resolve(this.all);
  /** Of `reading`, while it has not begun: whoever asks meanwhile shares it. */
  private isWaiting = false;

  constructor(
    private readonly bucket: Bucket,
    readonly name: string,
  ) {}

  /** What the next segment is to be called. */
  get next(): number {
    return (this.last?.number ?? -1) + 1;
  }

  get records(): ReadonlyMap<string, unknown> {
    return this.all;
  }

  read(): Promise<ReadonlyMap<string, unknown>> {
    if (this.isWaiting) return this.reading;
    this.isWaiting = true;
    this.reading = this.reading
      .catch(() => undefined)
      .then(() => {
        this.isWaiting = false;
        return this.readOn();
      });
    return this.reading;
  }

  private async readOn(): Promise<ReadonlyMap<string, unknown>> {
    for (;;) {
      const { last } = this;
      const since = last && pathOf(this.name, last.number - 1);
      let segments = await this.bucket.list(folderOf(this.name), since);
      // It was removed since, and perhaps another one begun.
      if (last && segments[0]?.etag !== last.etag) this.forget();
      if (last && this.last) segments = segments.slice(1);
      else if (last) segments = await this.bucket.list(folderOf(this.name));
      const from = segments.findLastIndex(({ path }) => isFull(numberOf(path)));
      segments = segments.slice(Math.max(0, from));
      const texts = new Map<string, string>();
      await forEachBounded({
        items: segments,
        concurrency: CONCURRENCY,
        work: async ({ path }) => {
          const stored = await this.bucket.get(path);
          if (stored) texts.set(path, stored.body.toString());
        },
      });
      // One that has gone meanwhile stands in a full one.
      if (texts.size < segments.length) continue;
      for (const { path, etag } of segments) this.add(texts.get(path)!, { number: numberOf(path), etag });
      return this.all;
    }
  }

  /** A segment that follows the last. */
  add(text: string, segment: { number: number; etag: string }): void {
    this.last = segment;
    for (const line of text.split('\n')) {
      const [key, record] = parseLine(line) ?? [];
      if (key !== undefined && !this.all.has(key)) this.all.set(key, record);
    }
  }

  private forget(): void {
    this.all.clear();
    this.last = undefined;
  }
}

/** Opens the log, which is there with its first record. */
export async function openLog(
  bucket: Bucket,
  name: string,
  { guard, spacingMs = SPACING_MS }: { guard?: Guard | undefined; spacingMs?: number } = {},
): Promise<Journal> {
  const log = new LogReader(bucket, name);
  await log.read();
  const pending = new Map<string, Promise<void>>();
  let group: { records: [string, unknown][]; done: Promise<void> } | undefined;
  let lastWrite = Promise.resolve();
  let writtenAt = -Infinity;

  async function write(previous: Promise<void>, records: [string, unknown][]): Promise<void> {
    await previous.catch(() => undefined);
    await sleep(Math.max(4, writtenAt + spacingMs - performance.now()));
    group = undefined; // from here on appends go into the next group
    writtenAt = performance.now();
    for (;;) {
      const fresh = records.filter(([key]) => !log.records.has(key));
      if (fresh.length === 0) return;
      guard?.(log.records);
      const number = log.next;
      const lines = isFull(number) ? [...log.records, ...fresh] : fresh;
      const text = lines.map(([key, record]) => formatLine(key, record)).join('');
      const etag = await bucket.create(pathOf(name, number), text);
      // Another writer was first.
      if (etag === undefined) await log.read();
      else log.add(text, { number, etag });
      if (etag !== undefined && isFull(number)) await removeBefore(bucket, name, number);
    }
  }

  function append(key: string, record: unknown): Promise<void> {
    if (log.records.has(key)) return Promise.resolve();
    const waiting = pending.get(key);
    if (waiting) return waiting;
    if (!group) {
      const records: [string, unknown][] = [];
      group = { records, done: write(lastWrite, records) };
      lastWrite = group.done;
    }
    group.records.push([key, record]);
    const appended = group.done.finally(() => pending.delete(key));
    pending.set(key, appended);
    return appended;
  }

  const close = () => lastWrite.catch(() => undefined); // a failed write has already rejected its appends

  return {
    records: () => log.records,
    append,
    close,
    remove: async () => {
      await close();
      await removeLog(bucket, name);
    },
  };
}

async function removeBefore(bucket: Bucket, name: string, number: number): Promise<void> {
  const old = (await bucket.list(folderOf(name))).filter(({ path }) => numberOf(path) < number);
  await forEachBounded({
    items: old,
    concurrency: CONCURRENCY,
    work: async ({ path }) => void (await bucket.remove(path)),
  });
}

export const removeLog = (bucket: Bucket, name: string): Promise<void> => removeBefore(bucket, name, Infinity);
