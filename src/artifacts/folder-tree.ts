/**
 * Folder artifacts: a folder is stored as its files plus a JSON listing of them. Invariants: the listing's sha256 fixes every byte of
 * the folder, and the same files always have the same listing; a materialised folder is whole from the moment it has its name, and one
 * that was damaged since is mended file by file, so that who reads it finds every other file in its place.
 */
import { lstat, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { z } from 'zod';
import type { Checks } from './checks';
import { isCode, makeFolder, viaAside } from './durable-file';

export const TREE_MEDIA_TYPE = 'application/vnd.campaign.folder+json';

/** Relative, with forward slashes, inside the folder. */
const isInside = (path: string): boolean =>
  !path.split('/').some((part) => part === '' || part === '.' || part === '..');

const listingSchema = z.object({
  files: z.array(
    z.object({
      path: z.string().refine(isInside),
      sha256: z.string(),
      bytes: z.number().int(),
    }),
  ),
});
export type Listing = z.infer<typeof listingSchema>;

/** `file`: where it was read from, for the error. */
export function parseListing({ body, file }: { body: Buffer; file: string }): Listing {
  try {
    return listingSchema.parse(JSON.parse(body.toString('utf8')));
  } catch (error) {
    throw new Error(`${file} is not the listing of a folder artifact; was a file's artifact taken for a folder's?`, {
      cause: error,
    });
  }
}

interface FileAt {
  path: string;
  absolute: string;
}

/** The listing of files, of which `store` says what it knows. */
export async function listingOf({ files, store }: ListingOf): Promise<string> {
  const listed: Listing['files'] = [];
  for (const { path, absolute } of files) {
    const { sha256, bytes } = await store(absolute);
    listed.push({ path, sha256, bytes });
  }
  return JSON.stringify({ files: listed } satisfies Listing);
}

interface ListingOf {
  files: readonly FileAt[];
  store: (absolute: string) => Promise<{ sha256: string; bytes: number }>;
}

/** The files of a folder, or of it the named ones alone, sorted by path. Links and devices are refused: what they lead to is not the folder's. */
export async function listFiles({ folder, files }: { folder: string; files?: readonly string[] }): Promise<FileAt[]> {
  const listed = files
    ? await Promise.all([...new Set(files)].map((path) => namedFile(folder, path)))
    : (await entriesOf(folder)).filter((entry) => entry.kind !== 'folder').map(plain);
  return listed.sort((a, b) => (a.path < b.path ? -1 : 1));
}

interface Entry extends FileAt {
  kind: 'file' | 'folder' | 'other';
}

const plain = ({ path, absolute, kind }: Entry): FileAt => {
  if (kind !== 'file') throw new Error(`folder artifact: ${absolute} is not a plain file; copy what it refers to`);
  return { path, absolute };
};

const kindOf = (entry: { isFile(): boolean; isDirectory(): boolean }): Entry['kind'] =>
  entry.isFile() ? 'file' : entry.isDirectory() ? 'folder' : 'other';

async function entriesOf(folder: string): Promise<Entry[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.map((entry) => {
    const absolute = join(entry.parentPath, entry.name);
    return { path: relative(folder, absolute).split(sep).join('/'), absolute, kind: kindOf(entry) };
  });
}

async function namedFile(folder: string, path: string): Promise<FileAt> {
  if (!isInside(path)) throw new Error(`folder artifact: '${path}' is not inside ${folder}; name it relative to that`);
  const absolute = join(folder, path);
  const found = await lstat(absolute).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) throw new Error(`folder artifact: ${folder} has no file '${path}'`, { cause: error });
    throw error;
  });
  return plain({ path, absolute, kind: kindOf(found) });
}

/**
 * Makes `target` hold the listed files and nothing else. Several processes may do this at once.
 * `copy` puts the bytes of a sha256 at a path, checked, flushed and read-only, or throws.
 */
export async function materialise(folder: Materialise): Promise<void> {
  const isThere = (await stat(folder.target).catch(() => undefined)) !== undefined;
  await (isThere ? mend(folder) : make(folder));
}

interface Materialise {
  listing: Listing;
  target: string;
  aside: string;
  checks: Checks;
  copy: (file: { sha256: string; to: string }) => Promise<void>;
}

async function make({ listing: { files }, target, aside, checks, copy }: Materialise): Promise<void> {
  await viaAside({
    path: target,
    aside,
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
    make: async (temporary) => {
      await mkdir(temporary);
      for (const file of files) {
        const to = join(temporary, file.path);
        await makeFolder(dirname(to));
        await copy({ sha256: file.sha256, to });
      }
    },
    name: async (temporary) => {
      try {
        await rename(temporary, target);
        for (const file of files) await checks.pass(join(target, file.path));
      } catch (error) {
        // Another process was first; what it made is the same.
        if (!isCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
      }
    },
  });
}

async function mend({ listing, target, aside, checks, copy }: Materialise): Promise<void> {
  const listed = new Set(listing.files.map(({ path }) => path));
  for (const { path, absolute, kind } of await entriesOf(target)) {
    const belongs = kind === 'folder' ? !listed.has(path) : kind === 'file' && listed.has(path);
    if (!belongs) await rm(absolute, { recursive: true, force: true });
  }
  for (const { path, sha256, bytes } of listing.files) {
    const file = join(target, path);
    if (await checks.hasHash(file, sha256)) continue;
    await viaAside({
      path: file,
      aside,
      bytes,
      make: (to) => copy({ sha256, to }),
      name: async (temporary) => {
        await rename(temporary, file);
        await checks.pass(file);
      },
    });
  }
}
