/** A worker that fails all that it takes stops taking. */
import { ApplicationFailure } from '@temporalio/common';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { stoppingWhenFaulty } from '../../../src/activities/failures';

jest.setTimeout(120_000);
Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { filter: 'ERROR' } } });
const root = resolve(__dirname, '../../..');

test('its process ends in order with exit code 3 and says why', async () => {
  const executable = { type: 'existing-path', path: join(root, '.venv', 'bin', 'temporal') } as const;
  const env = await TestWorkflowEnvironment.createLocal({
    server: { executable, log: { format: 'pretty', level: 'error' } },
  });
  try {
    const workflowsPath = join(root, 'test', 'fixtures', 'lost-work', 'workflows.ts');
    const worker = await Worker.create({ connection: env.nativeConnection, taskQueue: 'workflows', workflowsPath });
    await worker.runUntil(async () => {
      const run = await env.client.workflow.start('campaign', { workflowId: 'faulty', taskQueue: 'workflows' });
      const script = join(root, 'test', 'support');
      const child = spawn(process.execPath, ['-r', join(script, 'register.cjs'), join(script, 'faulty-worker.ts')], {
        env: { ...process.env, TEMPORAL_ADDRESS: env.address },
        stdio: ['pipe', 'ignore', 'pipe'],
      });
      let said = '';
      child.stderr.on('data', (text) => (said += String(text)));
      const code = await new Promise((done) => child.once('exit', done));
      expect(said).toMatch(/takes no more, and ends with exit code 3: 3 steps in a row .* TrainerDied: no CUDA device/);
      expect(code).toBe(3);
      // The step is left to another worker.
      expect((await run.describe()).status.name).toBe('RUNNING');
      await run.terminate();
    });
  } finally {
    await env.teardown();
  }
});

const fault = (type = 'TrainerDied') => ApplicationFailure.nonRetryable('no CUDA device', type);

/** Steps one after the other, each `[what it throws, how long it takes in ms]`. @returns what was said. */
async function after(...steps: [Error | undefined, number][]): Promise<string[]> {
  const said: string[] = [];
  let [time, n] = [0, 0];
  const train = async () => {
    const [error, ms] = steps[n++]!;
    time += ms;
    if (error) throw error;
  };
  const counted = stoppingWhenFaulty({ train }, { onFaulty: (why) => void said.push(why), now: () => time });
  while (n < steps.length) await counted.train().catch(() => undefined);
  return said;
}

test('three own faults in a row, soon after their beginning, say why', async () => {
  const soon: [Error, number] = [fault(), 10_000];
  expect(await after(soon, soon)).toEqual([]);
  expect(await after(soon, soon, soon, soon)).toEqual([
    '3 steps in a row failed soon after they began, the last with TrainerDied: no CUDA device',
  ]);
  // One that ended well, or went on for a while, is between them.
  expect(await after(soon, soon, [undefined, 1], soon)).toEqual([]);
  expect(await after(soon, soon, [fault(), 200_000], soon)).toEqual([]);
  // An outage, a preemption and a bad job are not the worker's doing.
  for (const type of ['PolicyServerUnavailable', 'WorkerShutdown', 'BadJob'])
    expect(await after([fault(type), 1], [fault(type), 1], [fault(type), 1])).toEqual([]);
});
