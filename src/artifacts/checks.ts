/**
 * Which files were found whole. Invariant: a file is read again when it was changed since (its inode, size or times), so a check costs
 * one read a process; a file that was found damaged is given a new time, so that every other process reads it again, too.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat, utimes } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { isCode } from './durable-file';

/** sha256 of a file's bytes; undefined if there is no such file. */
export async function hashFile(path: string): Promise<string | undefined> {
  const hash = createHash('sha256');
  try {
    await pipeline(createReadStream(path), hash);
    return hash.digest('hex');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
}

export class Checks {
  private readonly passed = new Map<string, string>();
  private readonly running = new Map<string, Promise<boolean>>();

  /** Whether the file is there and `test` holds of it: by an earlier test if it has not changed since. */
  async holds(path: string, test: () => Promise<boolean>): Promise<boolean> {
    const mark = await markOf(path);
    if (mark === undefined) return false;
    if (this.passed.get(path) === mark) return true;
    const run = this.running.get(path) ?? this.test({ path, mark, test }).finally(() => this.running.delete(path));
    this.running.set(path, run);
    return run;
  }

  /** Whether the file has these bytes. */
  hasHash(path: string, sha: string): Promise<boolean> {
    return this.holds(path, async () => (await hashFile(path)) === sha);
  }

  /** The file is what this process has just written or read: `mark`, if given, is what it had before the reading. */
  async pass(path: string, mark?: string): Promise<void> {
    const now = mark ?? (await markOf(path));
    if (now !== undefined) this.passed.set(path, now);
  }

  /** The file is damaged, though it may look as it did when it was whole. */
  async fail(path: string): Promise<void> {
    this.passed.delete(path);
    const now = new Date();
    await utimes(path, now, now).catch(() => undefined); // best effort: it may be gone, or another user's
  }

  private async test({ path, mark, test }: { path: string; mark: string; test: () => Promise<boolean> }) {
    const whole = await test();
    await (whole ? this.pass(path, mark) : this.fail(path));
    return whole;
  }
}

/** Another one whenever the file was written or replaced. */
export async function markOf(path: string): Promise<string | undefined> {
  const file = await stat(path, { bigint: true }).catch((error: unknown) => {
    if (isCode(error, 'ENOENT', 'ENOTDIR')) return undefined;
    throw error;
  });
  return file && [file.ino, file.size, file.mtimeNs, file.ctimeNs].join(':');
}
