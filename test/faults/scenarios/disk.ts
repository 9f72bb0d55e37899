/** The disk of the home is full for a while: everything waits, and the campaign ends by itself. The home is a file system of its own. */
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Scenario } from '../../support/faults-scenario';
import type { Phase } from '../../support/faults-session';

const FULL_SECONDS = 20;
/** Enough free space for the program's check at its start; a tmpfs uses only the memory of its files. */
const SIZE = '4g';
/** More than is written while the file system is made smaller. */
const SPARE_BYTES = 32 * 1024 ** 2;

const mount = (...words: string[]) => execFileSync('mount', words, { stdio: ['ignore', 'ignore', 'pipe'] });

function unable(): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'faults-mount-'));
  try {
    mount('-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', folder);
    execFileSync('umount', [folder]);
    return undefined;
  } catch {
    return 'a file system of its own can be mounted by root only';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const ballast = (folder: string) => join(folder, 'ballast');

/** Takes all room but a little away, and the rest with a ballast file. */
function fill(folder: string): void {
  const { blocks, bfree, bsize } = statfsSync(folder);
  mount('-o', `remount,size=${(blocks - bfree) * bsize + SPARE_BYTES}`, folder);
  const file = openSync(ballast(folder), 'w');
  try {
    for (;;) writeSync(file, Buffer.alloc(4096));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  } finally {
    closeSync(file);
  }
}

function empty(folder: string): void {
  mount('-o', `remount,size=${SIZE}`, folder);
  rmSync(ballast(folder));
}

const full = (phase: Phase): Scenario => ({
  name: `disk: full for ${FULL_SECONDS} s, ${phase}`,
  file: 'small',
  unable,
  prepare({ home, cleanups }) {
    mkdirSync(home.root, { recursive: true });
    mount('-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', home.root);
    cleanups.push(() => void execFileSync('umount', ['--lazy', home.root]));
    return Promise.resolve('');
  },
  async act(session) {
    session.start();
    await session.phase(phase);
    fill(session.home.root);
    await sleep(FULL_SECONDS * 1000);
    session.notes.push(session.run.ended ? 'the command ended while the disk was full' : 'the command waited');
    empty(session.home.root);
  },
});

export const disks: Scenario[] = (['base rollouts', 'training', 'evaluation'] as const).map(full);
