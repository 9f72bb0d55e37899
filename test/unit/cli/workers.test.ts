/** Workers that are killed while they have a step, or that fail all that they take: processes of their own, on a real server. */
import { ApplicationFailure } from '@temporalio/common';
import { Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join, resolve } from 'node:path';
import { stoppingWhenFaulty } from '../../../src/activities/errors';
import { MAX_FAULTS } from '../../../src/domain/failures';
import { bundled, connectionTo, serverForTests } from '../../workflows/environment';

const root = resolve(__dirname, '../../..');
const env = serverForTests();
let workflowBundle: WorkflowBundleWithSourceMap;
beforeAll(async () => void (workflowBundle = await bundled([], 'test/fixtures/one-step/workflows.ts')));

/** Its input is a pipe that stays open, with whose end it would leave, or `ignore`: /dev/null, which service managers give. */
function startWorker(input: 'pipe' | 'ignore' = 'pipe'): ChildProcess {
  const [preload, program] = ['register.cjs', 'step-worker.ts'].map((name) => join(root, 'test', 'support', name));
  const environment = { ...process.env, TEMPORAL_ADDRESS: env().address };
  return spawn(process.execPath, ['-r', preload!, program!], {
    env: environment,
    stdio: [input, 'pipe', 'pipe'],
  });
}

/** A worker. Resolves when it has begun the step. */
async function busy(step: string, input?: 'ignore'): Promise<ChildProcess> {
  const child = startWorker(input);
  await new Promise<void>((resolve, reject) => {
    child.stdout?.on('data', (text) => String(text).includes(`begins ${step}`) && resolve());
    child.once('exit', (code) => reject(new Error(`the worker ended with ${code}`)));
  });
  return child;
}

async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await once(child, 'exit');
}

const begin = (step: string, workflowId = step) =>
  env().client.workflow.start('campaignRun', { workflowId, taskQueue: 'workflows', args: [step] });

/** Beside a worker for workflows alone, one of which has begun. */
async function withWorkflow(step: string, body: (run: Awaited<ReturnType<typeof begin>>) => Promise<void>) {
  const worker = await Worker.create({ ...connectionTo(env()), taskQueue: 'workflows', workflowBundle });
  await worker.runUntil(async () => {
    const run = await begin(step);
    await body(run);
    await run.terminate().catch(() => undefined);
  });
}

it('a step that kills its worker in every start fails, and other steps go on', () =>
  withWorkflow('killing', async (run) => {
    let starts = 0;
    let isOver = false;
    const children = new Set<ChildProcess>();
    // Two of them, so that one is there while the other starts again.
    const keepTwo = (): void => {
      while (!isOver && children.size < 2) {
        const child = startWorker();
        children.add(child);
        child.stdout?.on('data', (text) => (starts += String(text).split('begins killing').length - 1));
        child.once('exit', () => (children.delete(child), keepTwo()));
      }
    };
    keepTwo();
    const others = Promise.all(
      Array.from({ length: 5 }, async (_, n) => (await begin('fine', `other-${n}`)).result() as Promise<string>),
    );
    try {
      await expect(run.result()).rejects.toMatchObject({ cause: { cause: { type: 'WorkerDied' } } });
      expect(starts).toBe(MAX_FAULTS);
      expect(await others).toEqual(Array(5).fill('fine'));
    } finally {
      isOver = true;
      await Promise.all([...children].map(kill));
    }
  }));

it('a worker that fails all that it takes ends in order with exit code 3 and says why; the step is left to another', () =>
  withWorkflow('failing', async (run) => {
    const child = startWorker();
    let said = '';
    child.stderr?.on('data', (text) => (said += String(text)));
    expect(await once(child, 'exit')).toEqual([3, null]);
    expect(said).toMatch(/takes no more, and ends with exit code 3: 3 steps in a row .* TrainerDied: no CUDA device/);
    expect((await run.describe()).status.name).toBe('RUNNING');
  }));

it('a worker that is told to stop is gone within 30 s, also where its step does not end', () =>
  withWorkflow('endless', async () => {
    const child = await busy('endless');
    const begun = performance.now();
    child.kill('SIGTERM');
    await once(child, 'exit');
    expect(performance.now() - begun).toBeLessThan(30_000);
  }));

it('a worker that a service manager starts stays, as nobody holds its input', () =>
  withWorkflow('waiting', async () => kill(await busy('waiting', 'ignore'))));

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
