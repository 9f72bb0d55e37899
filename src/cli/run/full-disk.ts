/** A full disk. Invariant: what the supervisor writes beside the work itself waits for room and ends nothing. */
import { statfsSync } from 'node:fs';
import { isCode } from '../../artifacts/durable-file';

/** With less than this no service comes up. */
const NEEDED_BYTES = 4 * 1024 ** 2;
const SAY_AGAIN_MS = 10 * 60_000;

/** The disk of a home. */
export class HomeDisk {
  private saidAt = -Infinity;

  constructor(
    private readonly folder: string,
    private readonly say: (text: string) => void,
  ) {}

  /** Whether there is no room now; says so. */
  isFull(): boolean {
    try {
      const { bavail, bsize } = statfsSync(this.folder);
      if (bavail * bsize >= NEEDED_BYTES) return false;
    } catch {
      return false;
    }
    this.sayFull();
    return true;
  }

  /** Does something that writes. @returns false if there was no room for it. */
  attempt(write: () => void): boolean {
    try {
      write();
      return true;
    } catch (error) {
      if (!isCode(error, 'ENOSPC', 'EDQUOT')) throw error;
      this.sayFull();
      return false;
    }
  }

  private sayFull(): void {
    const now = performance.now();
    if (now - this.saidAt < SAY_AGAIN_MS) return;
    this.saidAt = now;
    this.say(`the disk of ${this.folder} is full: free at least 1 GiB; what runs waits for it and then goes on`);
  }
}
