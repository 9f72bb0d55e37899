/**
 * Garbage collection. An entry stays if a campaign's index names it, if it is younger than a day by the store's clock, or if one that stays derives
 * from it; an object stays if an entry that stays names it, or if it is younger than a day. Writers take no lock: a step renews an old entry when it
 * finds it, and an entry is removed only while it is as it was read.
 */
import { randomUUID } from 'node:crypto';
import { basename } from 'node:path';
import type { ArtifactRef } from '../domain/artifacts';
import { forEachBounded } from '../domain/concurrency';
import { groupBy } from '../domain/statistics';
import type { Backend, StoredFile } from './backend';
import { keysOf } from './campaign-index';
import { type Entry, objectPath, parseEntry } from './entries';
import type { Garbage, RecordFiles } from './store';

const DAY_MS = 24 * 3600 * 1000;
const CONCURRENCY = 32;

interface Collection {
  backend: Backend;
  files: RecordFiles;
  partsOf: (ref: ArtifactRef) => Promise<string[]>;
  dryRun: boolean;
  nowMs?: number;
}

type EntryFile = Entry & { file: StoredFile; version: string };

const each = <Item>(items: readonly Item[], work: (item: Item) => Promise<unknown>): Promise<void> =>
  forEachBounded({ items, concurrency: CONCURRENCY, work: async (item) => void (await work(item)) });

export async function collectGarbage(o: Collection): Promise<Garbage> {
  const { backend, files, partsOf, dryRun, nowMs } = o;
  const before = (nowMs ?? (await timeOf(backend))) - DAY_MS;
  const isOld = ({ changedMs }: StoredFile): boolean => changedMs <= before;
  const parts = groupBy(
    (await backend.list()).filter(({ isFolder }) => !isFolder),
    ({ path }) => path.split('/')[0]!,
  );
  const filesIn = (part: string): StoredFile[] => parts.get(part) ?? [];
  // Indexes are read after the entries are listed: entries that a step adds from here on are young or renewed.
  const indexedKeys = new Set(await keysOf(files));
  const entries = await readEntries(backend, filesIn('keys'));
  const live = new LiveEntries(entries);
  for (const entry of entries) if (indexedKeys.has(entry.key) || !isOld(entry.file)) live.add(entry);
  const garbage: StoredFile[] = [];
  await each(
    entries.filter((entry) => !live.has(entry)),
    async (entry) => {
      if (dryRun || (await backend.remove(entry.file.path, entry.version))) garbage.push(entry.file);
      else live.add(entry);
    },
  );

  const needed = new Set<string>();
  await each(live.all(), async ({ ref }) => (await partsOf(ref)).forEach((sha) => needed.add(sha)));
  const unneeded = (file: StoredFile): boolean => !needed.has(basename(file.path, '.json')) && isOld(file);
  // A file of `folders` is a link to an object. A copy is removed too, since the next reader gets a link.
  const givenOut = filesIn('folders').filter(
    (file) => isOld(file) && (file.names === 1 || !needed.has(file.path.split('/')[1]!)),
  );
  const leftovers = new Set(await backend.leftovers());
  const left = filesIn('aside').filter(({ path }) => leftovers.has(path.split('/').slice(0, 2).join('/')));
  garbage.push(...['objects', 'provenance', 'batches'].flatMap(filesIn).filter(unneeded));
  garbage.push(...filesIn('probe').filter(isOld), ...givenOut, ...left);
  if (!dryRun) {
    await each(
      garbage.filter(({ path }) => !/^(keys|aside)\//.test(path)),
      async ({ path }) => {
        // A writer that stores the same content again renews the object only.
        const object = path.startsWith('provenance/') ? objectPath(basename(path, '.json')) : undefined;
        if (object === undefined || ((await backend.changedMs(object)) ?? 0) <= before)
          await backend.removeOlder(path, before);
      },
    );
    await each([...leftovers], (path) => backend.remove(path));
  }
  // Removing a link frees nothing: the object is counted when it is removed.
  const freed = garbage.filter(({ path, names }) => names === 1 || !path.startsWith('folders/'));
  return { files: garbage.length, bytes: freed.reduce((sum, { bytes }) => sum + bytes, 0) };
}

async function timeOf(backend: Backend): Promise<number> {
  const path = `probe/${randomUUID()}`;
  await backend.create(path, path);
  const now = await backend.changedMs(path);
  await backend.remove(path);
  return now ?? Date.now();
}

async function readEntries(backend: Backend, files: readonly StoredFile[]): Promise<EntryFile[]> {
  const entries: EntryFile[] = [];
  await each(files, async (file) => {
    const read = await backend.read(file.path);
    const entry = parseEntry(read?.text ?? '');
    // The time belongs to this version: a step may have renewed the entry since it was listed.
    if (read && entry) entries.push({ ...entry, file: { ...file, changedMs: read.changedMs }, version: read.version });
  });
  return entries;
}

class LiveEntries {
  private readonly live = new Set<EntryFile>();
  private readonly bySha: ReadonlyMap<string, EntryFile[]>;

  constructor(entries: readonly EntryFile[]) {
    this.bySha = groupBy(entries, ({ ref }) => ref.sha256);
  }

  add(entry: EntryFile): void {
    const waiting = [entry];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      if (this.live.has(next)) continue;
      this.live.add(next);
      waiting.push(...next.inputs.flatMap(({ sha256 }) => this.bySha.get(sha256) ?? []));
    }
  }

  has = (entry: EntryFile): boolean => this.live.has(entry);
  all = (): EntryFile[] => [...this.live];
}
