/** One supervisor a home. Invariant: the lock file is whole from the moment it exists, and only a dead holder's is taken over. */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { UserError } from '../errors';
import type { Home } from '../project';
import { isRunning, startTime, type RecordedProcess } from './processes';

/**
 * Takes the home's lock.
 * @returns a function that gives it back.
 * @throws UserError if another supervisor that is alive holds it.
 */
export function acquireLock(home: Home): () => void {
  mkdirSync(home.root, { recursive: true });
  const me: RecordedProcess = { name: 'supervisor', pid: process.pid, started: startTime(process.pid) ?? '' };
  const aside = `${home.lock}.${process.pid}`;
  writeFileSync(aside, JSON.stringify(me));
  try {
    for (;;) {
      if (linked(aside, home.lock)) break;
      const holder = readHolder(home.lock);
      if (holder && isRunning(holder))
        throw new UserError(
          `${home.root} is in use by another \`campaign run\` or \`campaign serve\` (pid ${holder.pid}); end it, or choose another folder with --home`,
        );
      takeAway({ home, holder });
    }
  } finally {
    rmSync(aside, { force: true });
  }
  return () => {
    if (readHolder(home.lock)?.pid === process.pid) rmSync(home.lock, { force: true });
  };
}

/** The supervisor that holds the home now, if it is alive. */
export function liveHolder(home: Home): RecordedProcess | undefined {
  const holder = readHolder(home.lock);
  return holder && isRunning(holder) ? holder : undefined;
}

/** Moves a dead holder's file aside; puts it back if somebody else took over between our look and our move. */
function takeAway({ home, holder }: { home: Home; holder: RecordedProcess | undefined }): void {
  const stale = `${home.lock}.stale.${process.pid}`;
  try {
    renameSync(home.lock, stale);
  } catch {
    return;
  }
  const moved = readHolder(stale);
  if (moved && moved.pid !== holder?.pid && isRunning(moved)) linked(stale, home.lock);
  rmSync(stale, { force: true });
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

function readHolder(file: string): RecordedProcess | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as RecordedProcess;
  } catch {
    return undefined;
  }
}
