/** What a store holds and what that takes, where a file with several names counts once; and the removal of what nothing needs. */
import { lstat, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { ArtifactRef } from '../domain/artifacts';
import { forEachBounded } from '../domain/concurrency';
import type { Backend } from './content-store';
import { ifThere } from './durable-file';
import type { Contents, Provenance, StoredEntry, Swept } from './store';

export interface StoredFile {
  path: string;
  isFolder: boolean;
  bytes: number;
  /** Names that the file has. */
  names: number;
  changedMs: number;
}

/** A local folder, and all that is in it; nothing where it is not there. */
export async function walk(folder: string): Promise<StoredFile[]> {
  const entries = (await ifThere(readdir(folder, { recursive: true, withFileTypes: true }))) ?? [];
  const paths = [folder, ...entries.map((entry) => join(entry.parentPath, entry.name))];
  const seen = await Promise.all(
    paths.map(async (path) => {
      const stat = await ifThere(lstat(path));
      if (!stat) return [];
      const isFolder = stat.isDirectory();
      const names = isFolder ? 1 : stat.nlink;
      return [{ path, isFolder, bytes: stat.blocks * 512, names, changedMs: stat.mtimeMs }];
    }),
  );
  return seen.flat();
}

const bytesOf = (files: readonly StoredFile[]): number => files.reduce((sum, { bytes }) => sum + bytes, 0);
/** The sha256 that a file is called by; of a log's segment, that of the log. */
const nameOf = ({ path }: StoredFile): string =>
  path.startsWith('journals/') ? path.split('/')[1]!.replace('.jsonl', '') : basename(path, '.json');
/** Of a file that was given out: the sha256 of the listing that it belongs to. */
const givenOutOf = ({ path }: StoredFile): string => path.split('/')[1]!;

/** Requests for entries that are under way at once. */
const CONCURRENCY = 32;

/** Files by the part of the store that they are in. */
async function partsOfStore(backend: Backend): Promise<(part: string) => StoredFile[]> {
  const parts = new Map<string, StoredFile[]>();
  for (const file of await backend.list()) {
    const part = file.isFolder ? 'folders of the store' : file.path.split('/')[0]!;
    const files = parts.get(part);
    if (files) files.push(file);
    else parts.set(part, [file]);
  }
  return (part) => parts.get(part) ?? [];
}

export async function contentsOf(o: {
  backend: Backend;
  entryAt: (path: string) => Promise<(Provenance & { ref: ArtifactRef }) | undefined>;
  /** The sha256 of all that an artifact consists of. */
  partsOf: (ref: ArtifactRef) => Promise<string[]>;
}): Promise<Contents> {
  const files = await partsOfStore(o.backend);
  const objects = new Map(files('objects').map((file) => [nameOf(file), file.bytes]));
  // Files given out are links to objects; copies, where there are no links, belong to their listing.
  const copies = files('folders').filter(({ names }) => names === 1);
  const beside = [
    ...files('provenance').map((file) => ({ ...file, sha: nameOf(file) })),
    ...copies.map((file) => ({ ...file, sha: givenOutOf(file) })),
  ];
  let rest = bytesOf(['id', 'aside', 'probe', 'work', 'folders of the store'].flatMap(files));
  for (const { sha, bytes } of beside) {
    const known = objects.get(sha);
    if (known === undefined) rest += bytes;
    else objects.set(sha, known + bytes);
  }
  const journals = new Map<string, number>();
  for (const file of files('journals')) journals.set(nameOf(file), (journals.get(nameOf(file)) ?? 0) + file.bytes);
  const entries: StoredEntry[] = [];
  await forEachBounded({
    items: files('keys'),
    concurrency: CONCURRENCY,
    work: async ({ path, bytes, changedMs }) => {
      const entry = await o.entryAt(path);
      if (!entry) rest += bytes;
      else entries.push({ ...entry, parts: await o.partsOf(entry.ref), bytes, madeMs: changedMs });
    },
  });
  return { entries, objects, journals, rest };
}

/** Also the copies of folders' files where links would do: they are given out again as links. */
export async function sweep(o: { backend: Backend; contents: Contents; dryRun: boolean }): Promise<Swept> {
  const { backend, contents, dryRun } = o;
  const files = await partsOfStore(backend);
  const needed = new Set(contents.entries.flatMap((entry) => entry.parts));
  const isUnneeded = (file: StoredFile): boolean =>
    !needed.has(nameOf(file)) && Date.now() - file.changedMs >= backend.unnamedMs;
  const leftovers = await backend.leftovers();
  const unneeded = [
    ...[...files('objects'), ...files('provenance')].filter(isUnneeded),
    ...files('folders').filter((file) => !needed.has(givenOutOf(file)) || file.names === 1),
    ...files('aside').filter(({ path }) => leftovers.some((left) => path === left || path.startsWith(`${left}/`))),
  ];
  if (!dryRun)
    await forEachBounded({
      items: [...unneeded.map((file) => file.path), ...leftovers],
      concurrency: CONCURRENCY,
      work: (path) => backend.remove(path),
    });
  // A link frees nothing: the object that it is a name of is counted where it goes.
  const freed = unneeded.filter((file) => file.names === 1 || !file.path.startsWith('folders/'));
  return { files: unneeded.length, bytes: bytesOf(freed) };
}
