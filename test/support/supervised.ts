/** Supervisors of homes of their own, which a test file ends, and services that are one line of JavaScript. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { homeAt, type Home } from '../../src/cli/project';
import { servicesOf, waitUntil } from '../../src/cli/run/processes';
import type { RestartPolicy, ServiceSpec } from '../../src/cli/run/service';
import { fullDiskCheck, Supervisor } from '../../src/cli/run/supervisor';
import { atEnd } from './opened';

export { atEnd };

export function newHome(): Home {
  const home = homeAt(mkdtempSync(join(tmpdir(), 'supervised-')));
  atEnd(() => rmSync(home.root, { recursive: true, force: true }));
  return home;
}

const rule = { firstMs: 10, longestMs: 20, forgottenMs: 20_000 };
export const quick: RestartPolicy = {
  crash: { ...rule, limit: 3 },
  kill: { ...rule, limit: 6 },
  fault: { ...rule, limit: 3 },
};

interface Supervised {
  home: Home;
  supervisor: Supervisor;
  diskIsFull: () => boolean;
  /** Causes of deaths after which something was started again. */
  restarts: string[];
  notes: string[];
  pid: (name?: string) => number | undefined;
  /** Waits until another process than `pid` runs. */
  isReplaced: (pid: number | undefined) => Promise<boolean>;
}

/** The process of a service that runs, not of what it has started. */
export const serviceIn = (home: Home, name?: string): number | undefined =>
  servicesOf(home).find((one) => one.pid === one.group && (name === undefined || one.name === name))?.pid;

export function supervise(home = newHome(), policy = quick): Supervised {
  const restarts: string[] = [];
  const notes: string[] = [];
  const diskIsFull = fullDiskCheck(home.root, (text) => notes.push(text));
  const supervisor = new Supervisor(home, { diskIsFull, onRestart: ({ cause }) => restarts.push(cause) }, policy);
  atEnd(() => supervisor.stop());
  const pid = (name?: string) => serviceIn(home, name);
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
