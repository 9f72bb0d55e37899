/**
 * One supervisor a home. Invariant: the lock file is whole from the moment it exists, and only a holder's that is known to be dead is taken
 * over: of one on another machine or in another container nothing is known.
 */
import { randomUUID } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { isCode } from '../../artifacts/durable-file';
import { here, isHere } from '../../artifacts/place';
import { UserError } from '../errors';
import type { Home } from '../project';
import { isRunning, recordedProcessSchema, recordOf, type RecordedProcess } from './processes';

/**
 * Takes the lock of a home that is there.
 * @returns a function that gives it back.
 * @throws UserError if another supervisor holds it that is alive, or that may be.
 */
export function acquireLock(home: Home): () => void {
  const me = recordOf({ name: 'supervisor', pid: process.pid });
  const aside = `${home.lock}.${randomUUID()}`;
  try {
    writeFileSync(aside, JSON.stringify(me));
    for (;;) {
      if (linked(aside, home.lock)) break;
      const holder = readHolder(home.lock);
      if (holder && !isDead(holder)) throw inUse(home, holder);
      takeAway(home);
    }
  } catch (error) {
    if (!isCode(error, 'ENOSPC', 'EDQUOT')) throw error;
    throw new UserError(`the disk of ${home.root} is full: free at least 1 GiB, or choose another folder with --home`);
  } finally {
    rmSync(aside, { force: true });
  }
  return () => {
    if (isDeepStrictEqual(readHolder(home.lock), me)) rmSync(home.lock, { force: true });
  };
}

/** The supervisor that holds the home now, if it is alive. */
export function liveHolder(home: Home): RecordedProcess | undefined {
  const holder = readHolder(home.lock);
  return holder && isRunning(holder) ? holder : undefined;
}

/** One of an earlier boot of this host ended with it. */
function isDead(holder: RecordedProcess): boolean {
  const { host, boot } = holder.place;
  return isHere(holder.place) ? !isRunning(holder) : host === here.host && boot !== here.boot;
}

function inUse(home: Home, holder: RecordedProcess): UserError {
  const { pid, place } = holder;
  const other = '`campaign run` or `campaign serve`';
  return new UserError(
    isHere(place)
      ? `${home.root} is in use by another ${other} (pid ${pid}); end it, or choose another folder with --home`
      : `${home.root} is in use by a ${other} on another machine or in another container: ${home.lock} names host ${place.host} (pid ${pid}); end it there, or choose another folder with --home. If it runs no more, remove ${home.lock}`,
  );
}

/** Moves a dead holder's file aside; puts it back if somebody else took over between our look and our move. */
function takeAway(home: Home): void {
  const stale = `${home.lock}.stale.${randomUUID()}`;
  try {
    renameSync(home.lock, stale);
  } catch {
    return;
  }
  const moved = readHolder(stale);
  if (moved && !isDead(moved)) linked(stale, home.lock);
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

/** Who is written in a lock file; undefined if it is damaged: nobody alive holds it then, because it was whole when it was made. */
function readHolder(file: string): RecordedProcess | undefined {
  try {
    return recordedProcessSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}
