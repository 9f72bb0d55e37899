/** The services of a campaign on one machine: how each is started, when it is ready, how long it may take to end. */
import { join } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import { taskQueues } from '../../domain/work';
import { projectRoot, pythonPath, type Home } from '../project';
import type { ServiceSpec } from './service';

/** Importing torch takes 5-20 s on two busy cores, loading a large model much longer. */
const POLICY_SERVER_READY_SECONDS = 300;
const WORKER_READY_SECONDS = 90;
/** Long enough for a trainer to end its step and write a checkpoint. */
const WORKER_GRACE_SECONDS = 60;
export const SERVER_GRACE_SECONDS = 10;

/** One worker a kind of task queue. */
type WorkerName = keyof typeof taskQueues;
export const workerNames = Object.keys(taskQueues) as WorkerName[];
export const workerProgram = (name: WorkerName, root = projectRoot): string => join(root, 'dist/workers', `${name}.js`);

interface Addresses {
  temporalAddress: string;
  namespace: string;
  policyServerUrl: string;
  pool: string;
}

/**
 * The embedded policy server. It chooses its port when it is started first and keeps it, so that workers find it again after a restart.
 * `url` is where it listens, once it is ready.
 */
export function policyServerService({
  model,
  home,
  maxBatch,
  threads,
}: {
  model: string;
  /** It keeps what was found of the model; without it nothing is kept. */
  home?: Home;
  maxBatch: number;
  threads: number;
}): {
  spec: ServiceSpec;
  url: () => string;
} {
  let url = new URL('http://127.0.0.1:0');
  const spec: ServiceSpec = {
    name: 'policy-server',
    command: pythonPath(),
    args: () =>
      Promise.resolve([
        ...['-m', 'trainer', 'serve', '--model', model, '--port', url.port],
        ...['--threads', String(threads), '--max-batch', String(maxBatch), '--exit-with-parent'],
      ]),
    cwd: projectRoot,
    env: { ...process.env, ...(home && { CAMPAIGN_HOME: home.root }) },
    isReady: async (output) => {
      const listening = output.map(listeningUrl).find((found) => found !== undefined);
      if (listening !== undefined) url = new URL(listening);
      return listening !== undefined && (await answersOk(new URL('/health', url).href));
    },
    readySeconds: POLICY_SERVER_READY_SECONDS,
    graceSeconds: SERVER_GRACE_SECONDS,
  };
  return { spec, url: () => url.origin };
}

export function workerService(worker: {
  name: WorkerName;
  home: Home;
  addresses: Addresses;
  workers: Campaign['workers'];
}): ServiceSpec {
  const { temporalAddress, namespace, policyServerUrl, pool } = worker.addresses;
  return {
    name: `${worker.name}-worker`,
    command: process.execPath,
    args: ['--enable-source-maps', workerProgram(worker.name)],
    cwd: projectRoot,
    env: {
      ...process.env,
      TEMPORAL_ADDRESS: temporalAddress,
      TEMPORAL_NAMESPACE: namespace,
      CAMPAIGN_HOME: worker.home.root,
      POLICY_SERVER_URL: policyServerUrl,
      CAMPAIGN_POOL: pool,
      CAMPAIGN_PYTHON: pythonPath(),
      CAMPAIGN_GPU_SLOTS: String(worker.workers.gpuSlots),
      CAMPAIGN_GPUS_PER_TRAINER: String(worker.workers.gpusPerTrainer),
    },
    isReady: (output) => output.some((line) => line.startsWith('{') && /"type"\s*:\s*"ready"/.test(line)),
    readySeconds: WORKER_READY_SECONDS,
    graceSeconds: WORKER_GRACE_SECONDS,
    stopsWhenFaulty: true,
  };
}

/** The address in the one JSON line that the policy server writes when it listens. */
const listeningUrl = (line: string): string | undefined =>
  /^\{.*"type"\s*:\s*"listening".*"url"\s*:\s*"([^"]+)"/.exec(line)?.[1];

export async function answersOk(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2000) })).ok;
  } catch {
    return false;
  }
}
