/**
 * Objects: content named by its sha256. Invariants: what is given out has the bytes of its name; an object that is damaged or missing is
 * mended from a materialised folder that holds the same bytes, if there is one. A damaged object is never removed, only replaced by
 * whole bytes at once: another process may be replacing it at the same moment.
 */
import { chmod, copyFile, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { hashFile, markOf, type Checks } from './checks';
import { flush, isCode, replaceFile, viaAside } from './durable-file';
import { listFiles, listingOf, parseListing } from './folder-tree';
import { sha256 } from './hash';

const READ_ONLY = 0o444;

interface Objects {
  path(sha: string): string;
  /** Stores bytes, unless they are there already; their sha256. */
  put(body: Uint8Array | string): Promise<string>;
  /** Whether the object is whole, perhaps after mending. */
  has(sha: string): Promise<boolean>;
  /** Its bytes; undefined if it is damaged or missing, beyond mending. */
  read(sha: string): Promise<Buffer | undefined>;
  /** Puts a copy at a fresh path, read-only and flushed; false if the object is damaged or missing, beyond mending. */
  copy(object: { sha256: string; to: string }): Promise<boolean>;
}

/** `folders`: where folder artifacts are materialised, each under the sha256 of its listing. */
export function openObjects({ root, folders, aside, checks }: OpenObjects): Objects {
  const pathOf = (sha: string) => join(root, sha.slice(0, 2), sha);

  async function put(body: Uint8Array | string): Promise<string> {
    const sha = sha256(body);
    const path = pathOf(sha);
    if (await checks.hasHash(path, sha)) return sha;
    await replaceFile({ path, body, aside, mode: READ_ONLY });
    await checks.pass(path);
    return sha;
  }

  const has = async (sha: string) => (await checks.hasHash(pathOf(sha), sha)) || mend(sha);

  async function readWhole(sha: string): Promise<Buffer | undefined> {
    const path = pathOf(sha);
    const mark = await markOf(path);
    if (mark === undefined) return undefined;
    const body = await readFile(path);
    const whole = sha256(body) === sha;
    await (whole ? checks.pass(path, mark) : checks.fail(path));
    return whole ? body : undefined;
  }

  const read = async (sha: string) => (await readWhole(sha)) ?? ((await mend(sha)) ? readWhole(sha) : undefined);

  async function copy({ sha256: sha, to }: { sha256: string; to: string }): Promise<boolean> {
    if (await copied({ sha, from: pathOf(sha), to })) return true;
    await checks.fail(pathOf(sha));
    return (await mend(sha)) && copied({ sha, from: pathOf(sha), to });
  }

  /** Looks for the bytes in the materialised folders. It reads listings, so it is for when something is damaged only. */
  async function mend(sha: string): Promise<boolean> {
    for (const name of await readdir(folders).catch(() => [])) {
      const listing = await listingAt(name);
      if (!listing) continue;
      if (name === sha) {
        await put(listing);
        return true;
      }
      const { files } = parseListing({ body: listing, file: pathOf(name) });
      const file = files.find((candidate) => candidate.sha256 === sha);
      if (file && (await putCopy({ sha, from: join(folders, name, file.path), bytes: file.bytes }))) return true;
    }
    return false;
  }

  /** The listing of a materialised folder: the stored one, or else the folder's own, if that has the folder's name. */
  async function listingAt(name: string): Promise<Buffer | undefined> {
    const stored = await readWhole(name);
    if (stored) return stored;
    try {
      const files = await listFiles({ folder: join(folders, name) });
      const listing = Buffer.from(await listingOf({ files, store: lookUp }));
      return sha256(listing) === name ? listing : undefined;
    } catch {
      return undefined; // no folder, or links in it: it is not what was materialised
    }
  }

  async function putCopy({ sha, from, bytes }: { sha: string; from: string; bytes: number }): Promise<boolean> {
    const path = pathOf(sha);
    let whole = false;
    await viaAside({
      path,
      aside,
      bytes,
      make: async (to) => void (whole = await copied({ sha, from, to })),
      name: async (temporary) => {
        if (whole) await rename(temporary, path);
      },
    });
    if (whole) await checks.pass(path);
    return whole;
  }

  return { path: pathOf, put, has, read, copy };
}

interface OpenObjects {
  root: string;
  folders: string;
  aside: string;
  checks: Checks;
}

/** Whether there were such bytes to be copied. The copy is what is checked. */
async function copied({ sha, from, to }: { sha: string; from: string; to: string }): Promise<boolean> {
  try {
    await copyFile(from, to);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return false;
    throw error;
  }
  await chmod(to, READ_ONLY);
  await flush(to);
  if ((await hashFile(to)) === sha) return true;
  await rm(to, { force: true });
  return false;
}

async function lookUp(absolute: string): Promise<{ sha256: string; bytes: number }> {
  const sha = await hashFile(absolute);
  if (sha === undefined) throw new Error(`${absolute} went away while it was read`);
  return { sha256: sha, bytes: (await stat(absolute)).size };
}
