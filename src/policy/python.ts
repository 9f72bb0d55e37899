/**
 * Runs a subcommand of the Python package to its end. Invariant: every failure is an OutsideFailure with the program's last words; a program that is silent
 * for too long is killed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { withTemporaryFolder } from '../store/durable-file';
import { projectRoot } from '../store/project-root';
import { keyVariables } from '../domain/allowed';
import { badInput, OutsideFailure, reasonOf } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { isSecret, keyPipe } from '../domain/secrets';

/**
 * Returns the environment of the project's own programs on a model. It has all variables but secrets, because many set up devices and libraries; the
 * project's own Python gets no variable that is meant for another, such as PYTHONPATH or PYTHONHOME.
 */
export function programEnvironment(): NodeJS.ProcessEnv {
  const keys = keyVariables();
  const isOwn = (process.env['CAMPAIGN_PYTHON'] ?? projectRoot).startsWith(projectRoot);
  const isLeftOut = (name: string) => isSecret(name) || keys.has(name) || (isOwn && name.startsWith('PYTHON'));
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isLeftOut(name)));
}

/** The exit code of trainer/command.py. Python itself ends with 1 after an uncaught error: no memory, a full disk. */
const REFUSED = 3;
const NO_ROOM = /No space left on device|Disk quota exceeded/;
/** Merging or fingerprinting a large model takes minutes. */
const SILENT_SECONDS = 3600;
const progressLine = jsonText.pipe(z.object({ done: z.number(), total: z.number() }));

export interface Program {
  python: string;
  args: [command: string, ...options: string[]];
  signal?: AbortSignal;
  env?: NodeJS.ProcessEnv;
  keys?: NodeJS.ProcessEnv;
  /** Called for each line `{"done": 1, "total": 5}` on stdout. */
  onProgress?: (done: number, total: number) => void;
  /** Limit of the whole run, or of the time between two lines of progress. */
  silentSeconds?: number;
}

interface End {
  code: number | null;
  killedBy: NodeJS.Signals | null;
  said: string;
}

/**
 * Throws BadInput with the program's message if it refuses or Python is missing, DiskFull if it has no room, PythonFailed if it ends with an error or takes
 * too long.
 */
export async function runPython(program: Program): Promise<void> {
  const { python, args, signal } = program;
  const { code, killedBy, said } = await ended(program).catch((error: unknown) => {
    signal?.throwIfAborted();
    if (error instanceof OutsideFailure) throw error;
    const cause = `python ${python}: ${reasonOf(error)}`;
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw badInput(`${cause}; run make install`, error);
    throw new OutsideFailure('PythonFailed', cause, error);
  });
  if (code === 0) return;
  // The kernel sends SIGKILL when memory runs out; there is no other sign of it.
  const reason =
    killedBy === 'SIGKILL' ? ' (memory ran out? take a smaller base model, or give the machine more memory)' : '';
  const how = killedBy ? `was killed by ${killedBy}${reason}` : `ended with code ${code}`;
  // The program's own message says what to change in the input.
  if (code === REFUSED) throw badInput(`trainer ${said}`);
  const type = NO_ROOM.test(said) ? 'DiskFull' : 'PythonFailed';
  throw new OutsideFailure(type, `trainer ${args[0]} ${how}: ${said}`);
}

/** Returns a subcommand's answer to a question. Throws what `runPython` does. */
export async function askPython<Answer>(o: {
  command: string;
  question: object;
  answer: z.ZodType<Answer>;
  program: Omit<Program, 'args'>;
}): Promise<Answer> {
  return withTemporaryFolder('trainer-', async (folder) => {
    const [from, to] = [join(folder, 'question.json'), join(folder, 'answer.json')];
    await writeFile(from, JSON.stringify(o.question));
    await runPython({ ...o.program, args: [o.command, '--in', from, '--out', to] });
    return o.answer.parse(JSON.parse(await readFile(to, 'utf8')));
  });
}

/** Rejects if the program can't be started, is aborted or takes too long. */
const ended = (program: Program): Promise<End> =>
  new Promise((done, broken) => {
    const { python, args, signal, env, keys, onProgress, silentSeconds = SILENT_SECONDS } = program;
    const pipe = keyPipe(keys);
    const child = spawn(python, ['-m', 'trainer', ...args], {
      cwd: projectRoot,
      stdio: ['ignore', onProgress ? 'pipe' : 'ignore', 'pipe', ...pipe.stdio],
      signal,
      env: { ...programEnvironment(), ...env, ...pipe.env },
    });
    pipe.send(child);
    const limit = limitSilence(child, silentSeconds, () => {
      // Processes that it has started may hold the pipes open.
      for (const pipe of [child.stdout, child.stderr]) pipe?.destroy();
      broken(
        new OutsideFailure('PythonFailed', `trainer ${args[0]} said nothing for ${silentSeconds} s and was killed`),
      );
    });
    let tail = '';
    if (child.stdout && onProgress)
      createInterface({ input: child.stdout }).on('line', (line) => {
        const progress = progressLine.safeParse(line).data; // other lines are printed by libraries
        if (!progress) return;
        limit.refresh();
        onProgress(progress.done, progress.total);
      });
    child.once('error', (error) => {
      limit.end();
      broken(error);
    });
    child.once('close', (code, killedBy) => {
      limit.end();
      done({ code, killedBy, said: tail.trim().split('\n').slice(-3).join(' | ') });
    });
    // There is no stream if no file handle was left; `error` reports that.
    child.stderr?.on('data', (chunk: Buffer) => (tail = (tail + chunk.toString('utf8')).slice(-2000)));
  });

/** Kills a process after so many seconds without `refresh`. Returns `refresh`, and `end`, after which it is let live. */
export function limitSilence(child: ChildProcess, seconds: number, onKill: () => void) {
  const timer = setTimeout(() => {
    child.kill('SIGKILL');
    onKill();
  }, seconds * 1000);
  return { refresh: () => void timer.refresh(), end: () => clearTimeout(timer) };
}
