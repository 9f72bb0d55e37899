/**
 * The kernel's own count of what a program has started (Linux's control groups): in a group of its own it can't have more processes and threads than it
 * may, and leaves it in no ordinary way. There is one where this process may make it: as root outside of a container, or where a desktop or a service
 * has been given a part of the tree.
 */
import { accessSync, constants, mkdtempSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { lives } from '../../artifacts/durable-file';

const NAME = 'campaign-agent-';
const REMOVE_MS = 50;
const REMOVALS = 40;

/** A folder, in which the kernel shows the group; undefined where there can be none. */
export function makeGroup(most: number): string | undefined {
  try {
    const above = folderAbove();
    removeAbandoned(above);
    const group = mkdtempSync(join(above, `${NAME}${process.pid}-`));
    try {
      // A file that the kernel has made, or none.
      writeFileSync(join(group, 'pids.max'), String(most), { flag: 'r+' });
      return group;
    } catch {
      rmdirSync(group);
    }
  } catch {
    // Most containers show the tree as it is, and no more.
  }
  return undefined;
}

/** In version 1 groups lie in ours; in version 2 a group that holds processes holds no groups, so that they lie beside it. */
function folderAbove(): string {
  const own = readFileSync('/proc/self/cgroup', 'latin1');
  const first = /^\d+:(?:\w+,)*pids(?:,\w+)*:(.*)$/m.exec(own)?.[1];
  if (first !== undefined) return join('/sys/fs/cgroup/pids', first);
  return join('/sys/fs/cgroup', dirname(/^0::(.*)$/m.exec(own)![1]!));
}

/** Of workers that are gone. */
function removeAbandoned(above: string): void {
  for (const name of readdirSync(above)) {
    const pid = new RegExp(`^${NAME}(\\d+)-`).exec(name)?.[1];
    if (pid !== undefined && !lives(Number(pid))) tryRemove(join(above, name));
  }
}

/** The command, which begins in the group. One that is not there stays as it is: whoever starts it says so. */
export const begunIn = (group: string | undefined, command: readonly string[]): readonly string[] =>
  group === undefined || !isThere(command[0] ?? '')
    ? command
    : ['/bin/sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', group, ...command];

export function isThere(program: string): boolean {
  const folders = program.includes('/') ? [''] : (process.env['PATH'] ?? '').split(delimiter);
  return folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

const read = (group: string, file: string): string => {
  try {
    return readFileSync(join(group, file), 'latin1');
  } catch {
    return ''; // it is gone
  }
};

export const processesIn = (group: string): number[] =>
  read(group, 'cgroup.procs').split('\n').filter(Boolean).map(Number);

/** Whether the kernel has refused it a process. */
export const isFull = (group: string): boolean => !/^max 0$/m.test(read(group, 'pids.events') || 'max 0');

/** Once what was in it is gone. */
export async function removeGroup(group: string): Promise<void> {
  for (let n = 0; n < REMOVALS && !tryRemove(group); n++) await sleep(REMOVE_MS, undefined, { ref: false });
}

function tryRemove(group: string): boolean {
  try {
    rmdirSync(group);
    return true;
  } catch {
    return false;
  }
}
