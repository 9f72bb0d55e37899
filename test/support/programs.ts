/** Programs of targets: how they are opened, and which of them this process has started, in a namespace or not. */
import { readdirSync, readFileSync } from 'node:fs';
import { isAlive } from './faults-processes';

const read = (pid: number, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
};

const parentOf = (pid: number): number => Number(/\) \S (\d+)/.exec(read(pid, 'stat'))?.[1] ?? 0);
const isBelow = (pid: number): boolean => pid > 1 && (pid === process.pid || isBelow(parentOf(pid)));

/** Options of an agent that a test is not about. */
export const agentLimits = { version: '1', readOnlyTools: [], maxSteps: 20, silenceSeconds: 60 };

/** Returns all living processes with this word on their command line. */
export const processesWith = (word: string): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isInteger(pid) && read(pid, 'cmdline').split('\0').includes(word) && isAlive(pid));

/** The programs themselves: what starts them in a namespace has their words, too. */
export function programsWith(word: string): number[] {
  const own = processesWith(word).filter(isBelow);
  const parents = new Set(own.map(parentOf));
  return own.filter((pid) => !parents.has(pid));
}
