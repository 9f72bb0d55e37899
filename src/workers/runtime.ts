/**
 * What the three worker programs share. Invariant: a worker that is asked to stop (SIGTERM, SIGINT, or end of file on stdin, which is how
 * it notices that its parent is gone) cancels its activities, which save what they have, before it leaves.
 */
import { NativeConnection, Worker, type WorkerOptions } from '@temporalio/worker';
import { resolve } from 'node:path';
import { openFolderStore } from '../artifacts/folder-store';
import { workerIdentity } from '../artifacts/place';
import type { Dependencies, PolicyDependencies } from '../activities/context';
import { EnvironmentPool } from '../activities/environments';
import { createPolicyClient } from '../policy/client';
import { createMerger, type Merge } from '../policy/merge';
import { registry } from '../registry';

/** Connections to the policy server that are kept; a batch's own concurrency is the campaign's. */
const MAX_CONNECTIONS = 256;

/** A worker's settings, from the environment. */
export function settings() {
  const env = process.env;
  return {
    address: env['TEMPORAL_ADDRESS'] ?? '127.0.0.1:7233',
    namespace: env['TEMPORAL_NAMESPACE'] ?? 'default',
    home: resolve(env['CAMPAIGN_HOME'] ?? '.campaigns'),
    python: env['CAMPAIGN_PYTHON'] ?? resolve('.venv/bin/python'),
    policyServerUrl: env['POLICY_SERVER_URL'] ?? 'http://127.0.0.1:8000',
    pool: env['CAMPAIGN_POOL'],
    baseId: env['CAMPAIGN_BASE_ID'] || undefined,
    gpuSlots: Number(env['CAMPAIGN_GPU_SLOTS'] ?? 1),
    gpusPerTrainer: Number(env['CAMPAIGN_GPUS_PER_TRAINER'] ?? 0),
  };
}

export function dependencies(): Dependencies {
  const { home, python, baseId } = settings();
  const store = openFolderStore(resolve(home, 'artifacts'));
  const environments = new EnvironmentPool(store, registry.environments);
  return { store, home, python, baseId, kinds: registry, environments };
}

/** The policy server's key, if it wants one, comes from the environment. */
export function policyDependencies(): PolicyDependencies & { merge: Merge } {
  const deps = dependencies();
  const merge = createMerger(deps);
  const apiKey = process.env['POLICY_SERVER_API_KEY'];
  const client = createPolicyClient({
    store: deps.store,
    merge,
    url: settings().policyServerUrl,
    baseId: deps.baseId,
    concurrency: MAX_CONNECTIONS,
    ...(apiKey && { apiKey }),
  });
  return { ...deps, client, merge };
}

/** Whose steps a worker of a pool takes. */
export function poolOfWorker(): string {
  const { pool } = settings();
  if (pool) return pool;
  throw new Error(
    'CAMPAIGN_POOL is not set: give the campaign file a workers.pool and name it here (docs/operations.md)',
  );
}

/** Exit code of a worker that stopped by itself, since it failed all that it took. */
const FAULTY = 3;

/** Runs until it is asked to stop, or `faulty` says why it should. `options` holds what the worker is for. */
export async function runWorker(
  deps: Dependencies,
  options: Omit<WorkerOptions, 'connection'>,
  faulty?: Promise<string>,
): Promise<void> {
  const { address, namespace, baseId } = settings();
  const connection = await NativeConnection.connect({ address });
  const worker = await Worker.create({
    connection,
    namespace,
    // By which `campaign run` knows whether its process lives.
    identity: workerIdentity(),
    // Cancel activities soon, then wait for them: a trainer's checkpoint takes seconds.
    shutdownGraceTime: '100ms',
    shutdownForceTime: '90s',
    // Progress is seen in the UI within seconds, whatever the heartbeat timeout.
    maxHeartbeatThrottleInterval: '2s',
    // After a crash the server waits this long for the dead worker's cache before it gives its workflows to another.
    stickyQueueScheduleToStartTimeout: '500ms',
    ...options,
  });
  const stop = (): void => {
    if (worker.getState() === 'RUNNING') worker.shutdown();
  };
  process.stdin.once('end', stop);
  void faulty?.then((why) => {
    process.stderr.write(`this worker takes no more, and ends with exit code ${FAULTY}: ${why}\n`);
    process.exitCode = FAULTY;
    stop();
  });
  process.stdin.resume();
  const running = worker.run();
  const ready = {
    type: 'ready',
    taskQueue: options.taskQueue,
    store: await deps.store.id(),
    ...(baseId && { baseId }),
  };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
  try {
    await running;
  } finally {
    await deps.environments.close();
    await connection.close();
    process.stdin.destroy();
  }
}

/** Ends the process with one line when the worker can't start or breaks. */
export function main(run: () => Promise<void>): void {
  run().catch((error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
    process.exit(1);
  });
}
