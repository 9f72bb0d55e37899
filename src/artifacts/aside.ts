/**
 * Names for what is not finished yet. Invariant: a name says which process of which host writes it, so that what a dead one left is
 * known as such.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';

const NAME = /^(?<host>.+)-(?<pid>\d+)-[0-9a-f]{16}$/;
/** No write takes that long: what is older was left by a process whose end can't be seen from here. */
const DAY_MS = 24 * 3600 * 1000;

/** A fresh path in `folder`, different in every process. */
export const asidePath = (folder: string): string =>
  join(folder, `${hostname()}-${process.pid}-${randomBytes(8).toString('hex')}`);

/** Removes what is left in `folder` of this host's dead processes, and whatever is older than a day; returns how many entries. */
export async function removeAsides(folder: string): Promise<number> {
  let removed = 0;
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name);
    if (!isOfDeadProcess(name) && !(await isOld(path))) continue;
    await rm(path, { recursive: true, force: true });
    removed++;
  }
  return removed;
}

function isOfDeadProcess(name: string): boolean {
  const { host, pid } = NAME.exec(name)?.groups ?? {};
  if (host !== hostname()) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    // EPERM: it lives, and is another user's.
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

const isOld = async (path: string): Promise<boolean> => {
  const entry = await stat(path).catch(() => undefined);
  return entry !== undefined && Date.now() - entry.mtimeMs > DAY_MS;
};

/** Where a home's files are written before they have their names: the store's own folder, since its leftovers are removed. */
export const asideIn = (home: string): string => join(home, 'artifacts', 'aside');
