/**
 * Measures the cost of durability in one run on a real Temporal server:
 *
 *   node -r ./test/support/register.cjs bench/campaign.ts
 *
 * `loop`: a campaign against a bare loop over the same batches of rollouts at 50 ms of policy latency (wanted: at most 1.05 times as long).
 * `schedule`: N capabilities on M gpu slots against the ideal schedule of their trainings (at most 1.10).
 * `kill`: seconds from the kill of a gpu worker to its step on another, at the smallest heartbeat limit.
 * Activities other than rollouts and trainings do nothing. Prints one JSON object for each part.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { Context } from '@temporalio/activity';
import { NativeConnection, Worker } from '@temporalio/worker';
import type { RollOutInput } from '../src/activities/types';
import { openFolderStore } from '../src/store/open-store';
import { longQueue } from '../src/domain/work';
import { createShop } from '../examples/shop/target/shop';
import { rollOut } from '../src/rollout/engine';
import { scriptedPolicy } from '../test/support/scripted-policy';
import { shopAgent } from '../test/support/shop-agent';
import { bothOf, dataConverter, devServer, queues, quiet, start, workflowBundle } from '../test/workflows/environment';
import { type Activities, artifact, config, fakeActivities } from '../test/workflows/fake-activities';

const folder = mkdtempSync(join(tmpdir(), 'bench-campaign-'));
const print = (part: object) => console.log(JSON.stringify({ bench: 'campaign', ...part }));
const secondsSince = (begun: number) => (performance.now() - begun) / 1000;
const rounded = (value: number) => Number(value.toPrecision(4));

/** Runs `body` beside a control worker, a rollouts worker and a gpu worker of `gpus` slots. */
async function withWorkers<T>(
  env: TestWorkflowEnvironment,
  { activities, gpus }: { activities: Activities; gpus: number },
  body: () => Promise<T>,
): Promise<T> {
  const make = (taskQueue: string, more: object) =>
    Worker.create({ connection: env.nativeConnection, dataConverter, taskQueue, activities, ...more });
  const workers = await Promise.all([
    make(queues.control, { workflowBundle: await workflowBundle() }),
    make(longQueue(queues.control), {}),
    // One batch at a time, as in the bare loop.
    ...bothOf(queues.rollouts).map((queue) => make(queue, { maxConcurrentActivityTaskExecutions: 1 })),
    ...(gpus > 0 ? [make(queues.gpu, { maxConcurrentActivityTaskExecutions: gpus })] : []),
  ]);
  return workers.reduceRight<() => Promise<T>>((inner, worker) => () => worker.runUntil(inner), body)();
}

const selects =
  (names: readonly string[]): Activities['select'] =>
  async () => ({
    ref: artifact('selection'),
    selected: names.map((name) => ({ candidate: { name, definition: name, examples: [] }, votes: 10 })),
  });

const LATENCY_MS = 50;
const TASKS = 100;
/** Gives the campaign as many rollouts as the demo, since the cost of a workflow step does not depend on their number. */
const ATTEMPTS = 12;
const CONCURRENCY = 32;

async function loop(env: TestWorkflowEnvironment): Promise<void> {
  const agent = shopAgent({ lack: 0.3 });
  const client = scriptedPolicy(async (request) => {
    await sleep(LATENCY_MS);
    return (await agent.sample(request)).message;
  });
  let batches = 0;
  async function playBatch(title: string) {
    const batch = await rollOut({
      ...{ environment: createShop(), policy: { base: 'base@1', adapters: [] }, client },
      tasks: Array.from({ length: TASKS }, (_, n) => `train-${n}`),
      ...{ attempts: ATTEMPTS, concurrency: CONCURRENCY, sampling: { temperature: 1, topP: 1, maxTokens: 48 } },
      // Each batch has a store of its own: none finds the rollouts of another.
      store: openFolderStore(join(folder, String(batches++))),
      ...{ seed: 1, purpose: 'test', title, maxAttempts: 1, campaign: 'bench' },
    });
    return batch.summary;
  }
  const played: string[] = [];
  const { activities } = fakeActivities({
    rollOut: (input: RollOutInput) => {
      played.push(input.title);
      return playBatch(input.title);
    },
    select: selects(['one']),
  });
  const campaignSeconds = await withWorkers(env, { activities, gpus: 1 }, async () => {
    const begun = performance.now();
    await (await start(env, { campaign: config({ name: 'loop', arms: [] }) })).result();
    return secondsSince(begun);
  });
  const begun = performance.now();
  for (const title of played) await playBatch(title);
  const loopSeconds = secondsSince(begun);
  print({
    ...{ part: 'loop', ratio: rounded(campaignSeconds / loopSeconds), wanted: 1.05 },
    ...{ batches: played.length, rollouts: played.length * TASKS * ATTEMPTS, latencyMs: LATENCY_MS },
    ...{ campaignSeconds: rounded(campaignSeconds), loopSeconds: rounded(loopSeconds) },
  });
}

const CAPABILITIES = 10;
const GPUS = 3;
const TRAINING_SECONDS = 4;

async function schedule(env: TestWorkflowEnvironment): Promise<void> {
  const ends: number[] = [];
  const { activities: fake } = fakeActivities({
    select: selects(Array.from({ length: CAPABILITIES }, (_, n) => `capability_${n}`)),
  });
  const activities: Activities = {
    ...fake,
    train: async (input) => {
      await sleep(TRAINING_SECONDS * 1000);
      ends.push(performance.now());
      return fake.train(input);
    },
  };
  await withWorkers(env, { activities, gpus: GPUS }, async () =>
    (await start(env, { campaign: config({ name: 'schedule', arms: [] }) })).result(),
  );
  const seconds = TRAINING_SECONDS + (Math.max(...ends) - Math.min(...ends)) / 1000;
  const idealSeconds = TRAINING_SECONDS * Math.ceil(CAPABILITIES / GPUS);
  print({
    ...{
      part: 'schedule',
      ratio: rounded(seconds / idealSeconds),
      wanted: 1.1,
      capabilities: CAPABILITIES,
      gpus: GPUS,
    },
    ...{ seconds: rounded(seconds), idealSeconds },
  });
}

/** The smallest that a campaign file may say. */
const HEARTBEAT_SECONDS = 20;
const WORK_SECONDS = 10;

/** A gpu worker in a process of its own, whose trainings do nothing for a while; it prints a line as each begins. */
async function gpuWorker(address: string): Promise<void> {
  const { activities } = fakeActivities();
  const worker = await Worker.create({
    connection: await NativeConnection.connect({ address }),
    dataConverter,
    taskQueue: queues.gpu,
    activities: {
      ...activities,
      train: async (input: Parameters<Activities['train']>[0]) => {
        console.log('training');
        for (let second = 0; second < WORK_SECONDS; second++) {
          Context.current().heartbeat();
          await sleep(1000);
        }
        return activities.train(input);
      },
    },
    maxConcurrentActivityTaskExecutions: 1,
  });
  await worker.run();
}

function startGpuWorker(address: string): ChildProcess {
  const args = ['-r', './test/support/register.cjs', __filename, address];
  return spawn(process.execPath, args, { cwd: resolve(__dirname, '..'), stdio: ['ignore', 'pipe', 'inherit'] });
}

/** The second worker is there before the first is killed: what passes is the limit on silence and what Temporal takes to give the step away. */
async function kill(env: TestWorkflowEnvironment): Promise<void> {
  const { activities } = fakeActivities({ select: selects(['one']) });
  const campaign = config({ name: 'kill', arms: [], workers: { heartbeatSeconds: HEARTBEAT_SECONDS } });
  const first = startGpuWorker(env.address);
  let second: ChildProcess | undefined;
  try {
    const seconds = await withWorkers(env, { activities, gpus: 0 }, async () => {
      const handle = await start(env, { campaign });
      await once(first.stdout!, 'data');
      second = startGpuWorker(env.address);
      // It takes seconds to start; the first continues meanwhile.
      await sleep(5000);
      first.kill('SIGKILL');
      const begun = performance.now();
      await once(second.stdout!, 'data');
      const passed = secondsSince(begun);
      await handle.terminate();
      return passed;
    });
    print({ part: 'kill', seconds: rounded(seconds), heartbeatSeconds: HEARTBEAT_SECONDS });
  } finally {
    for (const child of [first, second]) child?.kill('SIGKILL');
  }
}

async function main(): Promise<void> {
  quiet();
  const env = await devServer();
  try {
    for (const part of [loop, schedule, kill]) await part(env);
  } finally {
    await env.teardown();
    rmSync(folder, { recursive: true, force: true });
  }
}

const [address] = process.argv.slice(2);
void (address ? gpuWorker(address) : main());
