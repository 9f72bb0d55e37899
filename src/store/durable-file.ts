/**
 * Durable files. A path holds nothing or the whole content: data is written to a temporary file, flushed, and then given its name. The name of a
 * temporary file holds host and process of its writer, so that the files of ended processes can be removed.
 */
import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, rename, stat, statfs, unlink, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { OutsideFailure } from '../domain/failures';

/** Returns whether the error is a system error with one of these codes (ENOENT, EEXIST, ...). */
export const isCode = (error: unknown, ...codes: string[]): boolean =>
  codes.includes(String((error as { code?: unknown } | undefined)?.code));

/** Returns the result of `work`, or undefined if there is no such file. */
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

/** Returns a new path in `folder`. */
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

/** Returns whether the process runs on this host. */
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

/** Other processes may remove an empty folder between the moment it is made and its use. */
const FOLDER_ATTEMPTS = 5;

/** Runs `work`, which makes a file in `folder`, and makes the folder first where it is missing. */
async function inFolder(folder: string, work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const error: unknown = await work().then(() => undefined, (reason: unknown) => reason); // prettier-ignore
    if (error === undefined) return;
    if (!isCode(error, 'ENOENT') || attempt === FOLDER_ATTEMPTS) throw error;
    await makeFolder(folder);
  }
}

/** Makes a temporary file with `make` and gives it the name `path` with `name`. Removes it in any case. Throws DiskFull. */
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
    throw await diskFull(error, { path, bytes });
  } finally {
    await ifThere(unlink(temporary));
  }
}

const written = ({ path, aside, body, mode = 0o644 }: DurableWrite) => ({
  ...{ path, aside },
  bytes: typeof body === 'string' || body instanceof Uint8Array ? Buffer.byteLength(body) : 0,
  // Flushed before it is closed.
  make: (temporary: string) => writeFile(temporary, body, { flag: 'wx', mode, flush: true }),
});

/** Writes `body` to `path`. Several writers of the same bytes may do so at once. */
export const replaceFile = (write: DurableWrite): Promise<void> => viaAside(written(write));

/** Writes `body` to `path` unless the path is taken; returns whether it did. Exactly one of several writers succeeds. */
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
export async function diskFull(
  error: unknown,
  { path, bytes = 0 }: { path: string; bytes?: number },
): Promise<unknown> {
  if (!isCode(error, 'ENOSPC', 'EDQUOT')) return error;
  const why = isCode(error, 'EDQUOT') ? 'the quota of the disk is used up' : 'the disk is full';
  const { bsize, bavail, ffree } = await statfs(await nearest(dirname(path)));
  const what = bytes > 0 ? `${path} (${count(bytes)} bytes)` : path;
  const free = `${count(bavail * bsize)} bytes and ${count(ffree)} inodes are free there`;
  const fix = `free some room, at least ${count(bytes)} bytes, or remove files: work continues by itself`;
  return new OutsideFailure('DiskFull', `${why}: no room for ${what}, ${free}; ${fix}`, error);
}

const count = (amount: number): string => amount.toLocaleString('en-US');

/** Returns the nearest folder that exists. */
const nearest = (folder: string): Promise<string> =>
  stat(folder).then(
    () => folder,
    () => nearest(dirname(folder)),
  );
