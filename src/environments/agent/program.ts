/** One run of an agent's program or of its grader, in a folder of its own. */
import { hostname } from 'node:os';
import { OutsideFailure } from '../../domain/failures';
import { keepTail, startChild } from '../child-process';

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

export function run({ command, folder, passEnv, variables, input }: RunOptions): Run {
  let stdout = () => '';
  let settle: { resolve: (how: string) => void; reject: (error: Error) => void };
  const ended = new Promise<string>((resolve, reject) => (settle = { resolve, reject }));
  ended.catch(() => undefined);
  const child = startChild({
    command,
    cwd: folder,
    passEnv,
    variables,
    readOutput: (stream) => {
      stdout = keepTail(stream, KEPT);
    },
    onEnd: (how) => settle.resolve(how),
    onStartFailure: (problem) => {
      const where = `agent program "${command.join(' ')}" can't be started on ${hostname()}`;
      settle.reject(new OutsideFailure('EnvironmentMissing', `${where}: ${problem}; check target.command`));
    },
  });
  child.send(input);
  child.endInput();
  return { ended, kill: child.kill, stdout: () => stdout(), stderr: child.stderr };
}
