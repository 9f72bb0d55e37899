/** One run of an agent's program or of its grader, in a folder of its own. */
import { hostname } from 'node:os';
import { OutsideFailure } from '../../domain/failures';
import { keepTail, startChild, startProblem } from '../child-process';

interface RunOptions {
  command: readonly string[];
  /** Its working folder. */
  folder: string;
  passEnv?: readonly string[] | undefined;
  variables: Readonly<Record<string, string>>;
  /** Written to stdin, which then ends. */
  input: string;
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
/** The limit of characters on stdout and on stderr; a program that writes more is killed. */
const MOST = 64 * 1024 * 1024;

export function run({ command, folder, passEnv, variables, input }: RunOptions): Run {
  let stdout = () => '';
  /** Why it was killed. */
  let excess = '';
  let settle: { resolve: (how: string) => void; reject: (error: Error) => void };
  const ended = new Promise<string>((resolve, reject) => (settle = { resolve, reject }));
  ended.catch(() => undefined);
  const onStartFailure = (problem: string) =>
    settle.reject(
      new OutsideFailure(
        'EnvironmentMissing',
        `agent program "${command.join(' ')}" can't be started on ${hostname()}: ${problem}; check target.command`,
      ),
    );
  try {
    const limit = (name: string) => (written: number) => {
      if (written <= MOST || excess) return;
      excess = `, after more than ${MOST / 1024 ** 2} Mi characters on ${name}`;
      child.kill();
    };
    const child = startChild({
      command,
      cwd: folder,
      passEnv,
      variables,
      readOutput: (stream) => {
        stdout = keepTail(stream, KEPT, limit('stdout'));
      },
      onStderr: limit('stderr'),
      onEnd: (how) => settle.resolve(how + excess),
      onStartFailure,
    });
    child.send(input);
    child.endInput();
    return { ended, kill: child.kill, stdout: () => stdout(), stderr: child.stderr };
  } catch (error) {
    onStartFailure(startProblem({ error, cwd: folder }));
    return { ended, kill: () => undefined, stdout: () => '', stderr: () => '' };
  }
}
