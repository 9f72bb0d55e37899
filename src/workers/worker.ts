/**
 * The worker program (`campaign worker --queues LIST`): one process with a connection to Temporal and a worker for each task queue. It stops at
 * SIGTERM, SIGINT or the end of its stdin, which a parent holds open: it cancels its activities, waits until they have saved, and returns.
 */
import { NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker';
import { fstatSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createControlActivities, createGpuActivities, createRolloutActivities } from '../activities';
import type { Dependencies, PolicyDependencies } from '../activities/context';
import { EnvironmentPool, hasNamespaces } from '../activities/environments';
import { stoppingWhenFaulty } from '../activities/errors';
import { noteAnswer } from '../activities/heartbeat';
import { withDeadline } from '../store/deadline';
import { openStore } from '../store/open-store';
import { restrictToAllowed } from '../domain/allowed';
import { FAULTY, longQueue, type QueueName, taskQueues } from '../domain/work';
import { createPolicyClient } from '../policy/client';
import { createMerger } from '../policy/merge';
import { clientSettings } from '../policy/server';
import { pluginPath, withPlugins } from '../plugins';
import { isRefusal, whyNot, type TemporalAddress } from '../temporal/connection';
import { createDataConverter } from '../temporal/payload-storage';
import { loadTracing } from '../temporal/tracing';
import { dealGpus } from '../training/learner-process';
import { noSpans } from './bundle';
import { installRuntime } from './telemetry';
import { makeCurrent, shortVersion, type Version, versionsToServe } from './versions';

/** Connections to the policy server that are kept; a batch's own concurrency is the campaign's. */
const MAX_CONNECTIONS = 256;

const { env } = process;

export interface WorkerSettings {
  home: string;
  python: string;
  queues: QueueName[];
  /** Packages or paths of plug-ins. */
  plugins: string[];
  cluster: TemporalAddress;
}

/** Runs workers of the named queues until they are asked to stop. The other settings are variables (docs/machines.md). */
export async function runWorkers({ home, python, queues, plugins, cluster }: WorkerSettings): Promise<void> {
  installRuntime();
  if (!hasNamespaces())
    Runtime.instance().logger.warn(
      'no PID namespace can be made here: programs of targets see the processes of this user',
    );
  const kinds = withPlugins(plugins.map((named) => pluginPath(named, process.cwd())));
  const store = withDeadline(await openStore(home));
  const baseId = env['CAMPAIGN_BASE_ID'] || undefined;
  const deps = {
    store,
    home,
    python,
    baseId,
    model: env['CAMPAIGN_MODEL'],
    kinds,
    environments: new EnvironmentPool(store, kinds.environments),
  };
  const server = clientSettings(env['POLICY_SERVER_URL'] ?? 'http://127.0.0.1:8000', MAX_CONNECTIONS);
  const client = createPolicyClient({ ...server, store, merge: createMerger(deps), baseId });
  restrictToAllowed();
  const served = await Promise.all(queues.map((queue) => queueOptions[queue]({ ...deps, client })));
  await serveQueues(deps, served, cluster);
}

/** Returns the pool whose activities this worker takes. */
function pool(): string {
  if (env['CAMPAIGN_POOL']) return env['CAMPAIGN_POOL'];
  throw new Error(
    'CAMPAIGN_POOL is not set: give the campaign file a workers.pool and name it here (docs/machines.md)',
  );
}

interface QueueOptions extends Omit<WorkerOptions, 'connection'> {
  activities: object;
  /** Long activities at once, from a queue of their own, besides the others. */
  longSlots?: number;
  /** The queue has workflows as well: there is a worker for each version that open campaigns need. */
  hasWorkflows?: true;
  /** Ends the process with exit code FAULTY after several activities in a row have failed soon after their start. */
  stopsWhenFaulty?: boolean;
}

const queueOptions: Record<QueueName, (deps: PolicyDependencies) => QueueOptions | Promise<QueueOptions>> = {
  /** Workflows, and the short activities between the long ones. */
  control: async (deps) => ({
    taskQueue: taskQueues.control(await deps.store.id()),
    hasWorkflows: true,
    activities: createControlActivities(deps),
    maxConcurrentActivityTaskExecutions: 4,
    // Label passes read all rollouts at once: a few at a time keep memory bounded.
    longSlots: 4,
  }),
  /** Batches of rollouts against the policy server: as many workers as it can feed. */
  rollouts: (deps) => ({
    taskQueue: taskQueues.rollouts(pool()),
    activities: createRolloutActivities(deps),
    // Each batch brings its own concurrency: two keep the policy server full while one of them drains. A search for a prompt has another
    // slot: it takes long, and waits for its language model much of the time.
    maxConcurrentActivityTaskExecutions: 3,
    longSlots: 3,
  }),
  /** One trainer at a time per slot. Start one worker per group of GPUs. */
  gpu: (deps) => {
    const slots = Number(env['CAMPAIGN_GPU_SLOTS'] ?? 1);
    const perTrainer = Number(env['CAMPAIGN_GPUS_PER_TRAINER'] ?? 0);
    const gpus = dealGpus({ slots, perTrainer, visible: env['CUDA_VISIBLE_DEVICES'] });
    return {
      taskQueue: taskQueues.gpu(pool()),
      activities: createGpuActivities({ ...deps, gpus }),
      maxConcurrentActivityTaskExecutions: slots,
      stopsWhenFaulty: true,
    };
  },
};

/** Interval and deadline of requests that check whether Temporal answers. */
const ASK_MS = 3_000;

/** Activities end once Temporal has not answered for their heartbeat timeout (activities/heartbeat.ts). */
function watchServer(connection: NativeConnection): void {
  const ask = () =>
    connection.withDeadline(Date.now() + ASK_MS, () => connection.workflowService.getSystemInfo({})).then(noteAnswer);
  noteAnswer();
  setInterval(() => void ask().catch(() => undefined), ASK_MS).unref();
}

/** A server that is just being started again is waited for. */
const CONNECT_MS = 60_000;

async function connect({ namespace, ...at }: TemporalAddress): Promise<NativeConnection> {
  const end = performance.now() + CONNECT_MS;
  for (;;) {
    try {
      return await NativeConnection.connect(at);
    } catch (error) {
      if (isRefusal(error) || performance.now() > end)
        throw new Error(await whyNot({ namespace, ...at }, error), { cause: error });
      await sleep(500);
    }
  }
}

/** Runs a worker for each queue, and closes the environments at the end. */
export async function serveQueues(
  { store, environments, baseId }: Pick<Dependencies, 'store' | 'environments' | 'baseId'>,
  queues: QueueOptions[],
  cluster: TemporalAddress,
): Promise<void> {
  const connection = await connect(cluster);
  watchServer(connection);
  const { plugins, flush } = await loadTracing('campaign-worker');
  const at = { connection, namespace: cluster.namespace };
  const workers: Worker[] = [];
  let current: Version | undefined;
  const stop = (): void => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  const onFaulty = (why: string): void => {
    Runtime.instance().logger.warn(`this worker takes no more, and ends with exit code ${FAULTY}: ${why}`);
    process.exitCode = FAULTY;
    stop();
  };
  for (const { activities, longSlots = 0, stopsWhenFaulty, hasWorkflows, ...options } of queues) {
    const common = {
      ...at,
      // Cancel activities soon, then wait for them: a trainer's checkpoint takes seconds. Clouds take a machine away 30 s after they say so.
      shutdownGraceTime: '100ms',
      shutdownForceTime: '25s',
      // Progress is seen in the UI within seconds, whatever the heartbeat timeout.
      maxHeartbeatThrottleInterval: '2s',
      // After a crash the server waits this long for the dead worker's cache before it gives its workflows to another.
      stickyQueueScheduleToStartTimeout: '500ms',
      plugins,
      dataConverter: createDataConverter(() => store),
      sinks: noSpans,
      activities: stopsWhenFaulty ? stoppingWhenFaulty(activities, { onFaulty }) : activities,
    };
    if (!hasWorkflows) workers.push(await Worker.create({ ...common, ...options }));
    else {
      const { versions, missing } = await versionsToServe({ ...at, files: store.files, taskQueue: options.taskQueue });
      for (const id of missing)
        Runtime.instance().logger.warn(
          `open campaigns began on version ${shortVersion(id)} of the workflow code, which the store does not have: \`campaign run FILE --restart\` starts one again on the current version`,
        );
      for (const version of versions) workers.push(await Worker.create({ ...common, ...options, ...version }));
      current = versions[0];
    }
    const long = { taskQueue: longQueue(options.taskQueue), maxConcurrentActivityTaskExecutions: longSlots };
    if (longSlots > 0) workers.push(await Worker.create({ ...common, ...long }));
  }
  // A parent holds the other end of a pipe. A service manager gives /dev/null, whose end says nothing.
  if (!fstatSync(0).isCharacterDevice()) process.stdin.once('end', stop).resume();
  // A worker that fails stops the others: the connection closes after the last one.
  const running = workers.map((worker) => worker.run().finally(stop));
  try {
    // Campaigns are started once the worker is ready, and begin on its version.
    if (current) await Promise.race([makeCurrent(at, current), Promise.all(running)]);
    const ready = {
      type: 'ready',
      taskQueues: queues.map(({ taskQueue }) => taskQueue),
      store: await store.id(),
      ...(baseId && { baseId }),
      ...(current && { version: current.workerDeploymentOptions.version.buildId }),
    };
    process.stdout.write(`${JSON.stringify(ready)}\n`);
    await Promise.all(running);
  } finally {
    await Promise.allSettled(running);
    await environments.close();
    await connection.close();
    await flush();
    process.stdin.destroy();
  }
}
