/**
 * Programs that a study runs. Invariants: each is in a group of its own, so that Ctrl-C reaches it once, through us; it is waited for, and
 * what it says is in its log; an interruption ends it in order and nothing is begun after it.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { say } from './say';

/** Ctrl-C, or being asked to end. */
export class Interrupted extends Error {}

const TELL_MS = 60_000;
/** Of a log, for progress and reasons. */
const LAST_CHARS = 2_000;

interface Program {
  /** What it is, for people. */
  title: string;
  command: string;
  args: string[];
  cwd: string;
  log: string;
  signal: AbortSignal;
  /** The last thing that it said, shortened for a line of progress. */
  progress?: (log: string) => string;
}

const live = new Set<ChildProcess>();

/** Asks what runs once more: a campaign ends at once then, and goes on from what is durable. */
export const endAtOnce = (): void => live.forEach((child) => child.kill('SIGINT'));

/** @returns the exit code. Throws Interrupted. */
export async function runProgram(o: Program): Promise<number> {
  if (o.signal.aborted) throw new Interrupted();
  mkdirSync(dirname(o.log), { recursive: true });
  const log = openSync(o.log, 'a');
  const child = spawn(o.command, o.args, { cwd: o.cwd, detached: true, stdio: ['ignore', log, log] });
  closeSync(log);
  live.add(child);
  const stop = () => child.kill('SIGINT');
  o.signal.addEventListener('abort', stop);
  const telling = setInterval(() => say(`${o.title}: ${(o.progress ?? lastLine)(lastOf(o.log))}`), TELL_MS);
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (exit) => resolve(exit ?? 1));
    });
    if (o.signal.aborted) throw new Interrupted();
    return code;
  } finally {
    live.delete(child);
    clearInterval(telling);
    o.signal.removeEventListener('abort', stop);
  }
}

const lastOf = (file: string): string => readFileSync(file, 'utf8').slice(-LAST_CHARS);

export const lastLine = (log: string): string => log.trimEnd().split('\n').at(-1)?.slice(0, 160) ?? '';

/** Why it ended, as far as its log says. */
export const reasonIn = (file: string): string => {
  const lines = lastOf(file).trimEnd().split('\n');
  const said = lines.filter((line) => !line.startsWith('{'));
  return (said.at(-1) ?? lines.at(-1) ?? 'it said nothing').slice(0, 300);
};
