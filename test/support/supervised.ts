/** Supervisors of homes of their own, which a test file ends, and services that are one line of JavaScript. */
import { homeAt, type Home } from '../../src/cli/project';
import { waitUntil } from '../../src/cli/services/processes';
import type { RestartPolicy, ServiceSpec } from '../../src/cli/services/service';
import { fullDiskCheck, Supervisor } from '../../src/cli/services/supervisor';
import { atEnd } from './opened';
import { newFolder } from './temporary-folder';

export { atEnd };

export const newHome = (): Home => homeAt(newFolder());

export const quick: RestartPolicy = { limit: 4, firstMs: 10, longestMs: 20, progressMs: 20_000, faultyMs: 20 };

interface Supervised {
  home: Home;
  supervisor: Supervisor;
  diskIsFull: () => boolean;
  /** Notes of restarts, and all others. */
  restarts: string[];
  notes: string[];
  /** The process id of the first service. */
  pid: () => number | undefined;
  /** Waits until another process than `pid` runs. */
  isReplaced: (pid: number | undefined) => Promise<boolean>;
}

export function supervise(home = newHome(), policy = quick): Supervised {
  const restarts: string[] = [];
  const notes: string[] = [];
  const diskIsFull = fullDiskCheck(home.root, (text) => notes.push(text));
  const supervisor = new Supervisor(home, { diskIsFull, note: (text) => restarts.push(text) }, policy);
  atEnd(() => supervisor.stop());
  const pid = () => supervisor.firstPid;
  const isReplaced = (old: number | undefined) => waitUntil(() => ![undefined, old].includes(pid()), 20);
  return { home, supervisor, diskIsFull, restarts, notes, pid, isReplaced };
}

/** Ready when it prints so. */
export const service = (name: string, script: string): ServiceSpec => ({
  name,
  command: process.execPath,
  args: () => ['-e', script],
  env: process.env,
  isReady: (output) => output.includes('ready'),
  readySeconds: 20,
  graceSeconds: 5,
});
export const steady = "console.log('ready'); process.stdin.resume(); process.stdin.on('end', () => process.exit());";
