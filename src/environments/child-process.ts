/**
 * Starts every program of a target, in its own namespace where possible, and reads its lines. Invariant: all processes that the program has started are
 * killed when it ends, when it is killed, and when this process is gone. Lines are read in linear time and bounded memory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import type { Readable } from 'node:stream';
import { inNamespace } from './namespace';

export interface Child {
  send(line: string): void;
  endInput(): void;
  kill(): void;
  /** Returns the last that it wrote. */
  stderr(): string;
  /** Closes its stdin, and kills it if it does not end. */
  close(): Promise<void>;
}

interface ChildOptions {
  command: readonly string[];
  cwd?: string | undefined;
  /** Variables that the program gets beside the bare environment. */
  passEnv?: readonly string[] | undefined;
  /** Further variables, with their values. */
  variables?: Readonly<NodeJS.ProcessEnv>;
  readOutput: (stdout: Readable) => void;
  /** Called at the end; `how` is "exit code 3" or "SIGKILL". */
  onEnd: (how: string) => void;
  onStartFailure: (problem: string) => void;
}

const CLOSE_MS = 2_000;
/** Output written before the end is read within this time, also if a grandchild holds the pipes open. */
const EXIT_GRACE_MS = 500;
const STDERR_LENGTH = 4 * 1024;

/** The variable by which the processes of a program are found where there is no namespace. */
const MARK = 'CAMPAIGN_PROGRAM';

/** Shell script that waits for the end of its input, which this process's death causes, gives the program time to end, and kills its group. */
const GUARD = `read -r _; sleep ${CLOSE_MS / 1000}; kill -s KILL -- "-$1"
  for file in $(grep -lsz "^${MARK}=$2$" /proc/[0-9]*/environ); do file=\${file%/*}; kill -s KILL "\${file##*/}"; done`;

/** The variables of a program of a target: where programs and files are, and the user. */
const BARE = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'TMPDIR',
  'LANG',
  'LC_ALL',
  'TZ',
  'SYSTEMROOT',
  'no_proxy',
  'NO_PROXY',
];
export const bareEnvironment = (passed: readonly string[] = []): NodeJS.ProcessEnv =>
  Object.fromEntries([...BARE, ...passed].map((name) => [name, process.env[name]]));

export function startChild(o: ChildOptions): Child {
  const { command, cwd, passEnv, variables, readOutput, onEnd, onStartFailure } = o;
  const words = inNamespace(command, cwd);
  const isAlone = words !== command;
  const [program = '', ...args] = words;
  const mark = randomUUID();
  const env = { ...bareEnvironment(passEnv), ...variables, [MARK]: mark };
  const child = spawn(program, args, { stdio: 'pipe', detached: true, env, ...(cwd !== undefined && { cwd }) });
  const guard = child.pid === undefined ? undefined : startGuard(child.pid, mark);
  const stderr = keepTail(child.stderr, STDERR_LENGTH);
  let how = 'no exit code';
  let ended = false;
  let grace: NodeJS.Timeout | undefined;
  let resolveEnd = (): void => undefined;
  const end = new Promise<void>((resolve) => (resolveEnd = resolve));

  const kill = () => {
    if (child.pid !== undefined) killIfThere(-child.pid);
    if (!isAlone) killMarked(mark);
  };
  function finish(report: () => void): void {
    if (ended) return;
    ended = true;
    clearTimeout(grace);
    kill();
    guard?.kill('SIGKILL');
    for (const stream of child.stdio) stream?.destroy();
    report();
    resolveEnd();
  }

  readOutput(child.stdout);
  for (const stream of child.stdio) stream?.on('error', () => undefined); // a broken pipe: the process has ended, and its exit code says why
  child.on('error', (error) => {
    // Node names the program even if its folder is missing.
    const problem = cwd !== undefined && !existsSync(cwd) ? `there is no folder ${cwd} to run it in` : error.message;
    if (child.pid === undefined) finish(() => onStartFailure(problem));
  });
  child.once('exit', (code, signal) => {
    how = signal ?? (isAlone ? `exit code ${code}${signalIn(code)}` : `exit code ${code}`);
    kill();
    grace = setTimeout(() => finish(() => onEnd(how)), EXIT_GRACE_MS);
  });
  child.once('close', () => finish(() => onEnd(how)));

  return {
    send: (line: string): void => void child.stdin.write(`${line}\n`),
    endInput: (): void => void child.stdin.end(),
    kill,
    stderr,
    async close() {
      child.stdin.end();
      const timers = [
        setTimeout(kill, CLOSE_MS),
        setTimeout(() => finish(() => onEnd('SIGKILL')), CLOSE_MS + 2 * EXIT_GRACE_MS),
      ];
      await end;
      timers.forEach(clearTimeout);
    },
  };
}

/** A shell reports the signal that ended its command as 128 and the signal's number. */
function signalIn(code: number | null): string {
  const name = Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0];
  return name === undefined ? '' : ` (${name})`;
}

/** Its environment lacks the mark of a service, so that the cleanup after a killed worker does not end the guard. */
function startGuard(pid: number, mark: string): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', GUARD, 'environment-guard', String(pid), mark], {
    detached: true,
    env: { PATH: process.env['PATH'] },
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.on('error', () => undefined);
  guard.unref();
  guard.stdin.on('error', () => undefined);
  (guard.stdin as unknown as { unref(): void }).unref();
  return guard;
}

/** A process that is started while the others are killed is found in the next round. */
const ROUNDS = 50;

/** Kills the processes whose environment has the mark (Linux). */
function killMarked(mark: string): void {
  for (let round = 0; round < ROUNDS; round++) {
    const pids = listProcesses().filter((pid) => isMarked(pid, mark));
    if (pids.length === 0) return;
    pids.forEach(killIfThere);
  }
}

const listProcesses = (): number[] =>
  existsSync('/proc') ? readdirSync('/proc').map(Number).filter(Number.isInteger) : [];

function isMarked(pid: number, mark: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(`${MARK}=${mark}`);
  } catch {
    return false;
  }
}

/** Kills a process, or a group (negative number), if it exists. Most groups are empty once their leader has ended. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is gone already.
  }
}

/**
 * Maximum characters of one line. The longest legitimate line lists the tasks of a large benchmark: 100,000 tasks take about 10 MB. JSON of this size is
 * parsed in a fraction of a second, so that no line delays a worker's heartbeats.
 */
export const MAX_LINE = 16 * 1024 * 1024;

interface LineReader {
  /** Called with every non-empty line; an unfinished last line is dropped. */
  onLine: (line: string) => void;
  /** Called with the beginning of a line that is too long. The rest of the line is dropped. */
  onTooLong: (beginning: string) => void;
}

const BEGINNING = 1_000;

export function readLines(stream: Readable, { onLine, onTooLong }: LineReader): void {
  let pieces: string[] = [];
  let length = 0;
  let skipping = false;

  function take(piece: string): void {
    if (skipping) return;
    length += piece.length;
    pieces.push(piece);
    if (length <= MAX_LINE) return;
    skipping = true;
    const beginning = pieces.join('').slice(0, BEGINNING);
    pieces = [];
    onTooLong(beginning);
  }

  function finish(): void {
    const line = pieces.join('');
    [pieces, length, skipping] = [[], 0, false];
    if (line.trim() !== '') onLine(line);
  }

  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    let start = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', start)) {
      take(chunk.slice(start, end));
      finish();
      start = end + 1;
    }
    if (start < chunk.length) take(chunk.slice(start));
  });
}

/** Keeps the last `length` characters of a stream, which the returned function gives. */
export function keepTail(stream: Readable, length: number): () => string {
  let tail = '';
  let isCut = false;
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    tail += chunk;
    isCut ||= tail.length > length;
    tail = tail.slice(-length);
  });
  return () => (isCut ? `... ${tail.trim()}` : tail.trim());
}
