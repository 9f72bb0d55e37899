/** A Temporal server for workflow tests and the workers of a campaign on it. */
import type { WorkflowHandle } from '@temporalio/client';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { temporal } from '@temporalio/proto';
import {
  bundleWorkflowCode,
  DefaultLogger,
  Runtime,
  Worker,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { longQueue, taskQueues } from '../../src/domain/work';
import { createDataConverter } from '../../src/temporal/payload-storage';
import { type CampaignInput, searchAttributes, workflowTypes } from '../../src/workflows/messages';
import type { campaignRun } from '../../src/workflows';
import { shared } from '../support/services';
import { POOL, type Activities } from './fake-activities';

const repository = resolve(__dirname, '..', '..');
const venv = join(repository, '.venv', 'bin');

export function quiet(): void {
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging: { filter: 'ERROR' } } });
}

const payloads = new Map<string, string>();
/** That of all clients, workers and replayers of tests. */
export const dataConverter = createDataConverter(() => ({
  files: {
    create: async (path, text) => !payloads.has(path) && Boolean(payloads.set(path, text)),
    read: async (path) => payloads.get(path),
    remove: async (path) => void payloads.delete(path),
  },
}));

/** Id of a store that nobody opens. */
export const STORE = 'store';

const MAX_STARTS = 3;
const START_MS = 20_000;

/**
 * The server's port is drawn at random: when another process takes it before the server listens, it is started again on another one. So is a server
 * that a busy machine lets begin too late.
 */
async function started(create: () => Promise<TestWorkflowEnvironment>): Promise<TestWorkflowEnvironment> {
  for (let starts = 1; ; starts++) {
    let timer: NodeJS.Timeout | undefined;
    // Where the other process accepts connections, starting does not fail: it waits for ever.
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no test server after ${START_MS / 1000} s`)), START_MS);
    });
    try {
      return await Promise.race([create(), late]);
    } catch (error) {
      if (starts === MAX_STARTS) throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}

export const timeSkipping = async (): Promise<TestWorkflowEnvironment> => {
  const server = { executable: { type: 'existing-path' as const, path: resolve(venv, 'temporal-test-server') } };
  return withAttributes(
    await started(() => TestWorkflowEnvironment.createTimeSkipping({ server, client: { dataConverter } })),
  );
};

/** Namespaces of the shared dev server: one for each test file. */
export const namespaces = Array.from({ length: 30 }, (_, n) => `file-${n}`);

/** Starts Temporal's dev server, as src/cli/services/temporal-server.ts does. It runs in real time and describes pending activities. */
export const startDevServer = (): Promise<TestWorkflowEnvironment> =>
  started(() =>
    TestWorkflowEnvironment.createLocal({
      client: { dataConverter },
      server: {
        executable: { type: 'existing-path', path: resolve(venv, 'temporal') },
        log: { format: 'pretty', level: 'error' },
        extraArgs: [
          ...namespaces.flatMap((name) => ['--namespace', name]),
          ...Object.values(searchAttributes).flatMap(({ name }) => ['--search-attribute', `${name}=Keyword`]),
          ...['numTaskqueueReadPartitions=1', 'numTaskqueueWritePartitions=1', 'enableFairness=true'].flatMap(
            (value) => ['--dynamic-config-value', `matching.${value}`],
          ),
        ],
      },
    }),
  );

/** Connects a test file to the dev server of all files, in a namespace of its own, which commands and workers that the file starts use too. */
export async function devServer(): Promise<TestWorkflowEnvironment> {
  const server = await shared<{ address: string; namespace: string }>('temporal');
  if (!server) return startDevServer();
  process.env['TEMPORAL_NAMESPACE'] = server.namespace;
  return TestWorkflowEnvironment.createFromExistingServer({ ...server, client: { dataConverter } });
}

/** One server for all tests of a file. */
export function serverForTests(open = devServer): () => TestWorkflowEnvironment {
  quiet();
  let env: TestWorkflowEnvironment | undefined;
  beforeAll(async () => void (env = await open()));
  afterAll(() => env?.teardown());
  return () => env!;
}

/** Options of a worker on the server. */
export const connectionTo = ({ nativeConnection, namespace = 'default' }: TestWorkflowEnvironment) => ({
  connection: nativeConnection,
  namespace,
});

async function withAttributes(env: TestWorkflowEnvironment): Promise<TestWorkflowEnvironment> {
  const keyword = temporal.api.enums.v1.IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD;
  await env.connection.operatorService.addSearchAttributes({
    namespace: env.namespace ?? 'default',
    searchAttributes: Object.fromEntries(Object.values(searchAttributes).map(({ name }) => [name, keyword])),
  });
  return env;
}

/** The bundle of the workflows, which takes seconds to make. */
export const workflowBundle = async (): Promise<{ codePath: string }> =>
  (await shared<{ codePath: string }>('bundle')) ?? makeWorkflowBundle();

/** Makes the bundle unless there is one of the same sources. */
export async function makeWorkflowBundle(): Promise<{ codePath: string }> {
  const hash = createHash('sha256').update(readFileSync(join(repository, 'package-lock.json')));
  for (const folder of ['domain', 'temporal', 'workflows'].map((name) => join(repository, 'src', name)))
    for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort())
      if (file.endsWith('.ts')) hash.update(file).update(readFileSync(join(folder, file)));
  const codePath = join(tmpdir(), `campaign-workflows-${hash.digest('hex').slice(0, 16)}.js`);
  if (existsSync(codePath)) return { codePath };
  const made = `${codePath}.${process.pid}`;
  writeFileSync(made, (await bundled()).code);
  renameSync(made, codePath);
  return { codePath };
}

/** `interceptors`: files of them; `workflows`: the file that is bundled. */
export const bundled = (
  interceptors: string[] = [],
  workflows = 'src/workflows/index.ts',
): Promise<WorkflowBundleWithSourceMap> =>
  bundleWorkflowCode({
    workflowsPath: join(repository, workflows),
    workflowInterceptorModules: interceptors,
    logger: new DefaultLogger('ERROR'),
  });

/** Of campaigns whose activities are not real: by kind of worker. */
export const queues = {
  control: taskQueues.control(STORE),
  rollouts: taskQueues.rollouts(POOL),
  gpu: taskQueues.gpu(POOL),
} as const;

/** What a worker takes steps from: the long ones too. */
export const bothOf = (taskQueue: string): string[] => [taskQueue, longQueue(taskQueue)];

/** Runs `body` beside workers on all queues. */
export async function withWorkers<T>(
  env: TestWorkflowEnvironment,
  activities: Activities,
  body: () => Promise<T>,
): Promise<T> {
  const options = { ...connectionTo(env), dataConverter };
  const control = await Worker.create({
    ...options,
    taskQueue: queues.control,
    workflowBundle: await workflowBundle(),
    activities,
  });
  const others = await Promise.all(
    [longQueue(queues.control), ...bothOf(queues.rollouts), queues.gpu].map((taskQueue) =>
      // The answer to a heartbeat is how a running activity hears that it is cancelled.
      Worker.create({ ...options, taskQueue, activities, maxHeartbeatThrottleInterval: '1s' }),
    ),
  );
  return [control, ...others].reduce<() => Promise<T>>((inner, worker) => () => worker.runUntil(inner), body)();
}

export const start = (
  env: TestWorkflowEnvironment,
  input: CampaignInput,
  taskQueue: string = queues.control,
): Promise<WorkflowHandle<typeof campaignRun>> =>
  env.client.workflow.start<typeof campaignRun>(workflowTypes.campaign, {
    workflowId: input.campaign.name,
    taskQueue,
    args: [input],
  });
