/** Finds the processes of a program by a mark in their environment or by their session (Linux). One that has changed both is not found. */
import { readdirSync, readFileSync } from 'node:fs';

/** The variable that holds the mark. */
export const MARK = 'CAMPAIGN_PROGRAM';

/** A process that is started while the others are killed is found in the next round. */
const ROUNDS = 50;

/** Kills the processes that have the mark or belong to the session. */
export function killMarked(program: { mark: string; session: number | undefined }): void {
  for (let round = 0; round < ROUNDS; round++) {
    const pids = listProcesses().filter((pid) => belongsTo(program, pid));
    if (pids.length === 0) return;
    for (const pid of pids) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It is gone already.
      }
    }
  }
}

function listProcesses(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}

function belongsTo({ mark, session }: { mark: string; session: number | undefined }, pid: number): boolean {
  // The state and the session are the first and the fourth field behind the name, which may hold anything.
  const [, state, own] = /\) (\S) \S+ \S+ (\d+)[^)]*$/.exec(readProc(pid, 'stat')) ?? [];
  if (state === undefined || state === 'Z') return false;
  return Number(own) === session || readProc(pid, 'environ').split('\0').includes(`${MARK}=${mark}`);
}
