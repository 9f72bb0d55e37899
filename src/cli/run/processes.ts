/**
 * The processes of a home. Its services, and whatever they start, carry a mark of the home in their environment, so that the next supervisor finds
 * what a killed one left without a record of it. The lock's holder is known by place, pid and start time. Nothing is known of processes on
 * another machine or in another container.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { isCode } from '../../artifacts/durable-file';
import { here, isHere, placeSchema } from '../../artifacts/place';
import { UserError } from '../errors';
import type { Home } from '../project';

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

/** When a process began, as the system writes it; undefined if no process with this pid runs. */
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

/** True once the condition holds, false after `seconds`. */
export async function waitUntil(condition: () => boolean | Promise<boolean>, seconds: number): Promise<boolean> {
  const deadline = Date.now() + seconds * 1000;
  while (!(await condition())) {
    if (Date.now() >= deadline) return false;
    await sleep(50);
  }
  return true;
}

export const TEMPORAL = 'temporal';
const MARK = 'CAMPAIGN_SERVICE';

/** By inode, since a folder has many paths. A container has pids of its own. */
function markOf({ root }: Home): string {
  const { dev, ino } = statSync(root, { throwIfNoEntry: false }) ?? {};
  return `${here.pidNamespace}:${dev}:${ino}:`;
}

/** Environment of a service, which what it starts inherits. */
export const serviceMark = (home: Home, name: string): NodeJS.ProcessEnv => ({ [MARK]: markOf(home) + name });

export interface ServiceProcess {
  /** Of the service that it is, or that has started it. */
  name: string;
  pid: number;
  /** Every service leads a process group. */
  group: number;
}

/** What runs of the services of a home, and of what they have started. */
export function servicesOf(home: Home): ServiceProcess[] {
  const mark = `${MARK}=${markOf(home)}`;
  const nameIn = (words: string[]) => words.find((word) => word.startsWith(mark))?.slice(mark.length);
  if (isLinux)
    return readdirSync('/proc').flatMap((entry) => {
      const pid = Number(entry);
      const name = Number.isInteger(pid) ? nameIn(procFile(pid, 'environ').split('\0')) : undefined;
      const stat = name === undefined ? undefined : statOf(pid);
      return name !== undefined && stat ? [{ name, pid, group: stat.group }] : [];
    });
  // -E: behind its arguments, each process's environment.
  const options = { encoding: 'utf8', maxBuffer: 2 ** 28 } as const;
  const lines = execFileSync('ps', ['-axwwE', '-o', 'pid=,pgid=,command='], options).trim().split('\n');
  return lines.flatMap((line) => {
    const [pid, group, ...words] = line.trim().split(/\s+/);
    const name = nameIn(words);
    return name === undefined ? [] : [{ name, pid: Number(pid), group: Number(group) }];
  });
}

/**
 * Asks (SIGTERM) what a killed supervisor left running to end, waits, then kills it. To be called by whoever holds the home.
 * @returns the names of the services that still ran.
 */
export async function endLeftovers(home: Home, graceSeconds: number): Promise<string[]> {
  const signalAll = (signal: NodeJS.Signals): string[] => {
    const left = servicesOf(home);
    const leaders = new Set(left.filter(({ pid, group }) => pid === group).map(({ pid }) => pid));
    // A group whose leader has ended may have got members of somebody else's.
    const targets = left.map(({ pid, group }) => (leaders.has(group) ? -group : pid));
    for (const target of new Set(targets)) send(target, signal);
    return left.map(({ name }) => name);
  };
  const names = new Set(signalAll('SIGTERM'));
  if (!(await waitUntil(() => servicesOf(home).length === 0, graceSeconds))) signalAll('SIGKILL');
  return [...names];
}

/** Undefined if there is no such file, or a damaged one. */
function readJson<T>(file: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return undefined;
  }
}

/** @throws UserError where there is no room. */
function withRoom<T>({ root }: Home, write: () => T): T {
  try {
    return write();
  } catch (error) {
    if (!isCode(error, 'ENOSPC', 'EDQUOT')) throw error;
    throw new UserError(`the disk of ${root} is full: free at least 1 GiB, or choose another folder with --home`);
  }
}

/** Tells other commands where this home's Temporal server listens; undefined while none runs. */
export function announceServer(home: Home, temporalAddress: string | undefined, ui?: string): void {
  if (temporalAddress === undefined) return rmSync(home.state, { force: true });
  const part = `${home.state}.part`;
  withRoom(home, () => writeFileSync(part, JSON.stringify({ temporalAddress, ui })));
  renameSync(part, home.state);
}

/** Address of the home's own server, if that runs: the port of one that is gone may be another home's by now. */
export function serverOf(home: Home): string | undefined {
  const { temporalAddress } = readJson(home.state, z.object({ temporalAddress: z.string().optional() })) ?? {};
  return temporalAddress && servicesOf(home).some(({ name }) => name === TEMPORAL) ? temporalAddress : undefined;
}

/** Where its UI is, if it tells. */
export const uiOf = (home: Home): string | undefined =>
  readJson(home.state, z.object({ ui: z.string().optional() }))?.ui;

const holderSchema = z.object({ pid: z.number().int(), started: z.string(), place: placeSchema });
type Holder = z.infer<typeof holderSchema>;

const isRunning = ({ pid, started, place }: Holder): boolean => isHere(place) && startTime(pid) === started;

/** The supervisor that holds the home now. */
export function liveHolder(home: Home): Holder | undefined {
  const holder = readJson(home.lock, holderSchema);
  return holder && isRunning(holder) ? holder : undefined;
}

/**
 * Takes the lock of a home. It appears as a whole, under a hard link, so that it can be read after a kill at any moment.
 * @returns a function that gives it back.
 * @throws UserError if another supervisor holds it that is alive, or that may be.
 */
export function acquireLock(home: Home): () => void {
  const me = { pid: process.pid, started: startTime(process.pid), place: here };
  const own = `${home.lock}.${randomUUID()}`;
  try {
    withRoom(home, () => writeFileSync(own, JSON.stringify(me)));
    while (!linked(own, home.lock)) {
      const holder = readJson(home.lock, holderSchema);
      if (mayLive(holder)) throw inUse(home, holder);
      takeAway(home.lock);
    }
  } finally {
    rmSync(own, { force: true });
  }
  return () => {
    if (isDeepStrictEqual(readJson(home.lock, holderSchema), me)) rmSync(home.lock, { force: true });
  };
}

/** A holder of an earlier boot of this host ended with it. A damaged lock is nobody's: it was whole when it was made. */
function mayLive(holder: Holder | undefined): holder is Holder {
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
  if (mayLive(readJson(stale, holderSchema))) linked(stale, lock);
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

function inUse({ root, lock }: Home, { pid, place }: Holder): UserError {
  const holder = '`campaign run` or `campaign serve`';
  return new UserError(
    isHere(place)
      ? `${root} is in use by another ${holder} (pid ${pid}); end it, or choose another folder with --home`
      : `${root} is in use by a ${holder} on another machine or in another container: ${lock} names host ${place.host} (pid ${pid}); end it there, or choose another folder with --home. If it runs no more, remove ${lock}`,
  );
}
