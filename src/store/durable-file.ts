/**
 * Durable files. A path holds nothing or the whole content: data is written to a temporary file, flushed, and only then given its name. A
 * temporary file's name says which process of which host writes it, so that what a dead one left can be removed.
 */
import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { OutsideFailure } from '../domain/failures';

/** True for a system error with one of these codes (ENOENT, EEXIST, ...). */
export const isCode = (error: unknown, ...codes: string[]): boolean =>
  codes.includes(String((error as { code?: unknown } | undefined)?.code));

/** What `work` gives; undefined if there is no such file. */
export const ifThere = <Result>(work: Promise<Result>): Promise<Result | undefined> =>
  work.catch((error: unknown) => {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  });

/** Flushes a file's bytes or a folder's entries: content and names are durable only then. */
export async function flush(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes a folder and those above it, durably. (With `recursive`, Node reports a full disk as ENOENT.) */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
    await flush(dirname(path));
  } catch (error) {
    if (isCode(error, 'EEXIST')) return;
    if (!isCode(error, 'ENOENT') || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await mkdir(path).catch((again: unknown) => {
      // As in /proc, though the folder above is there.
      if (isCode(again, 'ENOENT')) throw new Error(`no folder can be made at ${path}`, { cause: again });
      if (!isCode(again, 'EEXIST')) throw again;
    });
    await flush(dirname(path));
  }
}

/** The folder of this name in `root`. Throws BadInput for a name that leads elsewhere. */
export function folderIn(root: string, name: string): string {
  if (name !== basename(name) || name.startsWith('.'))
    throw new OutsideFailure(
      'BadInput',
      `name is ${JSON.stringify(name)}, which is no name of a folder; choose another`,
    );
  return resolve(root, name);
}

/** Where a home's temporary files lie: in the store's folder, since its leftovers are removed. */
export const asideIn = (home: string): string => join(home, 'artifacts', 'aside');

/** A fresh path in `folder`, different in every process. */
export const asidePath = (folder: string): string =>
  join(folder, `${hostname()}-${process.pid}-${randomBytes(8).toString('hex')}`);

/** No write takes that long: what is older was left by a process whose end can't be seen from here. */
const DAY_MS = 24 * 3600 * 1000;

/** Temporary files in `folder` of this host's dead processes, and whatever is older than a day. */
export async function leftoversIn(folder: string): Promise<string[]> {
  const left: string[] = [];
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name);
    const age = Date.now() - ((await stat(path).catch(() => undefined))?.mtimeMs ?? Infinity);
    if (isOfDeadProcess(name) || age > DAY_MS) left.push(path);
  }
  return left;
}

function isOfDeadProcess(name: string): boolean {
  const { host, pid } = /^(?<host>.+)-(?<pid>\d+)-[0-9a-f]{16}$/.exec(name)?.groups ?? {};
  return host === hostname() && !lives(Number(pid));
}

/** Whether there is such a process on this host. */
export function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !isCode(error, 'ESRCH'); // EPERM: it lives, and is another user's.
  }
}

export interface DurableWrite {
  path: string;
  /** A folder on the same file system, for the temporary file; created if it is not there. */
  aside: string;
  /** In pieces where it may be longer than a string can be. */
  body: Uint8Array | string | Iterable<string>;
  mode?: number;
}

const NAME_ATTEMPTS = 5;

/** Makes a temporary file with `make` and gives it the name `path` with `name`. Whatever fails, the temporary file goes. */
export async function viaAside(o: {
  path: string;
  aside: string;
  bytes: number;
  make: (temporary: string) => Promise<void>;
  name?: (temporary: string, path: string) => Promise<void>;
}): Promise<void> {
  const { path, aside, bytes, make, name = rename } = o;
  await withRoom({ path, bytes }, async () => {
    await makeFolder(aside);
    const temporary = asidePath(aside);
    try {
      await make(temporary);
      for (let attempt = 1; ; attempt++) {
        await makeFolder(dirname(path));
        const error = await name(temporary, path).then(() => undefined, (reason: unknown) => reason); // prettier-ignore
        if (error === undefined) break;
        // Another process may have removed the folder in between.
        if (!isCode(error, 'ENOENT') || attempt === NAME_ATTEMPTS) throw error;
      }
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
    // Also for one who lost a race: the winner may not have flushed the name yet, and our caller goes on relying on it.
    await ifThere(flush(dirname(path)));
  });
}

async function writeFlushed(path: string, { body, mode = 0o644 }: Pick<DurableWrite, 'body' | 'mode'>): Promise<void> {
  const handle = await open(path, 'wx', mode);
  try {
    await writeFile(handle, body);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const written = (write: DurableWrite) => ({
  path: write.path,
  aside: write.aside,
  bytes: typeof write.body === 'string' || write.body instanceof Uint8Array ? Buffer.byteLength(write.body) : 0,
  make: (temporary: string) => writeFlushed(temporary, write),
});

/** Puts `body` at `path`; several writers of the same bytes may do so at once. */
export const replaceFile = (write: DurableWrite): Promise<void> => viaAside(written(write));

/** Puts `body` at `path` unless something is there; true if it was put. Of several writers exactly one succeeds. */
export async function createFile(write: DurableWrite): Promise<boolean> {
  let created = true;
  const name = async (temporary: string, path: string) => {
    await link(temporary, path).catch(async (error: unknown) => {
      if (!isCode(error, 'EEXIST')) throw error;
      // NFS may carry out a request twice: the second one fails, though the first has made the link.
      created = (await stat(temporary)).nlink > 1;
    });
  };
  await viaAside({ ...written(write), name });
  return created;
}

/** What could not be written: its path and how many bytes it has, where that is known. */
interface Wanted {
  path: string;
  bytes?: number;
}

/** Does `work`, which writes what is named; without room it fails with DiskFull. */
export async function withRoom<Result>(wanted: Wanted, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw await diskFull(error, wanted);
  }
}

/** Free again where writes beside the failed one have just been given up. */
const FEW_INODES = 16;

/** The failure DiskFull for an error that says so (no room, or the quota is used up); any other error as it is. */
export async function diskFull(error: unknown, { path, bytes = 0 }: Wanted): Promise<unknown> {
  if (!isCode(error, 'ENOSPC', 'EDQUOT')) return error;
  const { bsize, bavail, files, ffree } = await roomAt(dirname(path));
  const free = bavail * bsize;
  const needed = Math.max(1, Math.ceil(bytes / bsize)) * bsize;
  const isQuota = isCode(error, 'EDQUOT');
  const why = isQuota ? 'the quota of the disk is used up' : 'the disk is full';
  // Some file systems make inodes as they need them, and tell of none.
  const inodes = files > 0 ? ` and ${ffree.toLocaleString('en-US')} inodes` : '';
  // With bytes enough it is files that there are too many of, or another writer has just given up and left its room.
  const fix = !isQuota && free >= needed && ffree < FEW_INODES ? 'remove files there' : `free at least ${size(needed)}`;
  const what = bytes > 0 ? `${path} (${size(bytes)})` : path;
  return new OutsideFailure(
    'DiskFull',
    `${why}: no room for ${what}, ${size(free)}${inodes} are free there; ${fix}: work goes on by itself`,
    error,
  );
}

const size = (bytes: number): string => `${bytes.toLocaleString('en-US')} bytes`;

/** Of the nearest folder that exists. */
async function roomAt(folder: string): Promise<{ bsize: number; bavail: number; files: number; ffree: number }> {
  const room = await statfs(folder).catch(() => undefined);
  if (room) return room;
  return dirname(folder) === folder ? { bsize: 4096, bavail: 0, files: 0, ffree: 0 } : roomAt(dirname(folder));
}
