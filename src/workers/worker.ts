/**
 * A worker of one task queue: `node dist/workers/worker.js control|rollouts|gpu [--plugin PACKAGE|PATH]...`. Asked to stop (SIGTERM, SIGINT, or the end of a pipe as stdin, by
 * which it notices that its parent is gone) it cancels its activities, which save what they have, before it leaves.
 */
import './keys';
import { asyncLocalStorage } from '@temporalio/activity';
import { NativeConnection, Runtime, Worker, type WorkerOptions } from '@temporalio/worker';
import { fstatSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createControlActivities, createGpuActivities, createRolloutActivities } from '../activities';
import type { Dependencies, PolicyDependencies } from '../activities/context';
import { EnvironmentPool, hasNamespaces } from '../activities/environments';
import { stoppingWhenFaulty } from '../activities/failures';
import { openStore } from '../artifacts/open-store';
import { workerIdentity } from '../artifacts/place';
import { notingUsage } from '../artifacts/usage';
import { restrictToAllowed } from '../domain/allowed';
import { FAULTY, longQueue, taskQueues } from '../domain/work';
import { createPolicyClient } from '../policy/client';
import { createMerger } from '../policy/merge';
import { pluginPath, withPlugins } from '../plugins';
import type { Registry } from '../registry';
import { clusterAt, isRefusal, whyNot, type TemporalAddress } from '../temporal/connection';
import { bypassProxiesOnLoopback } from '../temporal/loopback';
import { loadTracing } from '../temporal/tracing';
import { dealGpus } from '../training/learner-process';
import { bundlePath, noSpans, pinnedTo } from './bundle';
import { installRuntime } from './telemetry';

/** Connections to the policy server that are kept; a batch's own concurrency is the campaign's. */
const MAX_CONNECTIONS = 256;

const { env } = process;
const baseId = env['CAMPAIGN_BASE_ID'] || undefined;

/** The campaign whose step runs here; undefined outside of steps. Its children's ids begin with its own. */
const campaignOfStep = (): string | undefined =>
  asyncLocalStorage.getStore()?.info.workflowExecution?.workflowId.split('/')[0];

async function dependencies(kinds: Registry): Promise<Dependencies> {
  const home = resolve(env['CAMPAIGN_HOME'] ?? '.campaigns');
  const store = notingUsage(await openStore(home), campaignOfStep);
  const python = env['CAMPAIGN_PYTHON'] ?? resolve('.venv/bin/python');
  return {
    store,
    home,
    python,
    baseId,
    model: env['CAMPAIGN_MODEL'],
    kinds,
    environments: new EnvironmentPool(store, kinds.environments),
  };
}

/** The policy server's key, if it wants one, comes from the environment. */
async function policyDependencies(kinds: Registry): Promise<PolicyDependencies> {
  const deps = await dependencies(kinds);
  const { POLICY_SERVER_URL: url = 'http://127.0.0.1:8000', POLICY_SERVER_API_KEY: apiKey } = env;
  const client = createPolicyClient({
    store: deps.store,
    merge: createMerger(deps),
    url,
    baseId,
    concurrency: MAX_CONNECTIONS,
    ...(apiKey && { apiKey }),
  });
  return { ...deps, client };
}

/** Whose steps this worker takes. */
function pool(): string {
  if (env['CAMPAIGN_POOL']) return env['CAMPAIGN_POOL'];
  throw new Error(
    'CAMPAIGN_POOL is not set: give the campaign file a workers.pool and name it here (docs/machines.md)',
  );
}

const queues: Record<keyof typeof taskQueues, (kinds: Registry) => Promise<void>> = {
  /** Workflows, and the short steps between the long ones. */
  control: async (kinds) => {
    const deps = await dependencies(kinds);
    const taskQueue = taskQueues.control(await deps.store.id());
    const pinned = async () => ({ workerDeploymentOptions: pinnedTo(await readFile(bundlePath, 'utf8'), taskQueue) });
    return runWorker(deps, {
      taskQueue,
      workflowBundle: { codePath: bundlePath },
      ...(env['CAMPAIGN_VERSIONING'] && (await pinned())),
      activities: createControlActivities(deps),
      maxConcurrentActivityTaskExecutions: 4,
      // Label passes read all rollouts at once: a few at a time keep memory bounded.
      longSlots: 4,
    });
  },
  /** Batches of rollouts against the policy server: as many workers as it can feed. */
  rollouts: async (kinds) => {
    const deps = await policyDependencies(kinds);
    return runWorker(deps, {
      taskQueue: taskQueues.rollouts(pool()),
      activities: createRolloutActivities(deps),
      // Each batch brings its own concurrency: two keep the policy server full while one of them drains. A search for a prompt has another
      // slot: it takes long, and waits for its language model much of the time.
      maxConcurrentActivityTaskExecutions: 3,
      longSlots: 3,
    });
  },
  /** One trainer at a time per slot. Start one worker per group of GPUs. */
  gpu: async (kinds) => {
    const slots = Number(env['CAMPAIGN_GPU_SLOTS'] ?? 1);
    const perTrainer = Number(env['CAMPAIGN_GPUS_PER_TRAINER'] ?? 0);
    const gpus = dealGpus({ slots, perTrainer, visible: env['CUDA_VISIBLE_DEVICES'] });
    const server = serverWatch();
    const deps = { ...(await policyDependencies(kinds)), gpus, silentMs: server.silentMs };
    return runWorker(deps, {
      taskQueue: taskQueues.gpu(pool()),
      activities: createGpuActivities(deps),
      maxConcurrentActivityTaskExecutions: slots,
      stopsWhenFaulty: true,
      onConnected: server.begin,
    });
  },
};

/** How often Temporal is asked whether it is there. */
const ASK_MS = 3_000;

/** Knows how long Temporal has not answered, which the worker's own heartbeats do not tell. */
function serverWatch() {
  let answeredAt = performance.now();
  return {
    silentMs: () => performance.now() - answeredAt,
    begin: (connection: NativeConnection) => {
      const ask = async () => {
        const asked = connection.withDeadline(Date.now() + ASK_MS, () => connection.workflowService.getSystemInfo({}));
        await asked.then(() => (answeredAt = performance.now())).catch(() => undefined);
      };
      setInterval(() => void ask(), ASK_MS).unref();
    },
  };
}

interface Options extends Omit<WorkerOptions, 'connection'> {
  activities: object;
  /** How many long steps it takes at once, from the queue of those, beside the others. */
  longSlots?: number;
  /** Whether it leaves, with an exit code of its own, once it fails all that it takes. */
  stopsWhenFaulty?: boolean;
  onConnected?: (connection: NativeConnection) => void;
}

/** A server that is just being started again is waited for. */
const CONNECT_MS = 60_000;

async function connected({ namespace, ...at }: TemporalAddress): Promise<NativeConnection> {
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

/** Runs until it is asked to stop. */
export async function runWorker(
  deps: Pick<PolicyDependencies, 'store' | 'environments'>,
  { activities, longSlots, stopsWhenFaulty, onConnected, ...options }: Options,
): Promise<void> {
  restrictToAllowed();
  const stop = (): void => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  const onFaulty = (why: string): void => {
    Runtime.instance().logger.warn(`this worker takes no more, and ends with exit code ${FAULTY}: ${why}`);
    process.exitCode = FAULTY;
    stop();
  };
  const cluster = clusterAt();
  const connection = await connected(cluster);
  const { plugins, flush } = await loadTracing('campaign-worker');
  onConnected?.(connection);
  const common = {
    connection,
    namespace: cluster.namespace,
    // By which `campaign run` knows whether its process lives.
    identity: workerIdentity(),
    // Cancel activities soon, then wait for them: a trainer's checkpoint takes seconds. Clouds take a machine away 30 s after they say so.
    shutdownGraceTime: '100ms',
    shutdownForceTime: '25s',
    // Progress is seen in the UI within seconds, whatever the heartbeat timeout.
    maxHeartbeatThrottleInterval: '2s',
    // After a crash the server waits this long for the dead worker's cache before it gives its workflows to another.
    stickyQueueScheduleToStartTimeout: '500ms',
    plugins,
    sinks: noSpans,
    activities: stopsWhenFaulty ? stoppingWhenFaulty(activities, { onFaulty }) : activities,
  };
  const { taskQueue } = options;
  const workers = [await Worker.create({ ...common, ...options })];
  if (longSlots !== undefined) {
    const long = { taskQueue: longQueue(taskQueue), maxConcurrentActivityTaskExecutions: longSlots };
    workers.push(await Worker.create({ ...common, ...long }));
  }
  // A parent holds the other end of a pipe. A service manager gives /dev/null, whose end says nothing.
  if (!fstatSync(0).isCharacterDevice()) process.stdin.once('end', stop).resume();
  // One that breaks takes the other with it: the connection closes once nobody holds it.
  const running = workers.map((worker) => worker.run().finally(stop));
  const store = await deps.store.id();
  const { buildId } = options.workerDeploymentOptions?.version ?? {};
  const ready = { type: 'ready', taskQueue, store, ...(baseId && { baseId }), ...(buildId && { buildId }) };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
  try {
    await Promise.all(running);
  } finally {
    await Promise.allSettled(running);
    await deps.environments.close();
    await connection.close();
    await flush();
    process.stdin.destroy();
  }
}

/** Ends the process with its error when the worker can't start or breaks. */
export function main(run: () => Promise<void>): void {
  bypassProxiesOnLoopback();
  run().catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  });
}

if (require.main === module) {
  main(async () => {
    const options = { plugin: { type: 'string', multiple: true } } as const;
    const { positionals, values } = parseArgs({ options, allowPositionals: true });
    const [queue = ''] = positionals;
    if (!(queue in queues)) throw new Error(`no task queue "${queue}": name one of ${Object.keys(queues).join(', ')}`);
    const kinds = withPlugins((values.plugin ?? []).map((named) => pluginPath(named, process.cwd())));
    installRuntime();
    if (!hasNamespaces())
      Runtime.instance().logger.warn(
        'no PID namespace can be made here: programs of targets see the processes of this user',
      );
    await queues[queue as keyof typeof queues](kinds);
  });
}
