/** The services of a campaign on one machine: how each is started, when it is ready, how long it may take to end. */
import { join } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import { searchAttributeNames } from '../../workflows/messages';
import { lazy } from '../lazy';
import { projectRoot, pythonPath, temporalPath, type Home } from '../project';
import type { ServiceSpec } from './service';

const TEMPORAL_READY_SECONDS = 60;
/** Importing torch takes 5-20 s on two busy cores, loading a large model much longer. */
const POLICY_SERVER_READY_SECONDS = 300;
const WORKER_READY_SECONDS = 90;
/** Long enough for a trainer to end its step and write a checkpoint. */
const WORKER_GRACE_SECONDS = 60;
const SERVER_GRACE_SECONDS = 10;

export const workerNames = ['control', 'rollouts', 'gpu'] as const;
export type WorkerName = (typeof workerNames)[number];

export interface Addresses {
  temporalAddress: string;
  namespace: string;
  policyServerUrl: string;
}

/** Temporal's dev server with a database in the home. Write-ahead logging makes it four times as fast on activities. */
export function temporalService({ home, port, uiPort }: { home: Home; port: number; uiPort: number }): ServiceSpec {
  const attributes = Object.values(searchAttributeNames).flatMap((name) => ['--search-attribute', `${name}=Keyword`]);
  const pragmas = ['journal_mode=WAL', 'synchronous=1'].flatMap((pragma) => ['--sqlite-pragma', pragma]);
  // With its four partitions a queue of few slots can leave a task lying for minutes (10 were seen) while its worker polls another one.
  const partitions = ['Read', 'Write'].flatMap((kind) => [
    '--dynamic-config-value',
    `matching.numTaskqueue${kind}Partitions=1`,
  ]);
  return {
    name: 'temporal',
    command: temporalPath() ?? 'temporal',
    args: [
      ...['server', 'start-dev', '--ip', '127.0.0.1', '--log-level', 'warn'],
      ...['--port', String(port), '--ui-port', String(uiPort), '--db-filename', home.temporalDatabase],
      ...pragmas,
      ...attributes,
      ...partitions,
    ],
    cwd: projectRoot,
    env: process.env,
    isReady: () => lazy.temporal().answers({ address: `127.0.0.1:${port}`, namespace: 'default' }),
    readySeconds: TEMPORAL_READY_SECONDS,
    graceSeconds: SERVER_GRACE_SECONDS,
  };
}

/** The embedded policy server, always on the same port, so that workers find it again after a restart. */
export function policyServerService({ campaign, port }: { campaign: Campaign; port: number }): ServiceSpec {
  const { maxBatch, threads } =
    campaign.policyServer.kind === 'embedded' ? campaign.policyServer : { maxBatch: 64, threads: 2 };
  return {
    name: 'policy-server',
    command: pythonPath(),
    args: [
      ...['-m', 'trainer', 'serve', '--model', campaign.baseModel.path, '--port', String(port)],
      ...['--threads', String(threads), '--max-batch', String(maxBatch), '--exit-with-parent'],
    ],
    cwd: projectRoot,
    env: process.env,
    isReady: () => isHealthy(`http://127.0.0.1:${port}`),
    readySeconds: POLICY_SERVER_READY_SECONDS,
    graceSeconds: SERVER_GRACE_SECONDS,
  };
}

export function workerService(worker: {
  name: WorkerName;
  home: Home;
  addresses: Addresses;
  workers: Campaign['workers'];
}): ServiceSpec {
  const { temporalAddress, namespace, policyServerUrl } = worker.addresses;
  return {
    name: `${worker.name}-worker`,
    command: process.execPath,
    args: ['--enable-source-maps', join(projectRoot, 'dist/workers', `${worker.name}.js`)],
    cwd: projectRoot,
    env: {
      ...process.env,
      TEMPORAL_ADDRESS: temporalAddress,
      TEMPORAL_NAMESPACE: namespace,
      CAMPAIGN_HOME: worker.home.root,
      POLICY_SERVER_URL: policyServerUrl,
      CAMPAIGN_PYTHON: pythonPath(),
      CAMPAIGN_GPU_SLOTS: String(worker.workers.gpuSlots),
      CAMPAIGN_GPUS_PER_TRAINER: String(worker.workers.gpusPerTrainer),
    },
    isReady: (output) => output.some((line) => line.startsWith('{') && /"type"\s*:\s*"ready"/.test(line)),
    readySeconds: WORKER_READY_SECONDS,
    graceSeconds: WORKER_GRACE_SECONDS,
  };
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/health`, { signal: AbortSignal.timeout(2000) })).ok;
  } catch {
    return false;
  }
}
