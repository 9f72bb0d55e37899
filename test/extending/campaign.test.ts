/**
 * The examples in a whole small campaign, for real: an analyst, an arm and a router that are no part of the program are added to the
 * lists of kinds, and everything else takes them for its own.
 */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { bundleWorkflowCode, DefaultLogger, Worker } from '@temporalio/worker';
import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { byLength } from '../../examples/by-length';
import { fixedPrompt } from '../../examples/fixed-prompt';
import { phrases } from '../../examples/phrases';
import { createControlActivities, createGpuActivities, createRolloutActivities } from '../../src/activities';
import { EnvironmentPool } from '../../src/activities/environments';
import { dealGpus } from '../../src/training/learner-process';
import { openFolderStore } from '../../src/artifacts/open-store';
import { loadCampaign } from '../../src/cli/campaign-file';
import { artifactRefSchema } from '../../src/domain/artifacts';
import { type Message, openingOf } from '../../src/domain/messages';
import type { Report } from '../../src/report/model';
import type { ScoredRollout } from '../../src/domain/rollout';
import { longQueue, taskQueues } from '../../src/domain/work';
import { createShop } from '../../examples/shop/target/shop';
import { createPolicyClient, type PolicyClient } from '../../src/policy/client';
import { createMerger, type Merge } from '../../src/policy/merge';
import { withPlugins } from '../../src/plugins';
import { registry, type Registry } from '../../src/registry';
import { played } from '../support/played';
import { readScored } from '../../src/rollout/read';
import { createResolver } from '../../src/rollout/resolve';
import { firstUserMessage, type FittedRouter, fittedRouterSchema } from '../../src/routing/router';
import { reportOf } from '../support/campaign-run';
import { python, startEmbeddedServer } from '../support/embedded-server';
import { shopPlugin } from '../support/kinds';
import { temporaryFolder } from '../support/temporary-folder';
import { devServer, quiet, start } from '../workflows/environment';

jest.setTimeout(5 * 60_000);
quiet();
const root = resolve(__dirname, '..', '..');
const home = temporaryFolder();
const store = openFolderStore(join(home, 'artifacts'));

const programs: Registry = {
  ...registry,
  analysts: [...registry.analysts, phrases],
  routers: [...registry.routers, byLength],
  arms: [...registry.arms, fixedPrompt],
};
const kinds = withPlugins([shopPlugin], programs);
const file = join(root, 'examples', 'campaign.yaml');

let report: Report | undefined;
/** Routed by a fit that sends short and long requests to different options: the campaign's own may be constant. */
let byWords: { median: number; rollouts: ScoredRollout[] } | undefined;

const POOL = 'here';
const controlQueue = async () => taskQueues.control(await store.id());

/** The workers of a campaign in this process, with the real activities. */
async function workers(env: TestWorkflowEnvironment, client: PolicyClient, merge: Merge, model: string) {
  const environments = new EnvironmentPool(store, kinds.environments);
  const deps = { store, home, python, model, kinds, environments, client };
  const gpus = dealGpus({ slots: 1, perTrainer: 0, visible: undefined });
  const workflowBundle = await bundleWorkflowCode({
    workflowsPath: join(__dirname, 'workflows.ts'),
    logger: new DefaultLogger('ERROR'),
  });
  const at = { connection: env.nativeConnection, namespace: env.namespace ?? 'default' };
  const [control, rollouts, gpu] = [await controlQueue(), taskQueues.rollouts(POOL), taskQueues.gpu(POOL)];
  const [short, batches] = [createControlActivities(deps), createRolloutActivities(deps)];
  return Promise.all([
    Worker.create({ ...at, taskQueue: control, workflowBundle, activities: short }),
    Worker.create({ ...at, taskQueue: longQueue(control), activities: short }),
    Worker.create({ ...at, taskQueue: rollouts, activities: batches }),
    Worker.create({ ...at, taskQueue: longQueue(rollouts), activities: batches }),
    Worker.create({ ...at, taskQueue: gpu, activities: createGpuActivities({ ...deps, gpus, merge }) }),
  ]);
}

beforeAll(async () => {
  const loaded = loadCampaign({ file, registry: programs });
  const { path } = loaded.baseModel;
  const [env, server] = await Promise.all([
    devServer(),
    startEmbeddedServer({ model: path, args: ['--threads', '2'] }),
  ]);
  const campaign = { ...loaded, baseModel: { path, id: server.base }, workers: { ...loaded.workers, pool: POOL } };
  const merge = createMerger({ store, python });
  const client = createPolicyClient({
    store,
    merge,
    url: server.url,
    concurrency: 64,
  });
  try {
    const run = await start(env, { campaign }, await controlQueue());
    const all = await workers(env, client, merge, path);
    await all.reduce<() => Promise<unknown>>(
      (body, worker) => () => worker.runUntil(body),
      () => run.result(),
    )();
    report = reportOf({ root: home }, campaign.name);
    if (report.router) byWords = await routeByWords(client, await fittedRouter());
  } finally {
    client.close();
    await Promise.all([server.stop(), env.teardown()]);
  }
});

/** The router that the campaign fitted. */
async function fittedRouter(): Promise<FittedRouter> {
  const [ref] = report?.router?.crossValidation.routed.from ?? [];
  return fittedRouterSchema.parse(JSON.parse(String(await store.read(artifactRefSchema.parse(ref)))));
}

const wordsOf = (messages: readonly Message[]) => firstUserMessage(messages).split(/\s+/).length;

/** Test tasks played by the campaign's options with a split of its kind: base where the request is short, else the adapter. */
async function routeByWords(client: PolicyClient, { maker, options, crossValidation }: FittedRouter) {
  const environment = createShop();
  const tasks = (await environment.tasks('test')).slice(0, 12).map(({ id }) => id);
  const words: number[] = [];
  for (const id of tasks) {
    const { start: said, close } = await environment.reset({ id, seed: 1 });
    words.push(wordsOf(said.messages));
    await close();
  }
  const median = words.sort((a, b) => a - b)[words.length >> 1]!;
  const parameters = { median, shorter: [1, 0, 0], longer: [0, 1, 0] };
  const fitted: FittedRouter = { maker, options, crossValidation, parameters };
  const body = JSON.stringify(fitted);
  const router = await store.put({
    key: 'by words',
    producer: 'test',
    inputs: [],
    mediaType: 'application/json',
    body,
  });
  const { records } = await played({
    environment,
    policy: { router },
    resolve: createResolver({ store, routers: kinds.routers, context: { python, client } }),
    tasks,
    sampling: { temperature: 0, topP: 1, maxTokens: 64 },
    store,
    client,
  });
  return { median, rollouts: records as ScoredRollout[] };
}

/** The rollouts behind the success rate of a row. */
async function rolloutsOf(arm: string): Promise<ScoredRollout[]> {
  const refs = report?.arms?.find(({ name }) => name === arm)?.successRate?.from ?? [];
  return (await Promise.all(refs.map((ref) => readScored({ store, ref })))).flat();
}

test('the campaign came to its end, and nothing broke', () => {
  expect(report?.campaign.status).toBe('completed');
  expect(report?.rollouts?.broken.value).toBe(0);
  expect(report?.leakage).toMatchObject({ passed: true });
});

test('what the analyst looks for was selected, and trained', () => {
  expect(report?.selection?.candidates).toEqual([
    expect.objectContaining({ name: 'tell_requested_information', selected: true, passes: 4 }),
  ]);
  expect(report?.selection?.candidates[0]?.delta.value).toBeGreaterThan(0.5);
  const [trained, ...others] = report?.capabilities ?? [];
  expect(others).toEqual([]);
  expect(trained).toMatchObject({ name: 'tell_requested_information', status: 'trained' });
  const [folder = ''] = readdirSync(join(home, 'trainings'));
  const steps = readFileSync(join(home, 'trainings', folder, 'metrics.jsonl'), 'utf8')
    .trim()
    .split('\n');
  expect(steps.map((line) => (JSON.parse(line) as { step: number }).step)).toEqual([1, 2]);
  expect(trained?.adapter?.uri).toMatch(/^artifact-tree:/);
});

test('the arm is a row of its own, spent no training, and its prompt was played', async () => {
  const row = report?.arms?.find(({ kind }) => kind === 'fixed_prompt');
  expect(row).toMatchObject({ name: 'reminded', role: 'baseline', routable: true, status: 'evaluated', tasks: 12 });
  expect(row?.trainingRollouts.value).toBe(0);
  expect(row?.successRate?.value).not.toBeNull();
  const prompts = async (arm: string) => (await rolloutsOf(arm)).map(({ rows }) => rows[0]?.promptIds.length ?? NaN);
  const [plain, reminded] = await Promise.all([prompts('base'), prompts('reminded')]);
  // "tell the user what is asked ." is seven words of one token each.
  expect(reminded).toEqual(plain.map((tokens) => tokens + 7));
});

test('trace was routed by the router', async () => {
  expect(report?.router?.kind).toBe('by_length');
  const fitted = await fittedRouter();
  expect(fitted.maker).toEqual({ kind: 'by_length', version: '1', options: {} });
  expect(fitted.options.map(({ name }) => name)).toEqual(['base', 'tell_requested_information', 'reminded']);
  const routed = await rolloutsOf('trace');
  expect(routed).toHaveLength(12);
  for (const rollout of routed) expect(rollout.routed).toMatchObject({ chosen: await choiceOf(fitted, rollout) });
});

test('requests go where their length sends them', () => {
  const { median, rollouts } = byWords ?? { median: NaN, rollouts: [] };
  expect(rollouts).toHaveLength(12);
  const wanted = rollouts.map(({ messages }) => (wordsOf(messages) < median ? 'base' : 'tell_requested_information'));
  expect(rollouts.map(({ status, routed }) => [status, routed?.chosen])).toEqual(
    wanted.map((name) => ['scored', name]),
  );
  expect(new Set(wanted).size).toBe(2);
});

async function choiceOf(fitted: FittedRouter, { messages }: ScoredRollout): Promise<string> {
  if (fitted.constant !== undefined) return fitted.constant;
  const router = byLength.open(
    { kind: 'by_length' },
    { python, client: { sample: () => Promise.reject(), likeliest: () => Promise.reject() } },
  );
  const { signal } = new AbortController();
  const opening = { messages: openingOf(messages), tools: [], seed: 0, signal };
  return (await router.choose({ fitted, ...opening })).chosen;
}
