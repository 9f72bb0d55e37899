/**
 * Objects: files named by the sha256 of their content. Every read checks the content against the name. A damaged object is never removed, only replaced
 * atomically by an undamaged one. takeOver() and giveOut() make hard links where the file system allows, so that the content is on disk once.
 */
import { createHash } from 'node:crypto';
import { chmod, constants, copyFile, link, lstat, readdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { createReadStream } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { asidePath, flush, ifThere, replaceFile, viaAside } from './durable-file';
import { sha256 } from './hash';

const READ_ONLY = 0o444;

/** Hashes files. A process reads each file once, under whatever name, and again after a change. */
export class FileHashes {
  private readonly known = new Map<string, Promise<string | undefined>>();

  async of(path: string): Promise<string | undefined> {
    for (;;) {
      const mark = await markOf(path);
      if (mark === undefined) return undefined;
      const reading = this.known.get(mark) ?? this.read(path, mark);
      this.known.set(mark, reading);
      const hash = await ifThere(reading);
      if (hash !== undefined) return hash;
    }
  }

  /** Returns undefined if another file has taken its place meanwhile: the bytes may belong to either. */
  private async read(path: string, mark: string): Promise<string | undefined> {
    let isSame = false;
    try {
      const hash = await hashFile(path);
      isSame = (await markOf(path)) === mark;
      return isSame ? hash : undefined;
    } finally {
      if (!isSame) this.known.delete(mark);
    }
  }

  async note(path: string, hash: string | undefined): Promise<void> {
    const mark = await markOf(path);
    if (mark !== undefined && hash !== undefined) this.known.set(mark, Promise.resolve(hash));
    else if (mark !== undefined) this.known.delete(mark);
  }
}

/** Returns a mark that changes when the file is written or replaced, and is the same for every name of one file. */
async function markOf(path: string): Promise<string | undefined> {
  const file = await ifThere(stat(path, { bigint: true }));
  return file && [file.dev, file.ino, file.size, file.mtimeNs].join(':');
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

export class Objects {
  private readonly hashes = new FileHashes();

  constructor(
    private readonly root: string,
    private readonly aside: string,
  ) {}

  path(sha: string): string {
    return join(this.root, sha.slice(0, 2), sha);
  }

  hash(file: string): Promise<string | undefined> {
    return this.hashes.of(file);
  }

  async has(sha: string): Promise<boolean> {
    return (await this.hashes.of(this.path(sha))) === sha;
  }

  /**
   * Makes a whole object as young as one just written, since young objects are not removed. Returns false if there is none, or if it belongs to another
   * user: it has to be written again.
   */
  private async renewed(sha: string): Promise<boolean> {
    return (await this.has(sha)) && this.touch(this.path(sha), sha);
  }

  /** Makes a file that holds the object young; returns false if it can't. */
  private async touch(path: string, sha: string): Promise<boolean> {
    const now = new Date();
    const isDone = await utimes(path, now, now).then(
      () => true,
      () => false,
    );
    if (isDone) await this.hashes.note(path, sha);
    return isDone;
  }

  async put(body: Uint8Array | string): Promise<string> {
    const sha = sha256(body);
    if (await this.renewed(sha)) return sha;
    await replaceFile({ path: this.path(sha), body, aside: this.aside, mode: READ_ONLY });
    await this.hashes.note(this.path(sha), sha);
    return sha;
  }

  async takeOver(file: string): Promise<string> {
    const sha = await this.hashes.of(file);
    if (sha === undefined) throw new Error(`${file} went away while it was stored`);
    if (await this.renewed(sha)) return sha;
    // A link is as old as its file.
    await this.touch(file, sha);
    await linkFile({ from: file, to: this.path(sha), aside: this.aside });
    return sha;
  }

  async read(sha: string): Promise<Buffer | undefined> {
    const body = await ifThere(readFile(this.path(sha)));
    const isWhole = body !== undefined && sha256(body) === sha;
    await this.hashes.note(this.path(sha), isWhole ? sha : undefined);
    return isWhole ? body : undefined;
  }

  async giveOut(sha: string, to: string): Promise<boolean> {
    if (!(await this.has(sha))) return false;
    if ((await this.hashes.of(to)) !== sha) await linkFile({ from: this.path(sha), to, aside: this.aside });
    return true;
  }
}

/** Gives the file `from` the name `to` as well, durably. Both are read-only from then on. */
export async function linkFile({ from, to, ...o }: { from: string; to: string; aside: string }): Promise<void> {
  const { size: bytes } = await stat(from);
  // The link has a folder of its own: it is as old as the file, and old temporary files are removed.
  const aside = asidePath(o.aside);
  try {
    await viaAside({ path: to, aside, bytes, make: (temporary) => linkOrCopy(from, temporary) });
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch(() => copyFile(from, to, constants.COPYFILE_FICLONE));
  await chmod(to, READ_ONLY);
  await flush(to);
}

/** Returns whether a path is relative, has forward slashes and stays in its folder. */
export const isInside = (path: string): boolean =>
  !path.split('/').some((part) => part === '' || part === '.' || part === '..');

/** Returns the files of a folder, or the named ones, sorted by path. Throws for links and devices, whose content is elsewhere. */
export async function filesIn(folder: string, names?: readonly string[]): Promise<string[]> {
  const paths = names ?? (await pathsBelow(folder));
  for (const path of paths) {
    if (!isInside(path))
      throw new Error(`folder artifact: '${path}' is not inside ${folder}; name it relative to that`);
    const file = await ifThere(lstat(join(folder, path)));
    if (!file) throw new Error(`folder artifact: ${folder} has no file '${path}'`);
    if (!file.isFile())
      throw new Error(`folder artifact: ${join(folder, path)} is not a plain file; copy what it refers to`);
  }
  return [...new Set(paths)].sort();
}

async function pathsBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'));
}
