/** Runs a subcommand of the Python package to its end. */
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { fail } from './context';

/** The folder that holds the Python package `trainer`. */
export const projectRoot = resolve(__dirname, '..', '..');

/** Throws BadJob with the last lines of stderr if the program fails. */
export async function runPython({
  python,
  args,
  signal,
}: {
  python: string;
  args: string[];
  signal: AbortSignal;
}): Promise<void> {
  const child = spawn(python, ['-m', 'trainer', ...args], {
    cwd: projectRoot,
    stdio: ['ignore', 'ignore', 'pipe'],
    signal,
  });
  let tail = '';
  child.stderr.on('data', (chunk: Buffer) => (tail = (tail + chunk.toString('utf8')).slice(-2000)));
  const code = await new Promise<number | null>((done, broken) => {
    child.once('error', broken);
    child.once('close', done);
  });
  if (code !== 0)
    throw fail(
      'BadJob',
      `trainer ${args[0]} ended with code ${code}: ${tail.trim().split('\n').slice(-3).join(' | ')}`,
    );
}
