/**
 * Processes of a home, in the system and on disk: who is recorded, who holds the lock, what a killed supervisor left behind. A process is
 * signalled only if it is provably the recorded one (place, pid and start time) or carries the mark of the run that started it. State file and
 * lock are replaced as a whole, so that both can be read after a kill -9 at any moment. Of processes on another machine or in another container
 * nothing is known.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { isCode } from '../../artifacts/durable-file';
import { here, isHere, placeSchema } from '../../artifacts/place';
import { UserError } from '../errors';
import type { Home } from '../project';

const RUN_VARIABLE = 'CAMPAIGN_RUN';
const thisRun = randomUUID();
/** Environment of everything that this process starts, and of what that starts in turn. */
export const runMark = { [RUN_VARIABLE]: thisRun };

const recordSchema = z.object({
  name: z.string(),
  /** Also the id of its process group: every service leads one. */
  pid: z.number().int(),
  /** When it began, as the system writes it. */
  started: z.string(),
  /** The mark of what it starts. */
  run: z.string(),
  place: placeSchema,
});
export type ProcessRecord = z.infer<typeof recordSchema>;

const runStateSchema = z.object({
  processes: z.array(recordSchema),
  /** Where this home's Temporal server and its UI listen. */
  temporalAddress: z.string().optional(),
  uiUrl: z.string().optional(),
});
export type RunState = z.infer<typeof runStateSchema>;

const isLinux = process.platform === 'linux';

/** A file of /proc; empty if its process has ended, or may not be looked into. */
function procFile(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

/** Of a process that runs, by /proc. A zombie counts as gone. */
function statOf(pid: number): { group: number; started: string } | undefined {
  // proc(5): after the command's closing bracket come field 3 (state), 4, 5 (group), ... 22 (start time).
  const fields = procFile(pid, 'stat')
    .replace(/^.*\) /s, '')
    .split(' ');
  return fields[19] === undefined || fields[0] === 'Z' ? undefined : { group: Number(fields[2]), started: fields[19] };
}

/** Undefined if no process with this pid runs. */
export function startTime(pid: number): string | undefined {
  if (isLinux) return statOf(pid)?.started;
  try {
    const text = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return text && !text.startsWith('Z') ? text.replace(/^\S+\s+/, '') : undefined;
  } catch {
    return undefined;
  }
}

/** Signals a process, or a group by its negative id. @returns 'denied' for somebody else's process. */
function send(target: number, signal: NodeJS.Signals | 0): 'sent' | 'denied' | 'gone' {
  try {
    process.kill(target, signal);
    return 'sent';
  } catch (error) {
    return isCode(error, 'EPERM') ? 'denied' : 'gone';
  }
}

/** Whether a process with this pid runs, whoever's it is. */
export function lives(pid: number): boolean {
  const answer = send(pid, 0);
  return answer === 'denied' || (answer === 'sent' && startTime(pid) !== undefined);
}

/** Signals the whole group of a process. @returns false if nothing of it is left. */
export const signalGroup = (pid: number, signal: NodeJS.Signals | 0): boolean => send(-pid, signal) !== 'gone';

/** Undefined if the process has ended. */
export function recordOf({ name, pid }: { name: string; pid: number }): ProcessRecord | undefined {
  const started = startTime(pid);
  return started === undefined ? undefined : { name, pid, started, run: thisRun, place: here };
}

export const isRunning = ({ pid, started, place }: ProcessRecord): boolean =>
  isHere(place) && startTime(pid) === started;

const allPids = (): number[] => readdirSync('/proc').map(Number).filter(Number.isInteger);

function commandLines(): { pid: number; args: string[] }[] {
  if (isLinux) return allPids().map((pid) => ({ pid, args: procFile(pid, 'cmdline').split('\0') }));
  const lines = execFileSync('ps', ['-axo', 'pid=,args='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => line.trim().split(/\s+/)).map(([pid, ...args]) => ({ pid: Number(pid), args }));
}

/** Processes of this machine that were started with an option of this value: also those that no record names. */
export const startedWith = (name: string, [option, value]: [string, string]): ProcessRecord[] =>
  commandLines()
    .filter(({ args }) => args.some((arg, n) => arg === option && args[n + 1] === value))
    .flatMap(({ pid }) => recordOf({ name, pid }) ?? []);

/** True once the condition holds, false after `seconds`. */
export async function waitUntil(condition: () => boolean | Promise<boolean>, seconds: number): Promise<boolean> {
  const deadline = Date.now() + seconds * 1000;
  while (!(await condition())) {
    if (Date.now() >= deadline) return false;
    await sleep(50);
  }
  return true;
}

/**
 * What a recorded process still runs, as `kill` takes it: its whole group while it lives itself, else those of the group that carry its mark.
 * A group without its leader may be anybody's, and without /proc nobody can tell.
 */
function targetsOf(orphan: ProcessRecord): number[] {
  if (isRunning(orphan)) return [-orphan.pid];
  if (!isLinux || !isHere(orphan.place)) return [];
  const mark = `${RUN_VARIABLE}=${orphan.run}`;
  return allPids().filter(
    (pid) => statOf(pid)?.group === orphan.pid && procFile(pid, 'environ').split('\0').includes(mark),
  );
}

/** Asks (SIGTERM) what a killed supervisor left behind to end, waits, then kills it. @returns the names of those that still ran. */
export async function endOrphans(recorded: ProcessRecord[], graceSeconds: number): Promise<string[]> {
  const orphans = recorded.filter((one) => targetsOf(one).length > 0);
  const targets = () => orphans.flatMap(targetsOf);
  for (const target of targets()) send(target, 'SIGTERM');
  await waitUntil(() => targets().length === 0, graceSeconds);
  for (const target of targets()) send(target, 'SIGKILL');
  return orphans.map(({ name }) => name);
}

/** Undefined if there is no such file, or a damaged one. */
function readJson<T>(file: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}

export const readRunState = (home: Home): RunState => readJson(home.state, runStateSchema) ?? { processes: [] };

export function writeRunState(home: Home, state: RunState): void {
  const part = `${home.state}.${process.pid}`;
  try {
    writeFileSync(part, JSON.stringify(state, null, 2));
    renameSync(part, home.state);
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
}

/** Address of the home's own server, if that runs: the port of one that is gone may be another home's by now. */
export function serverOf(home: Home): string | undefined {
  const { temporalAddress, processes } = readRunState(home);
  return processes.some((one) => one.name === 'temporal' && isRunning(one)) ? temporalAddress : undefined;
}

/** The supervisor that holds the home now. */
export function liveHolder(home: Home): ProcessRecord | undefined {
  const holder = readJson(home.lock, recordSchema);
  return holder && isRunning(holder) ? holder : undefined;
}

/**
 * Takes the lock of a home.
 * @returns a function that gives it back.
 * @throws UserError if another supervisor holds it that is alive, or that may be.
 */
export function acquireLock(home: Home): () => void {
  const me = recordOf({ name: 'supervisor', pid: process.pid });
  const own = `${home.lock}.${randomUUID()}`;
  try {
    writeFileSync(own, JSON.stringify(me));
    while (!linked(own, home.lock)) {
      const holder = readJson(home.lock, recordSchema);
      if (mayLive(holder)) throw inUse(home, holder);
      takeAway(home.lock);
    }
  } catch (error) {
    if (!isCode(error, 'ENOSPC', 'EDQUOT')) throw error;
    throw new UserError(`the disk of ${home.root} is full: free at least 1 GiB, or choose another folder with --home`);
  } finally {
    rmSync(own, { force: true });
  }
  return () => {
    if (isDeepStrictEqual(readJson(home.lock, recordSchema), me)) rmSync(home.lock, { force: true });
  };
}

/** A holder of an earlier boot of this host ended with it. A damaged lock is nobody's: it was whole when it was made. */
function mayLive(holder: ProcessRecord | undefined): holder is ProcessRecord {
  if (!holder || isHere(holder.place)) return holder !== undefined && isRunning(holder);
  return holder.place.host !== here.host || holder.place.boot === here.boot;
}

/** Moves a dead holder's lock away; puts it back if somebody else took it over between our look and our move. */
function takeAway(lock: string): void {
  const stale = `${lock}.stale.${randomUUID()}`;
  try {
    renameSync(lock, stale);
  } catch {
    return;
  }
  if (mayLive(readJson(stale, recordSchema))) linked(stale, lock);
  rmSync(stale, { force: true });
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (isCode(error, 'EEXIST')) return false;
    throw error;
  }
}

function inUse({ root, lock }: Home, { pid, place }: ProcessRecord): UserError {
  const holder = '`campaign run` or `campaign serve`';
  return new UserError(
    isHere(place)
      ? `${root} is in use by another ${holder} (pid ${pid}); end it, or choose another folder with --home`
      : `${root} is in use by a ${holder} on another machine or in another container: ${lock} names host ${place.host} (pid ${pid}); end it there, or choose another folder with --home. If it runs no more, remove ${lock}`,
  );
}
