/** The lock of a home, the file in which its supervisor describes itself to other commands, and signals to process groups. */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkSync, lock } from 'proper-lockfile';
import { isCode } from '../../store/durable-file';
import { UserError } from '../errors';
import { type Home, readJsonFile } from '../project';

/** Signals the whole group of a process. @returns false if nothing of it is left. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch (error) {
    return isCode(error, 'EPERM');
  }
}

/** True once the condition holds, false after `seconds`. */
export async function waitUntil(condition: () => boolean | Promise<boolean>, seconds: number): Promise<boolean> {
  const deadline = Date.now() + seconds * 1000;
  while (!(await condition())) {
    if (Date.now() >= deadline) return false;
    await sleep(50);
  }
  return true;
}

interface State {
  /** Address of the home's own Temporal server, and of its UI. */
  temporalAddress?: string;
  ui?: string;
  /** Process groups of the services. */
  groups?: number[];
}

/** Returns an empty state if there is no such file, or a damaged one. */
const readState = ({ state }: Home): State => readJsonFile(state) ?? {};

/** Adds to the description of the supervisor. */
export function announce(home: Home, part: State): void {
  const file = `${home.state}.part`;
  writeFileSync(file, JSON.stringify({ ...readState(home), ...part }));
  renameSync(file, home.state);
}

export const clearState = ({ state }: Home): void => rmSync(state, { force: true });

/** Address of the home's own server, if its supervisor runs: the port of one that is gone may be another home's by now. */
export const serverOf = (home: Home): string | undefined =>
  isHeld(home) ? readState(home).temporalAddress : undefined;

/** Address of its UI. */
export const uiOf = (home: Home): string | undefined => readState(home).ui;

/** Waits for services of a killed supervisor, which end once its end of their stdin is closed. @returns false if some still run. */
export async function waitForLeftovers(home: Home, seconds: number): Promise<boolean> {
  const { groups = [] } = readState(home);
  return waitUntil(() => !groups.some((group) => signalGroup(group, 0)), seconds);
}

/** The lock of a killed process is taken over after this time. */
const STALE_MS = 5_000;
const RETRY_MS = 500;
const lockOptions = (home: Home) => ({ lockfilePath: home.lock, realpath: false, stale: STALE_MS });

/** Returns true if a process holds the lock of the home. */
export const isHeld = (home: Home): boolean => checkSync(home.root, lockOptions(home));

/**
 * Takes the lock of a home, and waits until that of a killed process is stale. `onLost`: another process took the lock because this one stood still.
 * @returns a function that gives it back.
 * @throws UserError if another process holds it.
 */
export async function acquireLock(home: Home, onLost?: (error: UserError) => void): Promise<() => Promise<void>> {
  const retries = { retries: STALE_MS / RETRY_MS + 2, minTimeout: RETRY_MS, maxTimeout: RETRY_MS };
  const lost = `another command took ${home.root} while this one stood still; give it again`;
  const onCompromised = () => onLost?.(new UserError('home_in_use', '--home', lost));
  try {
    return await lock(home.root, { ...lockOptions(home), update: 1_000, retries, onCompromised });
  } catch (error) {
    if (isCode(error, 'ELOCKED'))
      throw new UserError(
        'home_in_use',
        '--home',
        `${home.root} is in use by another \`campaign run\` or \`campaign ui\`; end it, or choose another folder with --home`,
      );
    if (isCode(error, 'ENOSPC', 'EDQUOT'))
      throw new UserError(
        'unwritable',
        '--home',
        `the disk of ${home.root} is full: free at least 1 GiB, or choose another folder with --home`,
      );
    throw error;
  }
}
