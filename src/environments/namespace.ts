/**
 * Starts programs in a PID and mount namespace of their own where the kernel allows it (Linux): such a program sees its own processes alone, and the
 * kernel kills all of them when the first one ends.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, resolve } from 'node:path';

const UNSHARE = ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'];
/** The ways to make a namespace. The first needs root, which keeps its rights to files but can neither unmount /proc nor trace other processes. */
const WAYS = [
  [...UNSHARE, 'setpriv', '--bounding-set=-sys_admin,-sys_ptrace'],
  [...UNSHARE, '--user', '--map-current-user'],
];
/** The first process of a namespace gets no signal of its own and inherits orphans: a shell is this process, not the program. */
const INIT = ['/bin/sh', '-c', '"$@"; exit $?', 'campaign-program'];
const PROBE = [...INIT.slice(0, 2), '[ $$ = 1 ]'];

let found: readonly string[] | undefined;

/** Returns the words before a command that start it in a namespace; none where the kernel allows none. Looks once. */
function namespaceCommand(): readonly string[] {
  const env = { PATH: process.env['PATH'] };
  found ??= WAYS.find(([program = '', ...args]) => spawnSync(program, [...args, ...PROBE], { env }).status === 0) ?? [];
  return found;
}

export const hasNamespaces = (): boolean => namespaceCommand().length > 0;

/** Returns the command that runs this one in a namespace; returns it unchanged without a namespace, or if its program is missing. */
export function inNamespace(command: readonly string[], cwd = '.'): readonly string[] {
  const way = namespaceCommand();
  return way.length === 0 || !isExecutable(command[0] ?? '', cwd) ? command : [...way, ...INIT, ...command];
}

/** Returns whether the program is a file that may be run, in `cwd` or on the PATH. */
function isExecutable(program: string, cwd = '.'): boolean {
  const folders = program.includes('/') ? [cwd] : (process.env['PATH'] ?? '').split(delimiter);
  return folders.some((folder) => {
    try {
      accessSync(resolve(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
