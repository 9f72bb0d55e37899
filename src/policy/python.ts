/** Runs a subcommand of the Python package to its end. Invariant: however it fails, an OutsideFailure says in whose words; one that stands still fails, too. */
import { spawn, type ChildProcess } from 'node:child_process';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { watchProcess } from './process-time';

/** The folder that holds the Python package `trainer`. */
export const projectRoot = resolve(__dirname, '..', '..');

/** The exit code of trainer/refusal.py. Python itself ends with 1 for whatever is not caught: no memory, a full disk. */
const REFUSED = 3;
const NO_ROOM = /No space left on device|Disk quota exceeded/;
const LOOK_SECONDS = 2;
/** Whatever a program reads or computes, it uses some processor time within this. */
const IDLE_SECONDS = 120;
const progressLine = jsonText.pipe(z.object({ done: z.number(), total: z.number() }));

export interface Program {
  python: string;
  args: [command: string, ...options: string[]];
  signal?: AbortSignal;
  /** Beside this process's own. */
  env?: NodeJS.ProcessEnv;
  /** Of a program that tells `{"done": 1, "total": 5}` on stdout; said again whenever the program can be seen to work. */
  onProgress?: (done: number, total: number) => void;
  /** Whenever it can be seen to work. */
  onWork?: () => void;
  /** How long it may stand still. */
  idleSeconds?: number;
}

interface End {
  code: number | null;
  killedBy: NodeJS.Signals | null;
  /** The last lines of stderr. */
  said: string;
}

/**
 * Throws BadInput with the program's words if it refuses or Python is not there, DiskFull if it has no room, PythonFailed if it ends in any
 * other way than well, or stands still.
 */
export async function runPython(program: Program): Promise<void> {
  const { python, args, signal } = program;
  const { code, killedBy, said } = await ended(program).catch((error: unknown) => {
    signal?.throwIfAborted();
    if (error instanceof OutsideFailure) throw error;
    const cause = `python ${python}: ${reasonOf(error)}`;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT')
      throw new OutsideFailure('BadInput', `${cause}; run make install`, error);
    throw new OutsideFailure('PythonFailed', cause, error);
  });
  if (code === 0) return;
  const how = killedBy ? `was killed by ${killedBy}` : `ended with code ${code}`;
  // A refusal is for whoever has to change the input: its words are enough.
  if (code === REFUSED) throw new OutsideFailure('BadInput', `trainer ${said}`);
  const type = NO_ROOM.test(said) ? 'DiskFull' : 'PythonFailed';
  throw new OutsideFailure(type, `trainer ${args[0]} ${how}: ${said}`);
}

/** Rejects where the program can not be started, is aborted or stands still. */
const ended = (program: Program): Promise<End> =>
  new Promise((done, broken) => {
    const { python, args, signal, env, onProgress, idleSeconds = IDLE_SECONDS } = program;
    const child = spawn(python, ['-m', 'trainer', ...args], {
      cwd: projectRoot,
      stdio: ['ignore', onProgress ? 'pipe' : 'ignore', 'pipe'],
      signal,
      ...(env && { env: { ...process.env, ...env } }),
    });
    let tail = '';
    const work = onWork(child, program);
    const unwatch = watchProcess({
      pid: child.pid,
      everySeconds: Math.min(LOOK_SECONDS, idleSeconds / 3),
      onLook: (idle) => {
        if (idle === 0) work();
        if (idle < idleSeconds) return;
        unwatch();
        child.kill('SIGKILL');
        // What it has started may hold the pipes: they are not waited for.
        for (const pipe of [child.stdout, child.stderr]) pipe?.destroy();
        const still = `used no processor time for ${Math.round(idle)} s and was killed`;
        broken(new OutsideFailure('PythonFailed', `trainer ${args[0]} ${still}`));
      },
    });
    child.once('error', (error) => {
      unwatch();
      broken(error);
    });
    child.once('close', (code, killedBy) => {
      unwatch();
      done({ code, killedBy, said: tail.trim().split('\n').slice(-3).join(' | ') });
    });
    // Without file handles for it there is no stream, and `error` says so.
    child.stderr?.on('data', (chunk: Buffer) => (tail = (tail + chunk.toString('utf8')).slice(-2000)));
  });

/** What to call when the program works: its last word on its progress is said again. New words are said at once. */
function onWork({ stdout }: ChildProcess, { onProgress, onWork: heard }: Program): () => void {
  let last = { done: 0, total: 1 };
  const tell = (): void => onProgress?.(last.done, last.total);
  if (stdout)
    createInterface({ input: stdout }).on('line', (line) => {
      const told = progressLine.safeParse(line);
      if (!told.success) return; // a library's own words
      last = told.data;
      tell();
    });
  return () => {
    tell();
    heard?.();
  };
}
