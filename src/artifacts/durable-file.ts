/**
 * Durable files. Invariants: a path either holds nothing or the whole content: data is written aside, flushed to the disk, and only
 * then given its name. A write that fails leaves nothing behind, and one without room is a DiskFull.
 */
import { link, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { asidePath } from './aside';
import { withRoom } from './disk-full';

/** True for a system error with one of these codes (ENOENT, EEXIST, ...). */
export const isCode = (error: unknown, ...codes: string[]): boolean =>
  codes.includes(String((error as { code?: unknown } | undefined)?.code));

/** Flushes a file's bytes or a folder's entries: content and names are durable only then. */
export async function flush(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes a folder and those above it. (With `recursive`, Node tells a full disk as ENOENT.) */
export async function makeFolder(path: string): Promise<void> {
  if (await tryFolder(path)) return;
  await makeFolder(dirname(path));
  if (!(await tryFolder(path))) throw new Error(`no folder can be made at ${path}`);
}

/** False where the folder above is missing. */
async function tryFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path);
    return true;
  } catch (error) {
    if (isCode(error, 'ENOENT') && dirname(path) !== path) return false;
    if (isCode(error, 'EEXIST')) return true;
    throw error;
  }
}

async function writeAside(path: string, body: Uint8Array | string, mode: number): Promise<void> {
  const handle = await open(path, 'wx', mode);
  try {
    await handle.writeFile(body);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Makes a file under a name of its own with `make`, and gives it the name `path` with `name`; whatever fails, the first name goes. */
export async function viaAside({ path, aside, bytes, make, name }: ViaAside): Promise<void> {
  await withRoom({ path, bytes }, async () => {
    await makeFolder(aside);
    const temporary = asidePath(aside);
    try {
      await make(temporary);
      await makeFolder(dirname(path));
      await name(temporary, path);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
    // Also for one who lost a race: the winner may not have flushed the name yet, and our caller goes on relying on it.
    await flush(dirname(path));
  });
}

interface ViaAside {
  path: string;
  /** A folder on the same file system; created if it is not there. */
  aside: string;
  bytes: number;
  make: (temporary: string) => Promise<void>;
  name: (temporary: string, path: string) => Promise<void>;
}

/** Puts `body` at `path`; several writers of the same bytes may do so at once. */
export const replaceFile = ({ path, body, aside, mode = 0o644 }: DurableWrite): Promise<void> =>
  viaAside({
    path,
    aside,
    bytes: Buffer.byteLength(body),
    make: (temporary) => writeAside(temporary, body, mode),
    name: rename,
  });

/** Puts `body` at `path` unless something is there; true if it was put. Of several writers exactly one succeeds. */
export async function createFile({ path, body, aside, mode = 0o644 }: DurableWrite): Promise<boolean> {
  let created = true;
  await viaAside({
    path,
    aside,
    bytes: Buffer.byteLength(body),
    make: (temporary) => writeAside(temporary, body, mode),
    name: async (temporary) => {
      created = await linked(temporary, path);
    },
  });
  return created;
}

/** A second name for a file; false where something has that name already. */
export async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  }
}

type DurableWrite = Pick<ViaAside, 'path' | 'aside'> & { body: Uint8Array | string; mode?: number };
