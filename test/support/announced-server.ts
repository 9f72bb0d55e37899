/** A home whose Temporal server is another one: a process that carries its mark stands for the server that the home would have started. */
import { spawn } from 'node:child_process';
import { homeAt } from '../../src/cli/project';
import { announceServer, serviceMark, TEMPORAL } from '../../src/cli/run/processes';

export interface AnnouncedServer {
  /** Where it is now; nothing where none runs. */
  isAt(address: string | undefined): void;
  /** Kills the process; what is announced stays, as a killed server leaves it. */
  kill(): Promise<void>;
}

export async function announcedServer(folder: string): Promise<AnnouncedServer> {
  const home = homeAt(folder);
  const env = { ...process.env, ...serviceMark(home, TEMPORAL) };
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { env, stdio: ['pipe', 'ignore', 'ignore'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await new Promise((resolve) => child.once('spawn', resolve));
  return {
    isAt: (address) => announceServer(home, address),
    kill: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
