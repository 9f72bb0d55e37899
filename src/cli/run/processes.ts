/**
 * Processes that outlive whoever started them. Invariant: a process is signalled only if its pid and its start time are those that
 * were recorded, so that a number that the system gave to somebody else is never hit.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

export interface RecordedProcess {
  name: string;
  /** Also the id of its process group: every child leads one. */
  pid: number;
  /** When it began, in the system's own words. */
  started: string;
}

/** Start time of a running process; undefined if there is none with this pid (a zombie counts as gone). */
export function startTime(pid: number): string | undefined {
  if (process.platform === 'linux') {
    try {
      // After the command's closing bracket: state is field 3 of proc(5), start time field 22.
      const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      return fields[0] === 'Z' ? undefined : fields[19];
    } catch {
      return undefined;
    }
  }
  try {
    const text = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return text && !text.startsWith('Z') ? text.replace(/^\S+\s+/, '') : undefined;
  } catch {
    return undefined;
  }
}

export const isRunning = (recorded: RecordedProcess): boolean => startTime(recorded.pid) === recorded.started;

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
 * Ends what a killed supervisor left behind: asks (SIGTERM), waits, then kills. Members of a group whose leader is gone are ended as
 * well: the system gives a group's number to nobody else while one of them lives.
 * @returns the names of those that were still running.
 */
export async function endOrphans(recorded: RecordedProcess[], graceSeconds: number): Promise<string[]> {
  const ours = recorded.filter(
    (orphan) => isRunning(orphan) || (startTime(orphan.pid) === undefined && signalGroup(orphan.pid, 0)),
  );
  for (const orphan of ours) signalGroup(orphan.pid, 'SIGTERM');
  await waitUntil(() => ours.every((orphan) => !signalGroup(orphan.pid, 0)), graceSeconds);
  for (const orphan of ours) if (signalGroup(orphan.pid, 0)) signalGroup(orphan.pid, 'SIGKILL');
  return ours.map(({ name }) => name);
}
