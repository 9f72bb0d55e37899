/**
 * Runs a subcommand of the Python package to its end, and sees from outside whether a process works: its processor time grows, its children's with it.
 * Invariant: however it fails, an OutsideFailure says in whose words; one that sleeps, is stopped or waits for a lock shows nothing, and fails, too.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { z } from 'zod';
import { projectRoot } from '../artifacts/project-root';
import { keyVariables } from '../domain/allowed';
import { OutsideFailure, reasonOf } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { isSecret, keyPipe } from '../domain/secrets';
import { limited } from '../domain/concurrency';

/** For the project's own programs on a model: devices and libraries are set up by variables of many names. */
export function programEnvironment(): NodeJS.ProcessEnv {
  const keys = keyVariables();
  return Object.fromEntries(Object.entries(pythonEnvironment()).filter(([name]) => !isSecret(name) && !keys.has(name)));
}

/** This process's environment. The project's own Python gets no variable that is meant for another, such as PYTHONPATH or PYTHONHOME. */
function pythonEnvironment(): NodeJS.ProcessEnv {
  const isOwn = (process.env['CAMPAIGN_PYTHON'] ?? projectRoot).startsWith(projectRoot);
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOwn || !name.startsWith('PYTHON')));
}

/** The exit code of trainer/command.py. Python itself ends with 1 for whatever is not caught: no memory, a full disk. */
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
  /** Variables that it reads from a pipe. */
  keys?: NodeJS.ProcessEnv;
  /** Of a program that tells `{"done": 1, "total": 5}` on stdout. */
  onProgress?: (done: number, total: number) => void;
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
  const { code, killedBy, said } = await limited(ended(program)).catch((error: unknown) => {
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

/** What a subcommand of the Python package answers to a question file. Throws what `runPython` does. */
export async function askPython<Answer>(o: {
  command: string;
  question: object;
  answer: z.ZodType<Answer>;
  program: Omit<Program, 'args'>;
}): Promise<Answer> {
  const folder = await mkdtemp(join(tmpdir(), 'trainer-'));
  try {
    const [from, to] = [join(folder, 'question.json'), join(folder, 'answer.json')];
    await writeFile(from, JSON.stringify(o.question));
    await runPython({ ...o.program, args: [o.command, '--in', from, '--out', to] });
    return o.answer.parse(JSON.parse(await readFile(to, 'utf8')));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Rejects where the program can not be started, is aborted or stands still. */
const ended = (program: Program): Promise<End> =>
  new Promise((done, broken) => {
    const { python, args, signal, env, keys, onProgress, idleSeconds = IDLE_SECONDS } = program;
    const pipe = keyPipe(keys);
    const child = spawn(python, ['-m', 'trainer', ...args], {
      cwd: projectRoot,
      stdio: ['ignore', onProgress ? 'pipe' : 'ignore', 'pipe', ...pipe.stdio],
      signal,
      env: { ...programEnvironment(), ...env, ...pipe.env },
    });
    pipe.send(child);
    let tail = '';
    if (child.stdout && onProgress)
      createInterface({ input: child.stdout }).on('line', (line) => {
        const told = progressLine.safeParse(line).data; // what else there is are a library's own words
        if (told) onProgress(told.done, told.total);
      });
    const unwatch = watchProcess({
      child,
      idleSeconds,
      onKill: (still) => {
        // What it has started may hold the pipes: they are not waited for.
        for (const pipe of [child.stdout, child.stderr]) pipe?.destroy();
        broken(new OutsideFailure('PythonFailed', `trainer ${args[0]} ${still} and was killed`));
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

const run = promisify(execFile);

interface Watched {
  child: ChildProcess;
  /** How long it may stand still. */
  idleSeconds: number;
  /** How long it may take in all. */
  seconds?: number;
  /** Told how long it stood still, or nothing of one that took too long. */
  onKill: (still: string | undefined) => void;
}

/** Kills a process that stands still, or takes too long, until the function that it returns is called. */
export function watchProcess({ child, idleSeconds, seconds = Infinity, onKill }: Watched): () => void {
  const begun = performance.now();
  let time: number | undefined;
  let worked = begun;
  let looking = false;
  let ended = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    const before = time;
    time = child.pid === undefined ? 0 : await processTime(child.pid);
    looking = false;
    if (ended || before === undefined) return;
    const now = performance.now();
    // It is less where a child has gone that nobody waited for.
    if (time > 0 && time !== before) worked = now;
    const idle = (now - worked) / 1000;
    const isLate = now - begun > seconds * 1000;
    if (!isLate && idle < idleSeconds) return;
    end();
    child.kill('SIGKILL');
    onKill(isLate ? undefined : `used no processor time for ${Math.round(idle)} s`);
  };
  void look();
  const timer = setInterval(() => void look(), Math.min(LOOK_SECONDS, idleSeconds / 8) * 1000);
  const end = (): void => {
    ended = true;
    clearInterval(timer);
  };
  return end;
}

/** Processor time that a process and its children have used, in a unit of the platform; 0 where it is gone. */
async function processTime(pid: number): Promise<number> {
  try {
    return process.platform === 'linux'
      ? await ticks(pid)
      : seconds((await run('ps', ['-o', 'time=', '-p', `${pid}`])).stdout);
  } catch {
    return 0;
  }
}

/** utime, stime, and those of children that have ended (proc(5)); the living ones are asked themselves. */
async function ticks(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name stands in parentheses and may hold anything; what follows it begins with field 3.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const own = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  const children = await Promise.all((await childrenOf(pid)).map((child) => ticks(child).catch(() => 0)));
  return children.reduce((sum, child) => sum + child, own);
}

async function childrenOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`);
  const lists = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => '')),
  );
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number));
}

/** Of `[[dd-]hh:]mm:ss[.cc]`. */
const seconds = (time: string): number =>
  time
    .trim()
    .split(/[-:]/)
    .reduce((sum, part, n, { length }) => sum + Number(part) * ([1, 60, 3600, 86_400][length - 1 - n] ?? 0), 0);
