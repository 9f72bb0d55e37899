/**
 * The training activity around a trainer that only plays one: what it tells while it waits, how it ends when it is cancelled, what of it is
 * put again when the store was damaged.
 */
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { appendFileSync, chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createGpuActivities } from '../../../src/activities';
import { dealGpus } from '../../../src/training/gpu-groups';
import type { TrainInput } from '../../../src/activities/types';
import { openFolderStore } from '../../../src/artifacts/folder-store';
import { campaignSchema } from '../../../src/domain/campaign';
import { OutsideFailure } from '../../../src/domain/failures';
import type { TrainHeartbeat } from '../../../src/domain/work';
import type { TrainingResult, TrainingSummary } from '../../../src/domain/results';
import type { PolicyClient } from '../../../src/policy/client';
import type { Merge } from '../../../src/policy/merge';
import { registry } from '../../../src/registry';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';
import { withCheckpoints } from '../../support/memory-store';
import { namesIn } from '../../support/names-in';
import { poolOf } from '../../support/environment-pool';

jest.setTimeout(60_000);
const trainer = resolve(__dirname, '../..', 'fixtures', 'learners', 'two-adapters.mjs');
let home: string;
let python: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'train-'));
  python = join(home, 'python');
  // Called as `python -m trainer train --job FILE`.
  writeFileSync(python, `#!/bin/sh\nexec "${process.execPath}" "${trainer}" "$5" "$SAYS"\n`);
  chmodSync(python, 0o755);
});
afterEach(() => {
  delete process.env['SAYS'];
  rmSync(home, { recursive: true, force: true });
});

const store = () => openFolderStore(join(home, 'artifacts'));
async function input(): Promise<TrainInput> {
  const { training } = campaignSchema.parse({
    name: 'trains',
    target: { kind: 'builtin', name: 'shop' },
    baseModel: { path: 'models/base' },
    training: { steps: 2, checkpointEvery: 1, groupsPerStep: 1, groupSize: 2 },
  });
  const tasks = { train: ['n-2'], validation: [], router: [], test: [] };
  const plan = await store().put({
    key: 'plan',
    producer: 'test',
    inputs: [],
    mediaType: 'application/json',
    body: JSON.stringify(tasks),
  });
  return {
    name: 'trains',
    maker: { kind: 'test', version: '1', options: {} },
    environment: { kind: 'builtin', name: 'shop' },
    base: 'base@1',
    baseModelPath: 'models/base',
    tasks: { kind: 'plan', plan, part: 'train' },
    training,
    seed: 1,
    maxTokens: 16,
    maxSteps: 8,
    concurrency: 2,
    maxAttempts: 1,
    heartbeatSeconds: 30,
    stallSeconds: 30,
    campaign: 'one',
    budget: {},
  };
}

interface Running {
  ended: Promise<TrainingResult>;
  beats: TrainHeartbeat[];
  activity: MockActivityEnvironment;
}

/** In a worker of its own: nothing is remembered of what the store held. */
async function train(
  client: PolicyClient = countingPolicy(),
  more: Partial<Parameters<typeof createGpuActivities>[0]> = {},
  from?: TrainInput['from'],
): Promise<Running> {
  const { train: run } = createGpuActivities({
    store: store(),
    home,
    python,
    client,
    kinds: registry,
    environments: poolOf(async () => countingEnvironment()),
    gpus: dealGpus({ slots: 1, perTrainer: 0, visible: undefined }),
    merge: async () => Promise.reject(new Error('nothing is merged')),
    ...more,
  });
  const activity = new MockActivityEnvironment();
  const beats: TrainHeartbeat[] = [];
  activity.on('heartbeat', (beat: TrainHeartbeat) => beats.push(beat));
  return {
    ended: (activity.run(run, { ...(await input()), ...(from && { from }) }) as Promise<TrainingSummary>).then(
      (trained) => withCheckpoints(store(), trained),
    ),
    beats,
    activity,
  };
}

const folder = () => join(home, 'trainings', readdirSync(join(home, 'trainings'))[0]!);
/** Each start of the trainer is a line that it writes. */
const starts = () => readFileSync(join(folder(), 'starts'), 'utf8').trim().split('\n').length;
const pid = () => Number(readFileSync(join(folder(), 'starts'), 'utf8').trim().split('\n').at(-1));
const adapterOf = ({ checkpoints }: TrainingResult, step: number) =>
  checkpoints.find((one) => one.step === step)!.policy.adapters[0]!.ref;
const weightsOf = (listing: Buffer) =>
  (JSON.parse(listing.toString()) as { files: { sha256: string }[] }).files[1]!.sha256;
const damage = (sha: string) => {
  const path = join(home, 'artifacts', 'objects', sha.slice(0, 2), sha);
  chmodSync(path, 0o644);
  appendFileSync(path, 'x');
};

test('a training leaves its files whole and nothing beside them; found again, it starts no trainer', async () => {
  const { ended, beats } = await train();
  const result = await ended;
  expect(result.checkpoints.map(({ step }) => step)).toEqual([1, 2]);
  expect(readdirSync(folder()).sort()).toEqual(
    ['batch.json', 'checkpoint-1', 'checkpoint-2', 'job.json', 'metrics.jsonl', 'starts', 'trainer.log'].sort(),
  );
  expect(JSON.parse(readFileSync(join(folder(), 'job.json'), 'utf8'))).toMatchObject({ steps: 2, tasks: ['n-2'] });
  // The optimizer's files are no part of the adapter.
  expect(readdirSync(await store().folder(adapterOf(result, 2))).sort()).toEqual([
    'adapter_config.json',
    'adapter_model.safetensors',
  ]);
  expect(beats.at(-1)).toMatchObject({ kind: 'train', step: 2, steps: 2 });
  expect(beats.at(-1)?.waitsFor).toBeUndefined();
  expect(await (await train()).ended).toEqual(result);
  expect(starts()).toBe(1);
});

test('a step plays its tasks anew, also with the policy of the step before; begun again, it finds its own rollouts', async () => {
  const [client, again] = [countingPolicy(), countingPolicy()];
  const result = await (await train(client)).ended;
  // Four turns a rollout.
  expect([result.rollouts, client.turns]).toEqual([4, 16]);
  damage(result.metrics.sha256);
  for (const name of ['metrics.jsonl', 'checkpoint-1', 'checkpoint-2'])
    rmSync(join(folder(), name), { recursive: true });
  expect(await (await train(again)).ended).toEqual(result);
  expect([starts(), again.turns]).toEqual([2, 0]);
});

test('a training that starts from adapters starts from their sum, merged once, which its own adapters lead back to', async () => {
  const adapter = (name: string) => {
    const folder = mkdtempSync(join(home, name));
    writeFileSync(join(folder, 'adapter_model.safetensors'), name);
    return store().putFolder({ key: name, producer: 'test', inputs: [], folder });
  };
  const [a, b, sum] = [await adapter('a'), await adapter('b'), await adapter('sum')];
  const asked: string[][] = [];
  const merge: Merge = async (parts) => {
    asked.push(parts.map(({ ref }) => ref.sha256).sort());
    return sum;
  };
  const inFolder = (): { init_adapter: string | null }[] =>
    readdirSync(join(home, 'trainings')).map((name) =>
      JSON.parse(readFileSync(join(home, 'trainings', name, 'job.json'), 'utf8')),
    );
  const [one, other] = [a, b].map((ref) => ({ ref, weight: 1 }));
  const { ended, beats } = await train(countingPolicy(), { merge }, [one!, other!]);
  const result = await ended;
  expect(asked).toEqual([[a.sha256, b.sha256].sort()]);
  expect(beats).toContainEqual({ kind: 'train', step: 0, steps: 2, waitsFor: 'its adapters to be merged' });
  expect(beats.at(-1)?.waitsFor).toBeUndefined();
  expect(inFolder()).toEqual([expect.objectContaining({ init_adapter: await store().folder(sum) })]);
  for (const step of [1, 2])
    expect((await store().provenance(adapterOf(result, step))).inputs[0]?.sha256).toBe(sum.sha256);

  // The same sum is the same training, whatever the order; another one, and none, are others.
  expect(await (await train(countingPolicy(), { merge }, [other!, one!])).ended).toEqual(result);
  expect(readdirSync(join(home, 'trainings'))).toHaveLength(1);
  await (
    await train(countingPolicy(), { merge }, [one!])
  ).ended;
  await (
    await train(countingPolicy(), { merge }, [])
  ).ended;
  await (
    await train(countingPolicy(), { merge })
  ).ended;
  // One adapter as it is needs no merging.
  expect(asked).toHaveLength(1);
  const starts = inFolder().map(({ init_adapter }) => init_adapter ?? 'fresh');
  expect(starts.sort()).toEqual([await store().folder(a), await store().folder(sum), 'fresh'].sort());
});

test('what is half-written lies nowhere but in the store, where it is removed after a kill', async () => {
  process.env['SAYS'] = '{"type":"error","error":{"type":"BadJob","message":"not yet"}}';
  await expect((await train()).ended).rejects.toMatchObject({ type: 'BadJob' });
  delete process.env['SAYS'];
  const beside = namesIn(folder());
  await (
    await train()
  ).ended;
  const stays = readdirSync(folder());
  expect((await beside()).filter((name) => !stays.includes(name))).toEqual([]);
  expect(stays).toContain('batch.json');
});

test('an adapter that is damaged, with the checkpoint that is the same file, is trained again', async () => {
  const result = await (await train()).ended;
  damage(weightsOf(await store().read(adapterOf(result, 1))));
  await expect(store().folder(adapterOf(result, 1))).rejects.toMatchObject({ type: 'ArtifactDamaged' });
  // The learner goes on from its end, and only then the loss is known: the workflow tries again.
  const message = expect.stringMatching(/adapter of step 1 is lost or damaged; the step is done again/) as string;
  await expect((await train()).ended).rejects.toMatchObject({ type: 'TrainerDied', message });
  expect(await (await train()).ended).toEqual(result);
  for (const step of [1, 2]) {
    const weights = join(await store().folder(adapterOf(result, step)), 'adapter_model.safetensors');
    expect(readFileSync(weights, 'utf8')).toBe(`weights of step ${step}`);
  }
  expect(starts()).toBe(3);
});

test('a policy server that is away for a while costs no restart, and is told', async () => {
  let down = 0;
  const policy = countingPolicy(() => {
    if (down < 4) throw new OutsideFailure('PolicyServerUnavailable', 'connection refused');
  });
  const away: PolicyClient = {
    ...policy,
    reachable: async () => {
      down += 1;
      return false;
    },
  };
  const { ended, beats } = await train(away);
  expect((await ended).rollouts).toBe(4);
  expect(down).toBeGreaterThan(3);
  expect(starts()).toBe(1);
  const waited = beats.flatMap(({ waitsFor }) => waitsFor ?? []);
  expect(waited.filter((what) => what === 'the policy server: connection refused').length).toBeGreaterThan(1);
});

test('a disk that is full for seconds costs no restart, whatever was being kept', async () => {
  const refused = new Set<string>();
  const full = async <Result>(what: string, write: () => Promise<Result>): Promise<Result> => {
    if (refused.has(what)) return write();
    refused.add(what);
    throw new OutsideFailure('DiskFull', `the disk is full: no room for ${what}`);
  };
  const whole = store();
  const { ended, beats } = await train(countingPolicy(), {
    store: {
      ...whole,
      put: (artifact) =>
        artifact.key.includes('metrics') ? full(artifact.key, () => whole.put(artifact)) : whole.put(artifact),
      putFolder: (artifact) => full(artifact.key, () => whole.putFolder(artifact)),
    },
  });
  expect((await ended).rollouts).toBe(4);
  expect(starts()).toBe(1);
  // Two adapters and the metrics.
  expect(refused.size).toBe(3);
  expect(beats.some(({ waitsFor }) => waitsFor?.startsWith('room on the disk: '))).toBe(true);
});

test('a trainer that can not be started leaves its GPUs and its journal to the next', async () => {
  const gpus = dealGpus({ slots: 1, perTrainer: 1, visible: undefined });
  let open = 0;
  const counted = {
    ...store(),
    journal: async (key: string) => {
      const journal = await store().journal(key);
      open += 1;
      return { ...journal, close: () => ((open -= 1), journal.close()) };
    },
  };
  // Node refuses such a name at once.
  const failed = train(countingPolicy(), { gpus, store: counted, python: 'py\0thon' });
  await expect((await failed).ended).rejects.toMatchObject({
    type: 'TrainerDied',
    message: expect.stringContaining("can't be started") as string,
  });
  expect(open).toBe(0);
  expect((await (await train(countingPolicy(), { gpus })).ended).steps).toBe(2);
});

test('an attempt that is cancelled before its trainer starts starts none', async () => {
  const cancelled: { activity?: MockActivityEnvironment } = {};
  const environments = poolOf(async () => {
    await sleep(10);
    cancelled.activity?.cancel('CANCELLED');
    return countingEnvironment();
  });
  const { ended, activity } = await train(countingPolicy(), { environments });
  cancelled.activity = activity;
  await expect(ended).rejects.toBeInstanceOf(CancelledFailure);
  expect(readdirSync(folder())).toEqual(['job.json']);
});

test('a step with broken rollouts says what broke them; what would break again, and a loss that is no number, are not tried again', async () => {
  const rejecting = countingPolicy(({ seed }) => {
    if (seed % 2 === 0) throw new OutsideFailure('PolicyAnswerInvalid', 'no such tool call');
  });
  await expect((await train(rejecting)).ended).rejects.toMatchObject({
    type: 'PolicyAnswerInvalid',
    nonRetryable: true,
    message: expect.stringMatching(/none of the first|^step 1: \d of 2 rollouts broke: /) as string,
  });
  process.env['SAYS'] =
    '{"type":"error","error":{"type":"Diverged","message":"loss nan at step 7; lower learning_rate"}}';
  await expect((await train()).ended).rejects.toMatchObject({ type: 'Diverged', nonRetryable: true });
});

test('a training that is made anew and comes to others is found by what it came to then', async () => {
  const result = await (await train()).ended;
  rmSync(folder(), { recursive: true });
  for (const { key } of [...result.checkpoints.map(({ step }) => ({ key: adapterOf(result, step).sha256 }))])
    damage(key);
  rmSync(join(home, 'artifacts', 'journals'), { recursive: true });
  const learner = readFileSync(trainer, 'utf8')
    .replace('weights of', 'other weights of')
    .replace('step / 2', 'step / 3');
  writeFileSync(join(home, 'other.mjs'), learner);
  writeFileSync(python, `#!/bin/sh\nexec "${process.execPath}" "${join(home, 'other.mjs')}" "$5" "$SAYS"\n`);
  const anew = await (await train()).ended;
  expect(anew.metrics.sha256).not.toBe(result.metrics.sha256);
  expect(adapterOf(anew, 2).sha256).not.toBe(adapterOf(result, 2).sha256);
  expect(await (await train()).ended).toEqual(anew);
  expect(starts()).toBe(1);
});

test('a full disk that the trainer tells of is waited for by the next attempts', async () => {
  process.env['SAYS'] = '{"type":"error","error":{"type":"DiskFull","message":"no room to save"}}';
  const failure = { type: 'DiskFull', message: 'no room to save', nonRetryable: false };
  await expect((await train()).ended).rejects.toMatchObject(failure);
});

test('an attempt that is no longer its own ends its trainer and itself', async () => {
  let begun: () => void = () => undefined;
  const rolling = new Promise<void>((done) => (begun = done));
  const { ended, activity } = await train(
    countingPolicy(({ signal }) => {
      begun();
      return new Promise((_, aborted) => signal?.addEventListener('abort', () => aborted(new Error('aborted'))));
    }),
  );
  const outcome = ended.catch((error: unknown) => error);
  await rolling;
  activity.cancel('NOT_FOUND');
  expect(await outcome).toBeInstanceOf(CancelledFailure);
  expect(() => process.kill(pid(), 0)).toThrow('ESRCH');
});

test('without room for its files it fails with where there is none, and is tried again', async () => {
  const { train: run } = createGpuActivities({
    store: {
      ...store(),
      find: async () => {
        throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
      },
    },
    home,
    python,
    client: countingPolicy(),
    kinds: registry,
    environments: poolOf(async () => countingEnvironment()),
    gpus: dealGpus({ slots: 1, perTrainer: 0, visible: undefined }),
    merge: async () => Promise.reject(new Error('nothing is merged')),
  });
  const given = await input();
  const failed = await (new MockActivityEnvironment().run(run, given) as Promise<unknown>).catch(
    (error: unknown) => error,
  );
  expect(failed).toBeInstanceOf(ApplicationFailure);
  expect(failed).toMatchObject({
    type: 'DiskFull',
    nonRetryable: false,
    message: expect.stringContaining(home) as string,
  });
});
