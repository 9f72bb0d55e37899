/** A worker as somebody starts it on another machine: through the real command line, with what it needs in its environment. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { baseModel, repository } from './campaign-run';
import { python } from './embedded-server';
import { atEnd } from './opened';

export interface WorkerByHand {
  /** What it says once it is ready. */
  ready: Record<string, unknown>;
  /** What it has logged. */
  log: () => string;
  /** Asks it to leave, and waits until it has. */
  stop: () => Promise<unknown>;
}

/** It leaves after the test at the latest. `settings`: of its environment, `TEMPORAL_ADDRESS` and `CAMPAIGN_HOME` among them. */
export async function workerByHand(
  kind: 'control' | 'rollouts' | 'gpu',
  settings: Record<string, string>,
): Promise<WorkerByHand> {
  const child = spawn(process.execPath, [`${repository}/dist/workers/worker.js`, kind], {
    cwd: repository,
    env: { ...process.env, CAMPAIGN_PYTHON: python, CAMPAIGN_MODEL: baseModel, ...settings },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const ended = once(child, 'close');
  const stop = () => {
    child.stdin.end();
    return ended;
  };
  atEnd(stop);
  for await (const line of createInterface({ input: child.stdout }))
    if (line.startsWith('{"type":"ready"'))
      return { ready: JSON.parse(line) as WorkerByHand['ready'], log: () => log, stop };
  throw new Error(`the ${kind} worker ended before it was ready: ${log}`);
}
