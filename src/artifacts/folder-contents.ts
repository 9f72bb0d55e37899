/** What a store in a folder holds and what that takes on disk, where a file with several names counts once; and the removal of what nothing needs. */
import { lstat, readdir, readFile, rm } from 'node:fs/promises';
import { basename, join, relative, sep } from 'node:path';
import { ifThere, leftoversIn } from './durable-file';
import { listingSchema, parseEntry } from './entries';
import type { Contents, StoredEntry, Swept } from './store';

interface OnDisk {
  path: string;
  isFolder: boolean;
  bytes: number;
  /** Names that the file has. */
  names: number;
  changedMs: number;
}

/** The folder, and all that is in it; nothing where it is not there. */
export async function walk(folder: string): Promise<OnDisk[]> {
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

/** Files by the part of the store that they are in. */
async function partsOf(root: string): Promise<Map<string, OnDisk[]>> {
  const parts = new Map<string, OnDisk[]>();
  for (const file of await walk(root)) {
    const [top = ''] = relative(root, file.path).split(sep);
    const part = file.isFolder ? 'folders of the store' : top;
    const files = parts.get(part);
    if (files) files.push(file);
    else parts.set(part, [file]);
  }
  return parts;
}

const bytesOf = (files: readonly OnDisk[]): number => files.reduce((sum, { bytes }) => sum + bytes, 0);
const nameOf = ({ path }: OnDisk): string => basename(path).replace(/\.jsonl?$/, '');
/** Of a file that was given out: the sha256 of the listing that it belongs to. */
const givenOutOf = (root: string, { path }: OnDisk): string => relative(join(root, 'folders'), path).split(sep)[0]!;

export async function contentsOf(root: string): Promise<Contents> {
  const parts = await partsOf(root);
  const of = (part: string): OnDisk[] => parts.get(part) ?? [];
  const objects = new Map(of('objects').map((file) => [nameOf(file), file.bytes]));
  // Files given out are links to objects; copies, where there are no links, belong to their listing.
  const copies = of('folders').filter(({ names }) => names === 1);
  const beside = [
    ...of('provenance').map((file) => ({ ...file, sha: nameOf(file) })),
    ...copies.map((file) => ({ ...file, sha: givenOutOf(root, file) })),
  ];
  let rest = 0;
  for (const { sha, bytes } of beside) {
    const known = objects.get(sha);
    if (known === undefined) rest += bytes;
    else objects.set(sha, known + bytes);
  }
  const entries: StoredEntry[] = [];
  for (const { path, bytes, changedMs } of of('keys')) {
    const entry = parseEntry((await ifThere(readFile(path, 'utf8'))) ?? '');
    if (!entry) rest += bytes;
    else entries.push({ ...entry, parts: await partsOfEntry(root, entry), bytes, madeMs: changedMs });
  }
  const counted = ['objects', 'folders', 'provenance', 'keys', 'journals'];
  for (const [part, files] of parts) if (!counted.includes(part)) rest += bytesOf(files);
  return { entries, objects, journals: new Map(of('journals').map((file) => [nameOf(file), file.bytes])), rest };
}

async function partsOfEntry(root: string, { ref }: Pick<StoredEntry, 'ref'>): Promise<string[]> {
  const { uri, sha256: sha } = ref;
  if (!uri.startsWith('artifact-tree:')) return [sha];
  const body = await ifThere(readFile(join(root, 'objects', sha.slice(0, 2), sha), 'utf8'));
  try {
    return [sha, ...listingSchema.parse(JSON.parse(body ?? '')).files.map((file) => file.sha256)];
  } catch {
    return [sha]; // It is damaged: whoever needs the folder has it made anew.
  }
}

/** Also the copies of folders' files where links would do: they are given out again as links. */
export async function sweep(root: string, { dryRun }: { dryRun: boolean }): Promise<Swept> {
  const parts = await partsOf(root);
  const of = (part: string): OnDisk[] => parts.get(part) ?? [];
  const { entries } = await contentsOf(root);
  const needed = new Set(entries.flatMap((entry) => entry.parts));
  const aside = await leftoversIn(join(root, 'aside'));
  const unneeded = [
    ...of('objects').filter((file) => !needed.has(nameOf(file))),
    ...of('provenance').filter((file) => !needed.has(nameOf(file))),
    ...of('folders').filter((file) => !needed.has(givenOutOf(root, file)) || file.names === 1),
    ...of('aside').filter(({ path }) => aside.some((left) => path === left || path.startsWith(left + sep))),
  ];
  if (!dryRun)
    for (const path of [...unneeded.map((file) => file.path), ...aside])
      await rm(path, { recursive: true, force: true });
  // A link frees nothing: the object that it is a name of is counted where it goes.
  const freed = unneeded.filter((file) => file.names === 1 || !file.path.startsWith(join(root, 'folders')));
  return { files: unneeded.length, bytes: bytesOf(freed) };
}
