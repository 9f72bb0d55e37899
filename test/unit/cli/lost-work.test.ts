/** Steps of killed workers, on a real server: a worker in a process of its own is killed while it has a step. */
import { activityInfo } from '@temporalio/activity';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { here, workerIdentity } from '../../../src/artifacts/place';
import { giveBackLostWork, isLost } from '../../../src/cli/run/campaign';
import { takeSnapshot } from '../../../src/cli/watch/snapshot';

jest.setTimeout(120_000);
const root = resolve(__dirname, '../../..');
Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { filter: 'ERROR' } } });

let env: TestWorkflowEnvironment;
beforeAll(async () => {
  const executable = { type: 'existing-path', path: join(root, '.venv', 'bin', 'temporal') } as const;
  env = await TestWorkflowEnvironment.createLocal({
    server: { executable, log: { format: 'pretty', level: 'error' } },
  });
});
afterAll(() => env.teardown());

/** A worker that never ends its step. Resolves when it has one. */
async function stuck(): Promise<ChildProcess> {
  const script = join(root, 'test', 'support');
  const child = spawn(
    process.execPath,
    ['-r', join(script, 'register.cjs'), join(script, 'stuck-worker.ts')],
    // Its input stays open: with its end it would leave.
    { env: { ...process.env, TEMPORAL_ADDRESS: env.address }, stdio: ['pipe', 'pipe', 'ignore'] },
  );
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (text) => String(text).includes('at work') && resolve());
    child.once('exit', (code) => reject(new Error(`the worker ended with ${code}`)));
  });
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await ended;
}

/** Beside a worker for workflows alone. */
const withWorkflows = async <T>(body: () => Promise<T>): Promise<T> => {
  const workflowsPath = join(root, 'test', 'fixtures', 'lost-work', 'workflows.ts');
  const worker = await Worker.create({ connection: env.nativeConnection, taskQueue: 'workflows', workflowsPath });
  return worker.runUntil(body);
};
const temporal = () => ({ client: env.client, close: () => Promise.resolve() });
const give = async (name: string) => giveBackLostWork(temporal(), await takeSnapshot(temporal(), name));
const begin = (name: string) => env.client.workflow.start('campaign', { workflowId: name, taskQueue: 'workflows' });

it('a step of a killed worker begins again within seconds', async () => {
  await withWorkflows(async () => {
    const run = await begin('killed');
    const child = await stuck();
    // It lives: nothing is taken from it.
    expect(await give('killed')).toBe(0);
    await kill(child);
    expect(await give('killed')).toBe(1);
    // It waits for a worker now.
    expect(await give('killed')).toBe(0);
    const worker = await Worker.create({
      connection: env.nativeConnection,
      taskQueue: 'steps',
      activities: { work: () => Promise.resolve(activityInfo().attempt) },
    });
    expect(await worker.runUntil(run.result())).toBe(1);
  });
});

it('a step that a pause cancels, and whose worker is killed before it has saved, counts as cancelled', async () => {
  await withWorkflows(async () => {
    const run = await begin('paused');
    const child = await stuck();
    await run.signal('pause');
    const cancelling = async () => (await takeSnapshot(temporal(), 'paused')).activities[0]?.state === 'cancelling';
    while (!(await cancelling())) await new Promise((resolve) => setTimeout(resolve, 100));
    await kill(child);
    expect(await give('paused')).toBe(1);
    expect(await run.result()).toBe('cancelled');
  });
});

it('a step that somebody else has since the look is not taken from them', async () => {
  await withWorkflows(async () => {
    const run = await begin('retried');
    const child = await stuck();
    await kill(child);
    const before = await takeSnapshot(temporal(), 'retried');
    expect(await give('retried')).toBe(1);
    const second = await stuck();
    try {
      expect(await giveBackLostWork(temporal(), before)).toBe(0);
      const [step] = (await takeSnapshot(temporal(), 'retried')).activities;
      expect(step).toMatchObject({ attempt: 1, state: 'started', worker: workerIdentity(second.pid) });
    } finally {
      await kill(second);
      await run.terminate();
    }
  });
});

it('a step that has ended meanwhile is none of the lost ones', async () => {
  const ended = { id: '1', workflowId: 'killed', state: 'started', worker: workerIdentity(dead) } as const;
  const activities = [{ ...ended, type: 'work', attempt: 1 }];
  expect(await giveBackLostWork(temporal(), { activities, children: [] })).toBe(0);
});

/** No system gives out such a number. */
const dead = 2 ** 30;
it.each([
  ['of a process that is gone', { worker: workerIdentity(dead) }, true],
  ['of a process that lives', { worker: workerIdentity() }, false],
  ["of another user's process", { worker: workerIdentity(1) }, false],
  ['of a place that is not told', { worker: `${dead}@${hostname()}` }, false],
  [
    'of another machine, or another boot, whose name is the same',
    { worker: workerIdentity(dead).replace(here.boot, randomUUID()) },
    false,
  ],
  [
    'of another container whose host name is the same',
    { worker: workerIdentity(dead).replace(here.pidNamespace, '4026539999') },
    false,
  ],
  ['that no worker has', { state: 'scheduled', worker: workerIdentity(dead) }, false],
  ['that is being cancelled', { state: 'cancelling', worker: workerIdentity(dead) }, true],
  ['of a worker with a name of its own', { worker: 'gpu-3' }, false],
  ['of nobody', {}, false],
] as const)('a step %s', (_what, step, lost) => {
  expect(isLost({ state: 'started', ...step })).toBe(lost);
});
