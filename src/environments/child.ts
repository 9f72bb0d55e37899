/**
 * An environment's process as the operating system sees it. Invariants: it leads a process group, which is killed as a whole: when it
 * ends, when it is killed, and when this process is gone, however that went; `onEnd` is called once, soon after the end, whoever else
 * holds its pipes.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { keepTail, readLines, type LineReader } from './lines';

export interface Child {
  send(line: string): void;
  kill(): void;
  /** Its last words. */
  stderr(): string;
  /** Closes its stdin, and kills it if it goes on. */
  close(): Promise<void>;
}

interface ChildOptions extends Pick<LineReader, 'onLine' | 'onTooLong'> {
  command: readonly string[];
  cwd?: string | undefined;
  /** `how`: "exit code 3", "SIGKILL". */
  onEnd: (how: string) => void;
  onStartFailure: (problem: string) => void;
}

const CLOSE_MS = 2_000;
/** What was written before the end is read within this time; a grandchild that holds the pipes is not waited for any longer. */
const EXIT_GRACE_MS = 500;
/** A traceback of some dozen lines. */
const STDERR_LENGTH = 4 * 1024;

/** Waits for the end of its input, which comes when this process is gone; then gives the group the time to see the end of theirs. */
const GUARD = `read -r _; sleep ${CLOSE_MS / 1000}; kill -s KILL -- "-$1"`;

export function startChild({ command, cwd, onLine, onTooLong, onEnd, onStartFailure }: ChildOptions): Child {
  const [program = '', ...args] = command;
  const child = spawn(program, args, { stdio: 'pipe', detached: true, ...(cwd !== undefined && { cwd }) });
  const guard = child.pid === undefined ? undefined : startGuard(child.pid);
  const stderr = keepTail(child.stderr, STDERR_LENGTH);
  let how = 'no exit code';
  let ended = false;
  let grace: NodeJS.Timeout | undefined;
  let resolveEnd = (): void => undefined;
  const end = new Promise<void>((resolve) => (resolveEnd = resolve));

  const kill = () => killGroup(child.pid);
  function finish(tell: () => void): void {
    if (ended) return;
    ended = true;
    clearTimeout(grace);
    kill();
    guard?.kill('SIGKILL');
    for (const stream of child.stdio) stream?.destroy();
    tell();
    resolveEnd();
  }

  readLines(child.stdout, { onLine, onTooLong });
  for (const stream of child.stdio) stream?.on('error', () => undefined); // a broken pipe: the end follows and tells why
  child.on('error', (error) => {
    if (child.pid === undefined) finish(() => onStartFailure(startProblem({ error, cwd })));
  });
  child.once('exit', (code, signal) => {
    how = signal ?? `exit code ${code}`;
    kill();
    grace = setTimeout(() => finish(() => onEnd(how)), EXIT_GRACE_MS);
  });
  child.once('close', () => finish(() => onEnd(how)));

  return {
    send: (line) => void child.stdin.write(`${line}\n`),
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

/** A command that could not be run in its folder names the program where the folder is what is missing. */
export const startProblem = ({ error, cwd }: { error: unknown; cwd?: string | undefined }): string =>
  cwd !== undefined && !existsSync(cwd)
    ? `there is no folder ${cwd} to run it in`
    : error instanceof Error
      ? error.message
      : String(error);

function startGuard(pid: number): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', GUARD, 'environment-guard', String(pid)], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  guard.on('error', () => undefined);
  guard.unref();
  guard.stdin.on('error', () => undefined);
  (guard.stdin as unknown as { unref(): void }).unref();
  return guard;
}

/** Nothing is left of most groups whose leader has ended. */
function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // gone
  }
}
