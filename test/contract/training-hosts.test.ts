/** What a training keeps in a bucket, as two hosts with nothing else in common see it. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openS3Store } from '../../src/artifacts/s3-store';
import { closedAfterwards } from '../support/opened';
import { notingUsage } from '../../src/artifacts/usage';
import { TrainingRecord } from '../../src/training/result';
import { createCurves } from '../../src/view/curves';
import { bucket, type S3Server, s3ServerForTests } from '../support/s3-server';
import { eachTemporaryFolder } from '../support/temporary-folder';

let server: S3Server;
let root: string;
let trainings = 0;
s3ServerForTests((started) => (server = started));
eachTemporaryFolder((made) => (root = made));
beforeEach(() => void trainings++);

const storeOn = (host: string) =>
  openS3Store({
    url: `s3://${bucket}/training-${trainings}`,
    cache: join(root, host, 'cache'),
    cacheBytes: 1e9,
  });

/** The rewards that a host draws which has no part in the training. */
async function drawn(): Promise<Record<number, number | undefined>> {
  const curves = createCurves({ store: storeOn('four'), home: join(root, 'four'), campaign: 'demo' });
  const [training] = (await curves()).trainings;
  expect(training?.name).toBe('ask_first');
  return Object.fromEntries(training?.points.map(({ step, reward }) => [step, reward]) ?? []);
}

/** An attempt at the training on a host, whose folder outlives it. */
async function attemptOn(host: string) {
  const store = notingUsage(storeOn(host), () => 'demo');
  const folder = join(root, host, 'training');
  mkdirSync(folder, { recursive: true });
  const journal = closedAfterwards(await store.journal('training/t', host));
  await journal.append('name', { kind: 'name', name: 'ask_first' });
  await store.noted();
  await store.close();
  const record = new TrainingRecord({ store, journal, id: 't', folder, base: 'base@1', checkpointEvery: 4 });
  await record.state.restore();
  const checkpoint = (step: number) => join(folder, `checkpoint-${step}`);
  return {
    record,
    steps: () => [1, 2, 3, 4, 5].filter((step) => existsSync(checkpoint(step))),
    optimizer: (step: number) => readFileSync(join(checkpoint(step), 'optimizer.pt'), 'utf8'),
    metrics: () => readFileSync(join(folder, 'metrics.jsonl'), 'utf8'),
    /** As the learner does. `isTold`: its worker lives until it is told. */
    async step(step: number, { isTold = true } = {}) {
      const files = { 'adapter_config.json': '{}', 'adapter_model.safetensors': `weights ${step} of ${host}` };
      writeFileSync(join(folder, 'metrics.jsonl'), `{"step":${step},"reward":0.${step}}\n`, { flag: 'a' });
      mkdirSync(checkpoint(step));
      const state = { ...files, 'optimizer.pt': `optimizer ${step} of ${host}`, 'manifest.json': `${step} ${host}` };
      for (const [name, text] of Object.entries(state)) writeFileSync(join(checkpoint(step), name), text);
      if (isTold) await record.addCheckpoint({ step, policy: { adapter: checkpoint(step) } });
    },
  };
}

test('another host goes on from the last step that was told, with its metrics', async () => {
  const one = await attemptOn('one');
  for (const step of [1, 2, 3]) await one.step(step);
  await one.record.state.uploaded();
  await one.step(4, { isTold: false });
  expect(one.steps()).toEqual([2, 3, 4]);

  const two = await attemptOn('two');
  expect(two.steps()).toEqual([3]);
  expect(two.optimizer(3)).toBe('optimizer 3 of one');
  expect(two.metrics()).toBe('{"step":1,"reward":0.1}\n{"step":2,"reward":0.2}\n{"step":3,"reward":0.3}\n');
  expect(await drawn()).toEqual({ 1: 0.1, 2: 0.2, 3: 0.3 });
  await two.step(4);
  await two.record.state.uploaded();
  expect(await drawn()).toEqual({ 1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4 });

  // Back on the first host, its own step 4 is of a training that was gone on with elsewhere.
  const again = await attemptOn('one');
  expect(again.steps()).toEqual([2, 3, 4]);
  expect(again.optimizer(4)).toBe('optimizer 4 of two');
  expect(again.metrics().split('\n')[3]).toBe('{"step":4,"reward":0.4}');
  await again.record.state.remove();
  expect((await attemptOn('three')).steps()).toEqual([]);
});

test('what was told is not fetched by the host that has it, and what it was not told of goes', async () => {
  const one = await attemptOn('one');
  for (const step of [1, 2]) await one.step(step);
  await one.record.state.uploaded();
  await one.step(3, { isTold: false });
  const again = await attemptOn('one');
  expect(again.steps()).toEqual([1, 2]);
});

test('one that another has superseded is told so with the next step, and nothing of it counts', async () => {
  const one = await attemptOn('one');
  await one.step(1);
  await one.record.state.uploaded();
  const two = await attemptOn('two');
  await one.step(2);
  await expect(one.step(3)).rejects.toMatchObject({ type: 'Superseded' });
  await two.step(2);
  await two.record.state.uploaded();
  expect((await attemptOn('three')).optimizer(2)).toBe('optimizer 2 of two');
});

test('a bucket that is away for a step is waited for: what was not stored is stored before the next', async () => {
  const one = await attemptOn('one');
  await one.step(1);
  await one.record.state.uploaded();
  await server.kill();
  await one.step(2);
  await expect(one.record.state.uploaded()).rejects.toMatchObject({ type: 'StoreUnavailable', retryable: true });
  await server.start();
  await one.record.state.uploaded();
  const two = await attemptOn('two');
  expect(two.steps()).toEqual([2]);
  expect(two.metrics().split('\n')).toHaveLength(3);
}, 300_000);
