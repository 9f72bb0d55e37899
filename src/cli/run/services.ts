/** The policy server and the workers of a campaign on one machine: how each is started, when it is ready, how long it may take to end. */
import { join } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import { taskQueues } from '../../domain/work';
import { namespace } from '../options';
import { projectRoot, pythonPath, type Home } from '../project';
import type { ServiceSpec } from './service';

/** Importing torch takes 5-20 s on two busy cores, loading a large model much longer. */
const POLICY_SERVER_READY_SECONDS = 300;
const WORKER_READY_SECONDS = 90;
/** Long enough for a trainer to end its step and write a checkpoint. */
const WORKER_GRACE_SECONDS = 60;
export const SERVER_GRACE_SECONDS = 10;

export const workerProgram = (root = projectRoot): string => join(root, 'dist/workers/worker.js');

/**
 * The embedded policy server. It chooses its port when it is started first and keeps it, so that workers find it again after a restart. `url` is
 * where it listens, once it is ready. `home` keeps what was found of the model.
 */
export function policyServerService({
  model,
  home,
  maxBatch,
  threads,
}: {
  model: string;
  home?: Home;
  maxBatch: number;
  threads: number;
}): { spec: ServiceSpec; url: () => string } {
  let url = new URL('http://127.0.0.1:0');
  const spec: ServiceSpec = {
    name: 'policy-server',
    command: pythonPath(),
    args: async () => [
      ...['-m', 'trainer', 'serve', '--model', model, '--port', url.port],
      ...['--threads', String(threads), '--max-batch', String(maxBatch), '--exit-with-parent'],
    ],
    env: { ...process.env, ...(home && { CAMPAIGN_HOME: home.root }) },
    isReady: async (output) => {
      const listening = output.flatMap((line) => listeningLine.exec(line)?.[1] ?? [])[0];
      if (listening !== undefined) url = new URL(listening);
      return listening !== undefined && (await answersOk(new URL('/health', url).href));
    },
    readySeconds: POLICY_SERVER_READY_SECONDS,
    graceSeconds: SERVER_GRACE_SECONDS,
  };
  return { spec, url: () => url.origin };
}

/** The one JSON line that the policy server writes when it listens. */
const listeningLine = /^\{.*"type"\s*:\s*"listening".*"url"\s*:\s*"([^"]+)"/;

/** One worker for each kind of task queue. */
export function workerServices({
  home,
  workers: { gpuSlots, gpusPerTrainer },
  temporalAddress,
  policyServerUrl,
  pool,
}: {
  home: Home;
  workers: Campaign['workers'];
  temporalAddress: string;
  policyServerUrl: string;
  pool: string;
}): ServiceSpec[] {
  const env = {
    ...process.env,
    TEMPORAL_ADDRESS: temporalAddress,
    TEMPORAL_NAMESPACE: namespace(),
    CAMPAIGN_HOME: home.root,
    POLICY_SERVER_URL: policyServerUrl,
    CAMPAIGN_POOL: pool,
    CAMPAIGN_PYTHON: pythonPath(),
    CAMPAIGN_GPU_SLOTS: String(gpuSlots),
    CAMPAIGN_GPUS_PER_TRAINER: String(gpusPerTrainer),
  };
  return Object.keys(taskQueues).map((queue) => ({
    name: `${queue}-worker`,
    command: process.execPath,
    args: ['--enable-source-maps', workerProgram(), queue],
    env,
    isReady: (output) => output.some((line) => line.startsWith('{') && /"type"\s*:\s*"ready"/.test(line)),
    readySeconds: WORKER_READY_SECONDS,
    graceSeconds: WORKER_GRACE_SECONDS,
    stopsWhenFaulty: true,
  }));
}

export async function answersOk(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2000) })).ok;
  } catch {
    return false;
  }
}
