/**
 * Processes of a home, on disk and in the system: records of what runs, the home's lock, and what a killed supervisor left behind.
 * Invariants: a process is signalled only if it is provably the recorded one (same place, pid and start time) or carries the mark of the run
 * that started it; the state file and the lock are replaced whole, so that both can be read after a kill -9 at any moment; only a dead holder's
 * lock is taken over, and of one on another machine or in another container nothing is known.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { z } from 'zod';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { here, isHere, placeSchema } from '../../artifacts/place';
import type { Home } from '../project';
import { isCode } from '../../artifacts/durable-file';
import { UserError } from '../errors';

/** Environment variable of everything that a supervisor starts, and of what that starts in turn. */
const MARK = 'CAMPAIGN_RUN';
/** Of what this process starts. */
const run = randomUUID();
export const mark = { [MARK]: run };

const recordedProcessSchema = z.object({
  name: z.string(),
  /** Also the id of its process group: every child leads one. */
  pid: z.number().int(),
  /** When it began, in the system's own words. */
  started: z.string(),
  /** Value of the mark of what it starts. */
  run: z.string(),
  place: placeSchema,
});
export type RecordedProcess = z.infer<typeof recordedProcessSchema>;

/** A process of this place, to be written down; undefined if it has ended. */
export function recordOf({ name, pid }: { name: string; pid: number }): RecordedProcess | undefined {
  const started = startTime(pid);
  return started === undefined ? undefined : { name, pid, started, run, place: here };
}

/** What /proc tells of a process that runs; undefined if there is none with this pid (a zombie counts as gone). */
function statOf(pid: number): { group: number; started: string } | undefined {
  try {
    // After the command's closing bracket: of proc(5), state is field 3, group field 5, start time field 22.
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return fields[0] === 'Z' ? undefined : { group: Number(fields[2]), started: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

/** Start time of a running process; undefined if there is none with this pid. */
export function startTime(pid: number): string | undefined {
  if (process.platform === 'linux') return statOf(pid)?.started;
  try {
    const text = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return text && !text.startsWith('Z') ? text.replace(/^\S+\s+/, '') : undefined;
  } catch {
    return undefined;
  }
}

/** Whether there is a process with this pid, whoever's it is. */
export function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  return startTime(pid) !== undefined;
}

/** Of another place's processes nothing is known: they are not seen to run. */
export const isRunning = ({ pid, started, place }: RecordedProcess): boolean =>
  isHere(place) && startTime(pid) === started;

/** Processes of this machine that were started with this option: also those that no record names (it was damaged, or the disk was full). */
export function startedWith({ name, option }: { name: string; option: [string, string] }): RecordedProcess[] {
  const [flag, value] = option;
  return commandLines()
    .filter(({ args }) => args.some((arg, n) => arg === flag && args[n + 1] === value))
    .flatMap(({ pid }) => recordOf({ name, pid }) ?? []);
}

function commandLines(): { pid: number; args: string[] }[] {
  if (process.platform === 'linux') return allPids().map((pid) => ({ pid, args: listIn(`/proc/${pid}/cmdline`) }));
  const lines = execFileSync('ps', ['-axo', 'pid=,args='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => line.trim().split(/\s+/)).map(([pid, ...args]) => ({ pid: Number(pid), args }));
}

const allPids = (): number[] =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number);

/** A file of /proc; empty if its process has ended meanwhile, or is not ours to look into. */
function listIn(file: string): string[] {
  try {
    return readFileSync(file, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Signals the whole group of a process that we lead; false if nothing of it is left. */
export function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-pid, signal);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** True once the condition holds, false after `seconds`; asked every 50 ms. */
export async function waitUntil(condition: () => boolean, seconds: number): Promise<boolean> {
  const deadline = Date.now() + seconds * 1000;
  while (!condition()) {
    if (Date.now() >= deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return true;
}

/**
 * What a recorded process still runs, as `kill` takes it: its whole group while it lives itself, else those of the group that carry its
 * mark. A group without its leader may be anybody's, and without /proc nobody can tell.
 */
function targetsOf(orphan: RecordedProcess): number[] {
  if (isRunning(orphan)) return [-orphan.pid];
  if (process.platform !== 'linux' || !isHere(orphan.place)) return [];
  return allPids().filter(
    (pid) => statOf(pid)?.group === orphan.pid && listIn(`/proc/${pid}/environ`).includes(`${MARK}=${orphan.run}`),
  );
}

function signalTargets(orphan: RecordedProcess, signal: NodeJS.Signals): void {
  for (const target of targetsOf(orphan))
    try {
      process.kill(target, signal);
    } catch {
      // It has ended meanwhile.
    }
}

/**
 * Ends what a killed supervisor left behind: asks (SIGTERM), waits, then kills. Records of another place, or of another boot, are left alone.
 * @returns the names of those that were still running.
 */
export async function endOrphans(recorded: RecordedProcess[], graceSeconds: number): Promise<string[]> {
  const ours = recorded.filter((orphan) => targetsOf(orphan).length > 0);
  for (const orphan of ours) signalTargets(orphan, 'SIGTERM');
  await waitUntil(() => ours.every((orphan) => targetsOf(orphan).length === 0), graceSeconds);
  for (const orphan of ours) signalTargets(orphan, 'SIGKILL');
  return ours.map(({ name }) => name);
}

const runStateSchema = z.object({
  processes: z.array(recordedProcessSchema),
  /** Where this home's Temporal server and its UI listen. */
  temporalAddress: z.string().optional(),
  uiUrl: z.string().optional(),
});
export type RunState = z.infer<typeof runStateSchema>;

/** The recorded state; empty if there is none or if it is damaged: it is written anew at the next change. */
export function readRunState(home: Home): RunState {
  try {
    return runStateSchema.parse(JSON.parse(readFileSync(home.state, 'utf8')));
  } catch {
    return { processes: [] };
  }
}

export function writeRunState(home: Home, state: RunState): void {
  mkdirSync(dirname(home.state), { recursive: true });
  const aside = `${home.state}.${process.pid}`;
  try {
    writeFileSync(aside, JSON.stringify(state, null, 2));
    renameSync(aside, home.state);
  } catch (error) {
    rmSync(aside, { force: true });
    throw error;
  }
}

/** Address of the home's own server, if that runs: the port of one that is gone may be another home's by now. */
export function serverOf(home: Home): string | undefined {
  const { temporalAddress, processes } = readRunState(home);
  return processes.some((one) => one.name === 'temporal' && isRunning(one)) ? temporalAddress : undefined;
}

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
