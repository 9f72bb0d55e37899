/** The policy server and the workers of a campaign on one machine: how each is started, when it is ready, how long it may take to end. */
import { join } from 'node:path';
import { projectRoot } from '../../artifacts/project-root';
import { ALLOWED_FILE } from '../../domain/allowed';
import type { Campaign } from '../../domain/campaign';
import { taskQueues } from '../../domain/work';
import { pythonEnvironment } from '../../policy/python';
import { pythonPath, type Home } from '../project';
import type { ServiceSpec } from './service';

export const workerProgram = (root = projectRoot): string => join(root, 'dist/workers/worker.js');

/** The one JSON line that the policy server writes when it listens. */
const listeningLine = /^\{.*"type"\s*:\s*"listening".*"url"\s*:\s*"([^"]+)"/;
const workerReadyLine = /^\{.*"type"\s*:\s*"ready"/;

/**
 * The embedded policy server. It chooses its port when it is started first and keeps it, so that workers find it again after a restart. `url` is
 * where it listens, once it is ready. `home` keeps what was found of the model.
 */
export function policyServerService(o: { model: string; home?: Home; maxBatch: number; threads: number }): {
  spec: ServiceSpec;
  url: () => string;
} {
  let url = new URL('http://127.0.0.1:0');
  const spec: ServiceSpec = {
    name: 'policy-server',
    command: pythonPath(),
    args: () => [
      ...['-m', 'trainer', 'serve', '--model', o.model, '--port', url.port],
      ...['--threads', String(o.threads), '--max-batch', String(o.maxBatch), '--exit-with-parent'],
    ],
    env: { ...pythonEnvironment(), ...(o.home && { CAMPAIGN_HOME: o.home.root }) },
    isReady: async (output) => {
      const listening = output.flatMap((line) => listeningLine.exec(line)?.[1] ?? [])[0];
      if (listening !== undefined) url = new URL(listening);
      return listening !== undefined && (await answersOk(new URL('/health', url).href));
    },
    // Importing torch takes 5-20 s on two busy cores, loading a large model much longer.
    readySeconds: 300,
    graceSeconds: 10,
  };
  return { spec, url: () => url.origin };
}

/** One worker for each kind of task queue. */
export function workerServices(o: {
  home: Home;
  workers: Campaign['workers'];
  /** Where Temporal is. */
  variables: NodeJS.ProcessEnv;
  policyServerUrl: string;
  pool: string;
  /** The base model's folder. */
  model: string;
}): ServiceSpec[] {
  const env = {
    ...process.env,
    ...o.variables,
    CAMPAIGN_HOME: o.home.root,
    [ALLOWED_FILE]: o.home.allowed,
    POLICY_SERVER_URL: o.policyServerUrl,
    CAMPAIGN_POOL: o.pool,
    CAMPAIGN_MODEL: o.model,
    CAMPAIGN_PYTHON: pythonPath(),
    CAMPAIGN_GPU_SLOTS: String(o.workers.gpuSlots),
    CAMPAIGN_GPUS_PER_TRAINER: String(o.workers.gpusPerTrainer),
    CAMPAIGN_SHARD_BASE: o.workers.shardBase ? '1' : '',
    // A campaign that stays with its code would wait here for a worker that nobody starts any more.
    CAMPAIGN_VERSIONING: '',
  };
  return Object.keys(taskQueues).map((queue, n) => ({
    name: `${queue}-worker`,
    command: process.execPath,
    args: () => ['--enable-source-maps', workerProgram(), queue],
    env: { ...env, ...metricsAddress(n) },
    isReady: (output) => output.some((line) => workerReadyLine.test(line)),
    readySeconds: 90,
    // Long enough for a trainer to end its step and write a checkpoint.
    graceSeconds: 60,
    stopsWhenFaulty: true,
  }));
}

/** On one machine each worker has a port of its own: that of CAMPAIGN_METRICS, and those that follow. */
function metricsAddress(n: number): NodeJS.ProcessEnv {
  const [, host, port] = /^(.*):(\d+)$/.exec(process.env['CAMPAIGN_METRICS'] ?? '') ?? [];
  return port === undefined ? {} : { CAMPAIGN_METRICS: `${host}:${Number(port) + n}` };
}

export async function answersOk(url: string): Promise<boolean> {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2000) })).ok;
  } catch {
    return false;
  }
}
