/**
 * The training activity around a trainer that only plays one: what it tells while it waits, how it ends when it is cancelled, what of it is
 * put again when the store was damaged.
 */
import { CancelledFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { appendFileSync, chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGpuActivities } from '../../../src/activities';
import type { TrainInput } from '../../../src/activities/types';
import { openFolderStore } from '../../../src/store/open-store';
import { campaignSchema } from '../../../src/domain/campaign';
import { OutsideFailure } from '../../../src/domain/failures';
import type { TrainingResult } from '../../../src/domain/results';
import type { TrainHeartbeat } from '../../../src/domain/work';
import type { PolicyClient } from '../../../src/policy/client';
import { spentOf } from '../../../src/llm/spending';
import { putPlan } from '../../support/activity-inputs';
import { failing } from '../../support/failing';
import { registry, shopCampaign } from '../../support/kinds';
import { dealGpus } from '../../../src/training/learner-process';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';
import { withFiles } from '../../support/counting-batch';
import { poolOf } from '../../support/environment-pool';
import { eachTemporaryFolder } from '../../support/temporary-folder';

const trainer = resolve(__dirname, '../..', 'fixtures', 'learners', 'two-adapters.mjs');
let home: string;
let python: string;
const saysBase = `[ "$3" = base-id ] && echo '{"id":"base@1"}' > "$7"`;
/** Called as `python -m trainer train --job FILE`, after it was asked which base model there is. */
const playedBy = (learner: string) =>
  writeFileSync(python, `#!/bin/sh\n${saysBase} && exit\nexec "${process.execPath}" "${learner}" "$5" "$SAYS"\n`, {
    mode: 0o755,
  });
eachTemporaryFolder((folder) => {
  home = folder;
  python = join(home, 'python');
  playedBy(trainer);
});
const { env } = process;
beforeEach(() => (process.env = { ...env }));
afterAll(() => (process.env = env));

const store = () => openFolderStore(join(home, 'artifacts'));
const trainingWith = (fields: object = {}) =>
  campaignSchema.parse({
    ...shopCampaign,
    training: { steps: 2, checkpointEvery: 1, groupsPerStep: 1, groupSize: 2, ...fields },
  }).training;
async function input(): Promise<TrainInput> {
  const plan = await putPlan(store(), ['n-2']);
  return {
    name: 'trains',
    store: await store().id(),
    campaign: 'one',
    budget: {},
    maker: { kind: 'test', version: '1', options: {} },
    environment: { kind: 'shop' },
    tasks: { kind: 'plan', plan, part: 'train' },
    base: 'base@1',
    training: trainingWith(),
    trainer: { kind: 'local' },
    seed: 1,
    maxTokens: 16,
    maxSteps: 8,
    concurrency: 2,
    maxAttempts: 1,
    stallSeconds: 30,
  };
}

type Deps = Partial<Parameters<typeof createGpuActivities>[0]>;
interface Begin extends Deps {
  /** Of what the training is asked for. */
  asked?: Partial<TrainInput>;
}

/** In a worker of its own: nothing is remembered of what the store held. */
async function begin({ asked, ...deps }: Begin = {}) {
  const { train: run } = createGpuActivities({
    store: store(),
    home,
    python,
    model: 'models/base',
    client: countingPolicy(),
    kinds: registry,
    environments: poolOf(async () => countingEnvironment()),
    gpus: dealGpus({ slots: 1, perTrainer: 0, visible: undefined }),
    ...deps,
  });
  const activity = new MockActivityEnvironment();
  const beats: TrainHeartbeat[] = [];
  activity.on('heartbeat', (beat: TrainHeartbeat) => beats.push(beat));
  const ended = activity.run(run, { ...(await input()), ...asked }) as Promise<TrainingResult>;
  return { ended, beats, activity };
}
const train = async (o: Begin = {}): Promise<TrainingResult> => (await begin(o)).ended;

const folders = () => {
  const own = join(home, 'trainings', 'one');
  return readdirSync(own).map((name) => join(own, name));
};
const folder = () => folders()[0]!;
const jobIn = (path: string) => JSON.parse(readFileSync(join(path, 'job.json'), 'utf8')) as Record<string, unknown>;
/** Each start of the trainer is a line that it writes. */
const pids = () => readFileSync(join(folder(), 'starts'), 'utf8').trim().split('\n').map(Number);
const adapterOf = ({ checkpoints }: TrainingResult, step: number) =>
  checkpoints.find((one) => one.step === step)!.policy.adapters[0]!.ref;
const weightsOf = (listing: Buffer) =>
  (JSON.parse(listing.toString()) as { files: { sha256: string }[] }).files[1]!.sha256;
function damage(sha: string): void {
  const path = join(home, 'artifacts', 'objects', sha.slice(0, 2), sha);
  chmodSync(path, 0o644);
  appendFileSync(path, 'x');
}

test('a training leaves its files whole and nothing beside them; found again, it starts no trainer', async () => {
  const { ended, beats } = await begin();
  const result = await ended;
  expect(result.checkpoints.map(({ step }) => step)).toEqual([1, 2]);
  expect(readdirSync(folder()).sort()).toEqual(
    ['batch.jsonl', 'checkpoint-1', 'checkpoint-2', 'job.json', 'metrics.jsonl', 'starts', 'trainer.log'].sort(),
  );
  expect(jobIn(folder())).toMatchObject({ steps: 2, tasks: ['n-2'] });
  // The optimizer's files are no part of the adapter.
  const files = readdirSync(await store().folder(adapterOf(result, 2)));
  expect(files.sort()).toEqual(['adapter_config.json', 'adapter_model.safetensors']);
  expect(beats.at(-1)).toMatchObject({ kind: 'train', step: 2, steps: 2 });
  expect(beats.at(-1)?.waitsFor).toBeUndefined();
  expect(await train()).toEqual(result);
  expect(pids()).toHaveLength(1);
});

test('a step plays its tasks anew, also with the policy of the step before; begun again, it finds its own rollouts', async () => {
  const [client, again] = [countingPolicy(), countingPolicy()];
  const result = await train({ client });
  // Four turns a rollout.
  expect([result.rollouts, client.turns]).toEqual([4, 16]);
  damage(result.metrics.sha256);
  for (const name of ['metrics.jsonl', 'checkpoint-1', 'checkpoint-2'])
    rmSync(join(folder(), name), { recursive: true });
  expect(await train({ client: again })).toEqual(result);
  expect([pids().length, again.turns]).toEqual([2, 0]);
});

test('an update begins once the state that it starts from is stored: a lost host costs one at most', async () => {
  let open = (): void => undefined;
  const isOpen = new Promise<void>((done) => (open = done));
  const whole = store();
  const putFile = async (path: string, file: string) => isOpen.then(() => whole.files.putFile(path, file));
  const { ended, beats } = await begin({ store: withFiles(whole, { putFile }) });
  const steps = () => readFileSync(join(folder(), 'metrics.jsonl'), 'utf8').trim().split('\n').length;
  const waits = ({ step, waitsFor }: TrainHeartbeat) => step === 1 && waitsFor === 'its state to be stored';
  while (!beats.some(waits)) await sleep(20);
  await sleep(500);
  expect(steps()).toBe(1);
  open();
  expect((await ended).steps).toBe(2);
  expect(steps()).toBe(2);
});

test('an adapter that is damaged, with the checkpoint that is the same file, is trained again', async () => {
  const result = await train();
  damage(weightsOf(await store().read(adapterOf(result, 1))));
  await expect(store().folder(adapterOf(result, 1))).rejects.toMatchObject({ type: 'ArtifactDamaged' });
  expect(await train()).toEqual(result);
  for (const step of [1, 2]) {
    const weights = join(await store().folder(adapterOf(result, step)), 'adapter_model.safetensors');
    expect(readFileSync(weights, 'utf8')).toBe(`weights of step ${step}`);
  }
  expect(pids()).toHaveLength(2);
});

test('an attempt that a policy server or the disk ends is continued from its last step by the next', async () => {
  let asked = 0;
  // It is there when the trainer starts, and gone for the second batch.
  const away: PolicyClient = { ...countingPolicy(), reachable: async () => ++asked !== 3 };
  await expect(train({ client: away })).rejects.toMatchObject({ type: 'PolicyServerUnavailable', nonRetryable: false });
  const full = async () => {
    throw new OutsideFailure('DiskFull', 'the disk is full');
  };
  const failure = { type: 'DiskFull', nonRetryable: false };
  await expect(train({ store: { ...store(), putFolder: full } })).rejects.toMatchObject(failure);
  const { ended, beats } = await begin();
  expect((await ended).rollouts).toBe(4);
  expect(beats).toContainEqual(expect.objectContaining({ step: 1, continues: true }));
  expect(pids()).toHaveLength(3);
});

test('an attempt that is no longer its own ends its trainer and itself', async () => {
  let begun: () => void = () => undefined;
  const rolling = new Promise<void>((done) => (begun = done));
  const client = countingPolicy(({ signal }) => {
    begun();
    return new Promise((_, aborted) => signal?.addEventListener('abort', () => aborted(new Error('aborted'))));
  });
  const { ended, activity } = await begin({ client });
  const outcome = ended.catch((error: unknown) => error);
  await rolling;
  activity.cancel('NOT_FOUND');
  expect(await outcome).toBeInstanceOf(CancelledFailure);
  expect(() => process.kill(pids().at(-1)!, 0)).toThrow('ESRCH');
});

describe('a judge whose answers can not be used', () => {
  /** Fails at these tasks; how often it was asked about each. */
  function judged(failing: string[], late?: { task: string; times: number }) {
    const asked: Record<string, number> = {};
    const counting = countingEnvironment();
    const environment = {
      ...counting,
      async reset(task: { id: string; seed: number }) {
        const episode = await counting.reset(task);
        const evaluate = async () => {
          asked[task.id] = (asked[task.id] ?? 0) + 1;
          if (late?.task === task.id && asked[task.id]! <= late.times)
            throw new OutsideFailure('PartnerTimeout', 'late');
          if (failing.includes(task.id))
            throw new OutsideFailure('JudgeFailed', 'cut off; raise target.judge.maxTokens');
          return episode.evaluate('agent_stop');
        };
        return { ...episode, evaluate };
      },
    };
    return { asked, environments: poolOf(async () => environment) };
  }
  async function of(tasks: string[]): Promise<Partial<TrainInput>> {
    const plan = await putPlan(store(), tasks);
    const training = trainingWith({ groupsPerStep: 2 });
    return { tasks: { kind: 'plan', plan, part: 'train' }, training, maxAttempts: 3 };
  }

  test('costs its group a step, and each rollout one question', async () => {
    // In the first step, every attempt at one rollout of the other group is late.
    const { asked, environments } = judged(['n-1'], { task: 'n-2', times: 3 });
    const again = { environments, asked: { ...(await of(['n-1', 'n-2'])), concurrency: 1 } };
    await expect(train(again)).rejects.toMatchObject({ type: 'PartnerTimeout', nonRetryable: false });
    const { brokenRollouts } = await train(again);
    // Two steps of two rollouts.
    expect(brokenRollouts).toBe(4);
    // The next attempt asks about the broken rollouts once more.
    expect(asked).toEqual({ 'n-1': 2 + 4, 'n-2': 3 + 4 });
    const batch = readFileSync(join(folder(), 'batch.jsonl'), 'utf8').trim().split('\n');
    expect(batch.map((line) => (JSON.parse(line) as { task: string }).task)).toEqual(['n-2', 'n-2']);
  });
});

const says = (type: string, message: string) => JSON.stringify({ type: 'error', error: { type, message } });
test.each([
  ['Diverged', 'loss nan at step 7; lower learning_rate', true],
  ['SamplerDiffers', 'log-probs of sampler and trainer differ by 1.2 a token', true],
  // The next attempts wait for room.
  ['DiskFull', 'no room to save', false],
])('what the trainer says of its end stays: %s', async (type, message, nonRetryable) => {
  process.env['SAYS'] = says(type, message);
  await expect(train()).rejects.toMatchObject({ type, message, nonRetryable });
});

test('a Tinker server’s learner has its own Python, the worker’s server and key, and a key of its own', async () => {
  const local = await train();
  const own = join(home, 'tinker-python');
  // The environment, which /proc shows, holds no key.
  const tells = `echo "$3 $TINKER_API_KEY$(cat <&3)" > "${home}/told"`;
  writeFileSync(own, `#!/bin/sh\n${tells}\nexec "${process.execPath}" "${trainer}" "$5"\n`, { mode: 0o755 });
  Object.assign(process.env, {
    CAMPAIGN_TINKER_PYTHON: own,
    TINKER_API_KEY: 'tml-of-the-worker',
    TINKER_BASE_URL: 'http://own:1',
  });
  // A step costs 1.5 dollars.
  const server = { kind: 'tinker', url: 'http://named:2', price: { forward: 1, train: 4 } } as const;
  const poor = { asked: { trainer: server, budget: { dollars: 3 } } };
  const paid = await train(poor);
  expect(paid.steps).toBe(local.steps);
  rmSync(
    folders().find((one) => jobIn(one)['url'])!,
    { recursive: true },
  );
  damage(paid.metrics.sha256);
  await expect(train(poor)).rejects.toMatchObject(
    failing('BudgetSpent', 'budget.dollars is 3: campaign one has spent 3.00 dollars on 2'),
  );
  expect((await train({ asked: { trainer: server } })).steps).toBe(local.steps);
  expect(await spentOf({ store: store(), campaign: 'one' })).toEqual([
    {
      ...{ role: 'trainer', step: 'training: trains', requests: 4, dollars: 6 },
      ...{ promptTokens: 2_000_000, cachedTokens: 0, completionTokens: 1_000_000 },
    },
  ]);
  expect(readFileSync(join(home, 'told'), 'utf8')).toBe('tinker {"TINKER_API_KEY":"tml-of-the-worker"}\n');
  const jobs = folders().map(jobIn);
  expect(jobs.map(({ url, server_model }) => [url, server_model])).toContainEqual(['http://own:1', null]);
  expect(jobs).toHaveLength(2);
  expect(JSON.stringify(jobs)).not.toContain('tml-');
});
