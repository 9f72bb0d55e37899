/** Runs a subcommand of the Python package to its end. Invariant: however it fails, an OutsideFailure says in whose words. */
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { OutsideFailure, reasonOf } from '../domain/failures';

/** The folder that holds the Python package `trainer`. */
export const projectRoot = resolve(__dirname, '..', '..');

/** Throws BadInput with the last lines of stderr if the program refuses, TrainerDied if it was killed. */
export async function runPython({
  python,
  args,
  signal,
}: {
  python: string;
  args: [command: string, ...options: string[]];
  signal?: AbortSignal;
}): Promise<void> {
  const child = spawn(python, ['-m', 'trainer', ...args], {
    cwd: projectRoot,
    stdio: ['ignore', 'ignore', 'pipe'],
    signal,
  });
  let tail = '';
  child.stderr.on('data', (chunk: Buffer) => (tail = (tail + chunk.toString('utf8')).slice(-2000)));
  const [code, killedBy] = await new Promise<[number | null, NodeJS.Signals | null]>((done, broken) => {
    child.once('error', broken);
    child.once('close', (...end) => done(end));
  }).catch((error: unknown) => {
    signal?.throwIfAborted();
    throw new OutsideFailure('BadInput', `python ${python}: ${reasonOf(error)}; run make install`, error);
  });
  const said = tail.trim().split('\n').slice(-3).join(' | ');
  if (killedBy) throw new OutsideFailure('TrainerDied', `trainer ${args[0]} was killed by ${killedBy}: ${said}`);
  if (code !== 0) throw new OutsideFailure('BadInput', `trainer ${args[0]} ended with code ${code}: ${said}`);
}
