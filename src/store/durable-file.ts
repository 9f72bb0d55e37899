/** Durable files: data is written to a temporary file, flushed, and then given its name. Temporary files name host and process of their writer. */
import { randomBytes } from 'node:crypto';
import { link, mkdir, mkdtemp, open, readdir, rename, rm, stat, unlink, writeFile } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { OutsideFailure } from '../domain/failures';

export const isCode = (error: unknown, ...codes: string[]): boolean =>
  codes.includes(String((error as { code?: unknown } | undefined)?.code));

export const ifThere = <Result>(work: Promise<Result>): Promise<Result | undefined> =>
  work.catch((error: unknown) => {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  });

/** Runs `work` with a new folder of the system's temporary ones, which is removed in any case. */
export async function withTemporaryFolder<Result>(
  prefix: string,
  work: (folder: string) => Promise<Result>,
): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), prefix));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

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
      if (!isCode(again, 'EEXIST')) throw again;
    });
    await flush(dirname(path));
  }
}

/** Returns the folder of this name in `root`. Throws BadInput for a name that leads elsewhere. */
export function folderIn(root: string, name: string): string {
  if (name !== basename(name) || name.startsWith('.'))
    throw new OutsideFailure(
      'BadInput',
      `name is ${JSON.stringify(name)}, which is no name of a folder; choose another`,
    );
  return resolve(root, name);
}

/** Returns the folder of a home's temporary files. It is in the store's folder, where leftovers are removed. */
export const asideIn = (home: string): string => join(home, 'artifacts', 'aside');

export const asidePath = (folder: string): string =>
  join(folder, `${hostname()}-${process.pid}-${randomBytes(8).toString('hex')}`);

/** No write takes so long: an older file is left over, perhaps from another host. */
const DAY_MS = 24 * 3600 * 1000;

/** Returns the temporary files of this host's ended processes in `folder`, and all that are older than a day. */
export async function leftoversIn(folder: string): Promise<string[]> {
  const left: string[] = [];
  for (const name of (await ifThere(readdir(folder))) ?? []) {
    const path = join(folder, name);
    const { mtimeMs = Infinity } = (await ifThere(stat(path))) ?? {};
    if (isOfDeadProcess(name) || Date.now() - mtimeMs > DAY_MS) left.push(path);
  }
  return left;
}

function isOfDeadProcess(name: string): boolean {
  const { host, pid } = /^(?<host>.+)-(?<pid>\d+)-[0-9a-f]{16}$/.exec(name)?.groups ?? {};
  return host === hostname() && !lives(Number(pid));
}

export function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return !isCode(error, 'ESRCH'); // EPERM: it runs as another user.
  }
}

export interface DurableWrite {
  path: string;
  /** A folder on the same file system, for the temporary file; created if it is not there. */
  aside: string;
  /** An iterable for a body that may be longer than the longest string. */
  body: Uint8Array | string | Iterable<string>;
  mode?: number;
}

/** Runs `work`, which makes a file in `folder`, and makes the folder first where it is missing. Other processes may remove it again when it is empty. */
async function inFolder(folder: string, work: () => Promise<void>, attempts = 5): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isCode(error, 'ENOENT') || attempts === 1) throw error;
    await makeFolder(folder);
    await inFolder(folder, work, attempts - 1);
  }
}

/** Calls `make` to write a temporary file, and `name` to rename or link it to `path`. Always removes the temporary file. Throws DiskFull. */
export async function viaAside(o: {
  path: string;
  aside: string;
  bytes: number;
  make: (temporary: string) => Promise<void>;
  name?: (temporary: string, path: string) => Promise<void>;
}): Promise<void> {
  const { path, aside, bytes, make, name = rename } = o;
  const temporary = asidePath(aside);
  try {
    await inFolder(aside, () => make(temporary));
    await inFolder(dirname(path), () => name(temporary, path));
    // A writer that lost a race flushes, too: the winner may not have flushed the name yet, and the caller relies on it.
    await ifThere(flush(dirname(path)));
  } catch (error) {
    throw diskFull(error, { path, bytes });
  } finally {
    await ifThere(unlink(temporary));
  }
}

const written = ({ path, aside, body, mode = 0o644 }: DurableWrite) => ({
  ...{ path, aside },
  bytes: typeof body === 'string' || body instanceof Uint8Array ? Buffer.byteLength(body) : 0,
  make: (temporary: string) => writeFile(temporary, body, { flag: 'wx', mode, flush: true }),
});

export const replaceFile = (write: DurableWrite): Promise<void> => viaAside(written(write));

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

/** Returns DiskFull for an error of a full disk or quota, and any other error as it is. `bytes` is 0 if the size of the file is not known. */
export function diskFull(error: unknown, { path, bytes = 0 }: { path: string; bytes?: number }): unknown {
  if (!isCode(error, 'ENOSPC', 'EDQUOT')) return error;
  const why = isCode(error, 'EDQUOT') ? 'the quota of the disk is used up' : 'the disk is full';
  const what = bytes > 0 ? `${path} (${bytes} bytes)` : path;
  const fix = 'free some room (`df` and `df -i` show bytes and inodes): work continues by itself';
  return new OutsideFailure('DiskFull', `${why}: no room for ${what}; ${fix}`, error);
}
