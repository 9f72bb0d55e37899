/**
 * One run of an agent's program or of its grader: in a folder of its own, at the head of a process group of its own. Invariant: of what it has started
 * nothing is left once it has ended, also what has left its group, which is known by the key in its environment (Linux).
 */
import { readdirSync, readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { OutsideFailure } from '../../domain/failures';
import { keepTail, startChild, startProblem } from '../child-process';

interface RunOptions {
  command: readonly string[];
  /** Its working folder. */
  folder: string;
  passEnv?: readonly string[] | undefined;
  variables: Readonly<Record<string, string>>;
  /** On its stdin, which then ends. */
  input: string;
  /** A value in `variables` that no other program has. */
  mark: string;
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
/** Characters on stdout; whoever writes without end is killed. */
const MOST = 64 * 1024 * 1024;

export function run({ command, folder, passEnv, variables, input, mark }: RunOptions): Run {
  let stdout = () => '';
  let endless = false;
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
    const child = startChild({
      command,
      cwd: folder,
      passEnv,
      variables,
      readOutput: (stream) => {
        stdout = keepTail(stream, KEPT, (written) => {
          if (written <= MOST || endless) return;
          endless = true;
          child.kill();
        });
      },
      onEnd: (how) => {
        killMarked(mark);
        settle.resolve(endless ? `${how}, after more than ${MOST / 1024 ** 2} Mi characters on stdout` : how);
      },
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

/** What a process starts while the others are killed is found in the next round. */
const ROUNDS = 50;

function killMarked(mark: string): void {
  for (let round = 0; round < ROUNDS; round++) {
    const found = marked(mark);
    if (found.length === 0) return;
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It is gone already.
      }
    }
  }
}

/** None where there is no /proc. */
function marked(mark: string): number[] {
  let entries: string[];
  try {
    entries = readdirSync('/proc');
  } catch {
    return [];
  }
  return entries.flatMap((entry) => {
    if (!/^\d+$/.test(entry)) return [];
    try {
      return readFileSync(`/proc/${entry}/environ`, 'utf8').includes(mark) ? [Number(entry)] : [];
    } catch {
      return [];
    }
  });
}
