/** Workers that are killed while they have a step, or that fail all that they take: processes of their own, on a real server. */
import { activityInfo } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Worker } from '@temporalio/worker';
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { stoppingWhenFaulty } from '../../../src/activities/failures';
import { here, workerIdentity } from '../../../src/artifacts/place';
import { giveBackLostWork, isLost } from '../../../src/cli/run/campaign';
import { takeSnapshot } from '../../../src/cli/watch/snapshot';
import { devServer, quiet } from '../../workflows/environment';

jest.setTimeout(120_000);
quiet();
const root = resolve(__dirname, '../../..');
let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await devServer();
});
afterAll(() => env?.teardown());

/** Its input is a pipe that stays open, with whose end it would leave, or `ignore`: /dev/null, which service managers give. */
function startWorker(step: 'endless' | 'failing', input: 'pipe' | 'ignore' = 'pipe'): ChildProcess {
  const [preload, program] = ['register.cjs', 'step-worker.ts'].map((name) => join(root, 'test', 'support', name));
  const environment = { ...process.env, TEMPORAL_ADDRESS: env.address };
  return spawn(process.execPath, ['-r', preload!, program!, step], {
    env: environment,
    stdio: [input, 'pipe', 'pipe'],
  });
}

/** A worker that never ends its step. Resolves when it has one. */
async function stuck(input?: 'ignore'): Promise<ChildProcess> {
  const child = startWorker('endless', input);
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (text) => String(text).includes('at work') && resolve());
    child.once('exit', (code) => reject(new Error(`the worker ended with ${code}`)));
  });
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

/** Beside a worker for workflows alone, one of which has begun. */
async function withWorkflow(
  name: string,
  body: (run: Awaited<ReturnType<typeof env.client.workflow.start>>) => Promise<void>,
): Promise<void> {
  const workflowsPath = join(root, 'test', 'fixtures', 'lost-work', 'workflows.ts');
  const worker = await Worker.create({ connection: env.nativeConnection, taskQueue: 'workflows', workflowsPath });
  await worker.runUntil(async () => {
    const run = await env.client.workflow.start('campaign', { workflowId: name, taskQueue: 'workflows' });
    await body(run);
    await run.terminate().catch(() => undefined);
  });
}
const temporal = () => ({ client: env.client, close: () => Promise.resolve() });
const look = (name: string) => takeSnapshot(temporal(), name);
const give = async (name: string) => giveBackLostWork(temporal(), await look(name));

it('a step of a killed worker begins again within seconds', () =>
  withWorkflow('killed', async (run) => {
    const child = await stuck();
    // It lives: nothing is taken from it.
    expect(await give('killed')).toBe(0);
    await kill(child);
    expect(await give('killed')).toBe(1);
    // It waits for a worker now.
    expect(await give('killed')).toBe(0);
    const activities = { work: () => Promise.resolve(activityInfo().attempt) };
    const worker = await Worker.create({ connection: env.nativeConnection, taskQueue: 'steps', activities });
    expect(await worker.runUntil(run.result())).toBe(1);
    // One that has ended meanwhile is none of the lost ones.
    const ended = { id: '1', workflowId: 'killed', state: 'started', worker: workerIdentity(dead) } as const;
    const steps = [{ ...ended, type: 'work', attempt: 1 }];
    expect(await giveBackLostWork(temporal(), { activities: steps, children: [] })).toBe(0);
  }));

it('a cancelled step whose worker is killed before it has saved counts as cancelled', () =>
  withWorkflow('cancelled', async (run) => {
    const child = await stuck();
    await run.cancel();
    const cancelling = async () => (await look('cancelled')).activities[0]?.state === 'cancelling';
    while (!(await cancelling())) await new Promise((resolve) => setTimeout(resolve, 100));
    await kill(child);
    expect(await give('cancelled')).toBe(1);
    expect(await run.result()).toBe('cancelled');
  }));

it('a step that somebody else has since the look is not taken from them', () =>
  withWorkflow('retried', async () => {
    await kill(await stuck());
    const before = await look('retried');
    expect(await give('retried')).toBe(1);
    const second = await stuck();
    try {
      expect(await giveBackLostWork(temporal(), before)).toBe(0);
      const worker = workerIdentity(second.pid);
      expect((await look('retried')).activities).toMatchObject([{ attempt: 1, state: 'started', worker }]);
    } finally {
      await kill(second);
    }
  }));

it('a worker that fails all that it takes ends in order with exit code 3 and says why; the step is left to another', () =>
  withWorkflow('faulty', async (run) => {
    const child = startWorker('failing');
    let said = '';
    child.stderr?.on('data', (text) => (said += String(text)));
    expect(await once(child, 'exit')).toEqual([3, null]);
    expect(said).toMatch(/takes no more, and ends with exit code 3: 3 steps in a row .* TrainerDied: no CUDA device/);
    expect((await run.describe()).status.name).toBe('RUNNING');
  }));

it('a worker that is told to stop is gone within 30 s, also where its step does not end', () =>
  withWorkflow('preempted', async () => {
    const child = await stuck();
    const begun = performance.now();
    child.kill('SIGTERM');
    await once(child, 'exit');
    expect(performance.now() - begun).toBeLessThan(30_000);
  }));

it('a worker that a service manager starts stays, as nobody holds its input', () =>
  withWorkflow('service', async () => kill(await stuck('ignore'))));

/** No system gives out such a number. */
const dead = 2 ** 30;
it.each([
  ['of a process that is gone', { worker: workerIdentity(dead) }, true],
  ['of a process that lives', { worker: workerIdentity() }, false],
  ["of another user's process", { worker: workerIdentity(1) }, false],
  ['of a place that is not told', { worker: `${dead}@${hostname()}` }, false],
  ['of another machine or boot', { worker: workerIdentity(dead).replace(here.boot, randomUUID()) }, false],
  ['of another container', { worker: workerIdentity(dead).replace(here.pidNamespace, '4026539999') }, false],
  ['that no worker has', { state: 'scheduled', worker: workerIdentity(dead) }, false],
  ['that is being cancelled', { state: 'cancelling', worker: workerIdentity(dead) }, true],
  ['of a worker with a name of its own', { worker: 'gpu-3' }, false],
  ['of nobody', {}, false],
] as const)('whether a step is lost %s', (_what, step, lost) => {
  expect(isLost({ state: 'started', ...step })).toBe(lost);
});

type Step = [failure: string | undefined, seconds: number];
const soon: Step = ['TrainerDied', 10];
const WHY = '3 steps in a row failed soon after they began, the last with TrainerDied: no CUDA device';
it.each<[string, Step[], string[]]>([
  ['two own faults', [soon, soon], []],
  ['three in a row, and one more', [soon, soon, soon, soon], [WHY]],
  ['one that ended well between them', [soon, soon, [undefined, 1], soon], []],
  ['one that went on for a while between them', [soon, soon, ['TrainerDied', 200], soon], []],
  // Not the worker's doing.
  ['outages', Array<Step>(3).fill(['PolicyServerUnavailable', 1]), []],
  ['preemptions', Array<Step>(3).fill(['WorkerShutdown', 1]), []],
  ['bad jobs', Array<Step>(3).fill(['BadJob', 1]), []],
])('whether a worker is faulty: %s', async (_what, steps, why) => {
  const said: string[] = [];
  let time = 0;
  const train = async ([type, seconds]: Step) => {
    time += 1000 * seconds;
    if (type) throw ApplicationFailure.nonRetryable('no CUDA device', type);
  };
  const counted = stoppingWhenFaulty({ train }, { onFaulty: (one) => void said.push(one), now: () => time });
  for (const step of steps) await counted.train(step).catch(() => undefined);
  expect(said).toEqual(why);
});
