/** Runs a subcommand of the Python package to its end. Invariant: however it fails, an OutsideFailure says in whose words. */
import { spawn } from 'node:child_process';
import { resolve } from 'node:path';
import { OutsideFailure, reasonOf } from '../domain/failures';

/** The folder that holds the Python package `trainer`. */
export const projectRoot = resolve(__dirname, '..', '..');

/** The exit code of trainer/refusal.py. Python itself ends with 1 for whatever is not caught: no memory, a full disk. */
const REFUSED = 3;

interface Program {
  python: string;
  args: [command: string, ...options: string[]];
  signal?: AbortSignal;
}

interface End {
  code: number | null;
  killedBy: NodeJS.Signals | null;
  /** The last lines of stderr. */
  said: string;
}

/** Throws BadInput with the program's words if it refuses or Python is not there, PythonFailed if it ends in any other way than well. */
export async function runPython(program: Program): Promise<void> {
  const { python, args, signal } = program;
  const { code, killedBy, said } = await ended(program).catch((error: unknown) => {
    signal?.throwIfAborted();
    const cause = `python ${python}: ${reasonOf(error)}`;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new OutsideFailure('BadInput', `${cause}; run make install`, error);
    throw new OutsideFailure('PythonFailed', cause, error);
  });
  if (code === 0) return;
  const how = killedBy ? `was killed by ${killedBy}` : `ended with code ${code}`;
  throw new OutsideFailure(code === REFUSED ? 'BadInput' : 'PythonFailed', `trainer ${args[0]} ${how}: ${said}`);
}

/** Rejects where the program can not be started, or is aborted. */
const ended = ({ python, args, signal }: Program): Promise<End> =>
  new Promise((done, broken) => {
    const child = spawn(python, ['-m', 'trainer', ...args], {
      cwd: projectRoot,
      stdio: ['ignore', 'ignore', 'pipe'],
      signal,
    });
    let tail = '';
    child.once('error', broken);
    child.once('close', (code, killedBy) =>
      done({ code, killedBy, said: tail.trim().split('\n').slice(-3).join(' | ') }),
    );
    // Without file handles for it there is no stream, and `error` says so.
    child.stderr?.on('data', (chunk: Buffer) => (tail = (tail + chunk.toString('utf8')).slice(-2000)));
  });
