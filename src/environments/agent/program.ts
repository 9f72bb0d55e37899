/**
 * One run of an agent's program or of its grader: in a folder of its own, at the head of a process group of its own. Invariant: of what it has started
 * nothing is left once it has ended, and while it runs it has no more processes than it may, or not for long where the kernel makes it no group (Linux).
 */
import { hostname } from 'node:os';
import { OutsideFailure } from '../../domain/failures';
import { keepTail, startChild, startProblem } from '../child-process';
import { begunIn, makeGroup, removeGroup } from './control-group';
import { killAll, MARK, watch } from './processes';

interface RunOptions {
  command: readonly string[];
  /** Its working folder. */
  folder: string;
  passEnv?: readonly string[] | undefined;
  variables: Readonly<Record<string, string>>;
  /** On its stdin, which then ends. */
  input: string;
  /** A name that no other program has. */
  mark: string;
  /** Processes and threads at once. */
  maxProcesses: number;
}

export interface Run {
  /** `exit code 0`, `SIGKILL`; rejects if it can't be started. */
  ended: Promise<string>;
  kill(): void;
  /** The last of what it wrote. */
  stdout(): string;
  stderr(): string;
}

const KEPT = 64 * 1024;
/** Characters on stdout, or on stderr; whoever writes without end is killed. */
const MOST = 64 * 1024 * 1024;

export function run({ command, folder, passEnv, variables, input, mark, maxProcesses }: RunOptions): Run {
  let stdout = () => '';
  /** Why it was killed. */
  let excess = '';
  let settle: { resolve: (how: string) => void; reject: (error: Error) => void };
  const ended = new Promise<string>((resolve, reject) => (settle = { resolve, reject }));
  ended.catch(() => undefined);
  const group = makeGroup(maxProcesses);
  const onStartFailure = (problem: string) => {
    if (group) void removeGroup(group);
    settle.reject(
      new OutsideFailure(
        'EnvironmentMissing',
        `agent program "${command.join(' ')}" can't be started on ${hostname()}: ${problem}; check target.command`,
      ),
    );
  };
  try {
    const limit = (name: string) => (written: number) => {
      if (written > MOST && !excess) end(`, after more than ${MOST / 1024 ** 2} Mi characters on ${name}`);
    };
    const child = startChild({
      command: begunIn(group, command),
      cwd: folder,
      passEnv,
      variables: { ...variables, [MARK]: mark },
      readOutput: (stream) => {
        stdout = keepTail(stream, KEPT, limit('stdout'));
      },
      onStderr: limit('stderr'),
      onEnd: (how) => {
        unwatch();
        killAll(program);
        if (group) void removeGroup(group);
        settle.resolve(how + excess);
      },
      onStartFailure,
    });
    const end = (why: string) => {
      excess = why;
      child.kill();
    };
    const program = { mark, pid: child.pid, group };
    const unwatch = watch(program, maxProcesses, () =>
      end(`, with more than ${maxProcesses} processes and threads at once`),
    );
    child.send(input);
    child.endInput();
    return { ended, kill: child.kill, stdout: () => stdout(), stderr: child.stderr };
  } catch (error) {
    onStartFailure(startProblem({ error, cwd: folder }));
    return { ended, kill: () => undefined, stdout: () => '', stderr: () => '' };
  }
}
