/** Opens the store of a home: a local folder, whose `aside` holds files that are being written, or the bucket that CAMPAIGN_STORE names. */
import { join, basename, dirname, relative, resolve as absolutePath, sep } from 'node:path';
import { OutsideFailure } from '../domain/failures';
import type { ArtifactStore } from './store';
import type { BigIntStats } from 'node:fs';
import { link, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { type Backend, walk } from './backend';
import { openContentStore } from './content-store';
import { asidePath, createFile, ifThere, isCode, leftoversIn, makeFolder } from './durable-file';
import { linkFile, Objects } from './objects';

/** Removes the temporary files of this host's ended processes; returns the number of files and folders. */
export async function removeLeftovers(root: string): Promise<number> {
  const left = await leftoversIn(join(absolutePath(root), 'aside'));
  for (const path of left) await rm(path, { recursive: true, force: true });
  return left.length;
}

/** Opens the store in `folder`, which is created on the first write. Several processes may use one folder. */
export const openFolderStore = (folder: string): ArtifactStore => openContentStore(folderBackend(absolutePath(folder)));

function folderBackend(root: string): Backend {
  const aside = join(root, 'aside');
  const at = (path: string): string => join(root, path);
  const relativeTo = (path: string): string => relative(root, path).split(sep).join('/');
  const statOf = (path: string) => ifThere(stat(path, { bigint: true }));
  const versionOf = ({ ino, mtimeNs }: { ino: bigint; mtimeNs: bigint }) => `${ino}:${mtimeNs}`;

  /** Removes a file if `isMeant` returns true for it. The file is moved aside first, since another process may write or renew it meanwhile. */
  async function removeIf(path: string, isMeant: (file: BigIntStats) => boolean): Promise<boolean> {
    await makeFolder(aside);
    const moved = asidePath(aside);
    const isThere = await ifThere(rename(path, moved).then(() => true));
    if (!isThere) return false;
    try {
      if (isMeant(await stat(moved, { bigint: true }))) return true;
      await link(moved, path).catch((error: unknown) => {
        if (!isCode(error, 'EEXIST')) throw error;
      });
      return false;
    } finally {
      await rm(moved, { recursive: true, force: true });
    }
  }

  return {
    address: at,
    async read(path) {
      const file = await statOf(at(path));
      const text = await ifThere(readFile(at(path), 'utf8'));
      if (file === undefined || text === undefined) return undefined;
      return { text, version: versionOf(file), changedMs: Number(file.mtimeMs) };
    },
    async renew(path) {
      const now = new Date();
      return (await ifThere(utimes(at(path), now, now).then(() => true))) ?? false;
    },
    create: (path, body) => createFile({ path: at(path), body, aside }),
    async remove(path, version) {
      if (version !== undefined) return removeIf(at(path), (file) => versionOf(file) === version);
      // Retries: another process may write into the folder meanwhile.
      await rm(at(path), { recursive: true, force: true, maxRetries: 10, retryDelay: 20 });
      return true;
    },
    removeOlder: async (path, thanMs) => void (await removeIf(at(path), ({ mtimeMs }) => Number(mtimeMs) <= thanMs)),
    async list(prefix = '') {
      if (prefix === '') return (await walk(root)).map((file) => ({ ...file, path: relativeTo(file.path) }));
      const folder = at(dirname(prefix));
      const names = ((await ifThere(readdir(folder))) ?? []).filter((name) => name.startsWith(basename(prefix)));
      const files = await Promise.all(names.map((name) => walk(join(folder, name))));
      return files.flat().map((file) => ({ ...file, path: relativeTo(file.path) }));
    },
    putFile: (path, file) => linkFile({ from: file, to: at(path), aside }),
    getFile: async (path, file) =>
      (await ifThere(linkFile({ from: at(path), to: file, aside }).then(() => true))) ?? false,
    leftovers: async () => (await leftoversIn(aside)).map(relativeTo),
    changedMs: async (path) => (await ifThere(stat(at(path))))?.mtimeMs,
    objects: new Objects(join(root, 'objects'), aside),
    folderPath: (sha) => join(root, 'folders', sha),
  };
}

const GB = 1e9;

/** Throws BadInput for wrong settings, and for a store of another version. */
export async function openStore(home: string): Promise<ArtifactStore> {
  const { CAMPAIGN_STORE: url, CAMPAIGN_CACHE_GB: gigabytes = '50' } = process.env;
  if (!url) return checked(openFolderStore(join(home, 'artifacts')));
  if (!(Number(gigabytes) > 0))
    throw new OutsideFailure('BadInput', `CAMPAIGN_CACHE_GB is ${gigabytes}; give a number of gigabytes above 0`);
  // The client of S3 is loaded for a bucket only.
  const { openS3Store } = await import('./s3-store.js');
  return checked(openS3Store({ url, cache: join(home, 'cache'), cacheBytes: Number(gigabytes) * GB }));
}

async function checked(store: ArtifactStore): Promise<ArtifactStore> {
  await store.checkFormat();
  return store;
}
