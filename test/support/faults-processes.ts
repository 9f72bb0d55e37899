/**
 * The processes of a home. Invariant: every process that was started for it is found, also without a record of it: by its arguments, its
 * environment, or the files that it writes to.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Home } from '../../src/cli/project';

export const services = ['temporal', 'policy-server', 'control-worker', 'rollouts-worker', 'gpu-worker'] as const;
export type ServiceName = (typeof services)[number];
/** A campaign with an external policy server has no such service. */
export const workers = ['control-worker', 'rollouts-worker', 'gpu-worker'] as const;

interface Found {
  pid: number;
  words: string[];
}

/** Returns the file's text; empty if it is missing or not readable. */
function text(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
function link(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}

/** A zombie lives no more. */
export const isAlive = (pid: number): boolean =>
  !['', 'Z'].includes(/\) (\S)/.exec(text(`/proc/${pid}/stat`))?.[1] ?? '');

const all = (): Found[] =>
  readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number)
    .filter((pid) => pid !== process.pid && isAlive(pid))
    .map((pid) => ({ pid, words: text(`/proc/${pid}/cmdline`).split('\0').filter(Boolean) }));

/** Everything that has to do with this home. */
export function processesOf(home: Home): Found[] {
  const here = (words: string) =>
    words.includes(`${home.root}/`) || words.split('\0').some((word) => word === home.root);
  return all().filter(
    ({ pid, words }) =>
      here(words.join('\0')) ||
      text(`/proc/${pid}/environ`).split('\0').includes(`CAMPAIGN_HOME=${home.root}`) ||
      [1, 2].some((descriptor) => link(`/proc/${pid}/fd/${descriptor}`).startsWith(`${home.root}/`)),
  );
}

/** The learners that work in this home. */
export const trainersOf = (home: Home): number[] =>
  all()
    .filter(
      ({ words }) => words.includes('train') && words.some((word) => word.startsWith(join(home.root, 'trainings'))),
    )
    .map(({ pid }) => pid);

const isLeader = (pid: number): boolean => Number(/\) \S \d+ (\d+)/.exec(text(`/proc/${pid}/stat`))?.[1]) === pid;

/** Returns whether a command line is that of a service. */
function runsService(name: string, words: string[]): boolean {
  if (name === 'temporal') return words.includes('start-dev') && words[0] !== 'sh';
  if (name === 'policy-server') return words.includes('trainer') && words.includes('serve');
  return words.includes('--queues') && words.includes(name.replace('-worker', ''));
}

/** The pid under which the supervisor runs a service now. */
export const serviceOf = (home: Home, name: string): number | undefined =>
  processesOf(home).find(({ pid, words }) => runsService(name, words) && isLeader(pid))?.pid;

/** The environment that a process was started with. */
export function environmentOf(pid: number): Record<string, string> {
  const pairs = text(`/proc/${pid}/environ`).split('\0').filter(Boolean);
  return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
}

/** @returns whether there was such a process. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch {
    return false;
  }
}
