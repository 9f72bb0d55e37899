/**
 * Durable files. Invariant: a path either holds nothing or the whole content: data is written aside, flushed to the disk, and
 * only then given its name.
 */
import { randomBytes } from 'node:crypto';
import { link, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** True for a system error with one of these codes (ENOENT, EEXIST, ...). */
export const isCode = (error: unknown, ...codes: string[]): boolean =>
  codes.includes(String((error as { code?: unknown } | undefined)?.code));

/** Flushes a folder's entries: a name is durable only then. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A fresh path in `folder`, different in every process. */
export const asidePath = (folder: string): string => join(folder, `${process.pid}-${randomBytes(8).toString('hex')}`);

async function writeAside(path: string, body: Uint8Array | string, mode: number): Promise<void> {
  const handle = await open(path, 'wx', mode);
  try {
    await handle.writeFile(body);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Puts `body` at `path`; several writers of the same bytes may do so at once. */
export async function replaceFile({ path, body, aside, mode = 0o644 }: DurableWrite): Promise<void> {
  const temporary = asidePath(aside);
  await writeAside(temporary, body, mode);
  await mkdir(dirname(path), { recursive: true });
  await rename(temporary, path);
  await syncFolder(dirname(path));
}

/** Puts `body` at `path` unless something is there; true if it was put. Of several writers exactly one succeeds. */
export async function createFile({ path, body, aside, mode = 0o644 }: DurableWrite): Promise<boolean> {
  const temporary = asidePath(aside);
  await writeAside(temporary, body, mode);
  try {
    await mkdir(dirname(path), { recursive: true });
    await link(temporary, path);
    return true;
  } catch (error) {
    if (!isCode(error, 'EEXIST')) throw error;
    return false;
  } finally {
    await rm(temporary, { force: true });
    // Also after losing the race: the winner may not have flushed the name yet, and our caller goes on relying on it.
    await syncFolder(dirname(path)).catch(() => undefined);
  }
}

interface DurableWrite {
  path: string;
  body: Uint8Array | string;
  /** An existing folder on the same file system. */
  aside: string;
  mode?: number;
}
