/** The policy server and the workers of a campaign on one machine: how each is started, when it is ready, how long it may take to end. */
import { join } from 'node:path';
import { projectRoot } from '../../store/project-root';
import { ALLOWED_FILE } from '../../domain/allowed';
import type { Campaign } from '../../domain/campaign';
import { kindOf } from '../../domain/kinds';
import { isSecret, splitVariables } from '../../domain/secrets';
import { type QueueName, taskQueues } from '../../domain/work';
import { programEnvironment } from '../../policy/python';
import { baseFolder } from '../../policy/hub';
import { registry } from '../../registry';
import { pythonPath, type Home } from '../project';
import { allowedIn, variablesIn } from './allowed';
import type { ServiceSpec } from './service';

/** The one JSON line that the policy server writes when it listens. */
const listeningLine = /^\{.*"type"\s*:\s*"listening".*"url"\s*:\s*"([^"]+)"/;
const workerReadyLine = /^\{.*"type"\s*:\s*"ready"/;

/**
 * The embedded policy server. It chooses its port when it is started first and keeps it, so that workers find it again after a restart. `url` is
 * where it listens, once it is ready. `home` keeps what was found of the model.
 */
export function policyServerService(o: {
  model: string;
  home?: Home;
  maxBatch: number;
  threads: number;
  dtype: string;
}): {
  spec: ServiceSpec;
  url: () => string;
} {
  let url = new URL('http://127.0.0.1:0');
  const spec: ServiceSpec = {
    name: 'policy-server',
    command: pythonPath(),
    args: () => [
      ...['-m', 'trainer', 'serve', '--model', o.model, '--port', url.port],
      ...['--threads', String(o.threads), '--max-batch', String(o.maxBatch), '--dtype', o.dtype, '--exit-with-parent'],
    ],
    env: { ...programEnvironment(), ...(o.home && { CAMPAIGN_HOME: o.home.root }) },
    keys: picked((name) => name === POLICY_KEY || /^AWS_|^CAMPAIGN_STORE$/.test(name)),
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
  /** Environment variables with Temporal's address. */
  variables: NodeJS.ProcessEnv;
  policyServerUrl: string;
  pool: string;
  campaign: Campaign;
  /** Paths of the plug-ins that the workers load. */
  plugins: readonly string[];
}): ServiceSpec[] {
  const own = {
    ...o.variables,
    CAMPAIGN_HOME: o.home.root,
    [ALLOWED_FILE]: o.home.allowed,
    POLICY_SERVER_URL: o.policyServerUrl,
    CAMPAIGN_POOL: o.pool,
    CAMPAIGN_MODEL: baseFolder(o.campaign.baseModel),
    CAMPAIGN_PYTHON: pythonPath(),
    CAMPAIGN_GPU_SLOTS: String(o.campaign.workers.gpuSlots),
    CAMPAIGN_GPUS_PER_TRAINER: String(o.campaign.workers.gpusPerTrainer),
  };
  return queueNames.map((queue, n) => ({
    ...splitVariables({ ...picked(isFor(queue, o)), ...own, ...metricsAddress(n) }),
    name: `${queue}-worker`,
    command: process.execPath,
    args: () => [
      ...[join(projectRoot, 'bin/campaign'), 'worker', '--queues', queue],
      ...o.plugins.flatMap((path) => ['--plugin', path]),
    ],
    isReady: (output) => output.some((line) => workerReadyLine.test(line)),
    readySeconds: 90,
    // Long enough for a trainer to end its step and write a checkpoint.
    graceSeconds: 60,
  }));
}

const queueNames = Object.keys(taskQueues) as QueueName[];
const POLICY_KEY = 'POLICY_SERVER_API_KEY';
/** Key variables of Temporal, the store and the trace exporter, which every worker uses. */
const SHARED = /^(TEMPORAL|AWS|OTEL)_|^CAMPAIGN_STORE$/;

const picked = (chosen: (name: string) => boolean): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => chosen(name)));

const namesOf = (entries: readonly string[]): string[] => entries.map((entry) => entry.split('=')[0]!);

/** Returns whether a queue's worker gets a variable: no key that only the steps of other queues use, or none at all. */
function isFor(queue: QueueName, { campaign, home }: { campaign: Campaign; home: Home }): (name: string) => boolean {
  const { target, router, arms } = campaign;
  const models = arms.map((arm) => kindOf(registry.arms, arm).languageModel?.(arm, campaign));
  const all = namesOf(variablesIn(campaign));
  const [playing, policy] = [namesOf(variablesIn([target, router, arms, models])), [POLICY_KEY]];
  const used = {
    control: all,
    rollouts: [...playing, ...policy],
    gpu: [...playing, ...policy, 'TINKER_API_KEY', 'WANDB_API_KEY'],
  }[queue];
  // Campaigns of the home that run share the workers.
  const others = allowedIn(home).flatMap(({ variables }) => namesOf(variables));
  return (name) =>
    SHARED.test(name) || used.includes(name) || (!all.includes(name) && (others.includes(name) || !isSecret(name)));
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
