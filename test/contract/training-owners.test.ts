/** A training's files in a store, seen by workers that share nothing else, one after the other or at the same time. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openFolderStore } from '../../src/store/open-store';
import { openS3Store } from '../../src/store/s3-store';
import type { ArtifactStore, RecordFiles } from '../../src/store/store';
import { isFailure } from '../../src/domain/failures';
import type { RolloutSummary } from '../../src/domain/rollout';
import { Markers, trainingPath } from '../../src/training/markers';
import { TrainingRecord } from '../../src/training/result';
import { createCurves } from '../../src/view/curves';
import { createIndex } from '../../src/view/rollouts';
import { withFiles } from '../support/counting-batch';
import { randomOf } from '../support/faults-random';
import { bucket, s3ServerForTests } from '../support/s3-server';
import { eachTemporaryFolder } from '../support/temporary-folder';

let root: string;
let trainings = 0;
s3ServerForTests(() => undefined);
eachTemporaryFolder((made) => (root = made));
beforeEach(() => void trainings++);

const stores: Record<string, (host: string) => ArtifactStore> = {
  folder: () => openFolderStore(join(root, 'store')),
  s3: (host) =>
    openS3Store({
      url: `s3://${bucket}/training-${trainings}`,
      cache: join(root, host, 'cache'),
      cacheBytes: 1e9,
    }),
};

describe.each(Object.keys(stores))('in a %s', (kind) => {
  const storeOn = stores[kind]!;

  /** The rewards as a host draws them that has no part in the training. */
  async function drawn(): Promise<Record<number, number | undefined>> {
    const store = storeOn('four');
    const index = createIndex({ store, campaign: 'one' });
    const [training] = (await createCurves({ store, campaign: 'one', index })()).trainings;
    expect(training?.name).toBe('ask_first');
    return Object.fromEntries(training?.curves.points.map(({ step, reward }) => [step, reward]) ?? []);
  }

  async function markers(): Promise<Markers> {
    const read = new Markers(storeOn('five'), trainingPath('one', 't'));
    await read.read();
    return read;
  }

  /** An attempt at the training on a host, whose folder outlives it. Each state holds the one that it was made from. */
  async function attemptOn(host: string, store = storeOn(host)) {
    const folder = join(root, host, 'training');
    mkdirSync(folder, { recursive: true });
    const about = { campaign: 'one', name: 'ask_first', id: 't', folder, base: 'base@1', checkpointEvery: 4 };
    const record = new TrainingRecord({ store, ...about });
    const checkpoint = (step: number) => join(folder, `checkpoint-${step}`);
    const optimizer = (step: number) =>
      step === 0 ? '' : readFileSync(join(checkpoint(step), 'optimizer.pt'), 'utf8');
    const ref = await store.put({ key: 'batch', producer: 'test', inputs: [], mediaType: 'text/plain', body: 'batch' });
    const batch = { ref, scored: 1, broken: 0, promptTokens: 1, completionTokens: 1 } as unknown as RolloutSummary;
    const from = await record.restore();
    return {
      record,
      from,
      steps: () => [1, 2, 3, 4, 5].filter((step) => existsSync(checkpoint(step))),
      optimizer,
      metrics: () => readFileSync(join(folder, 'metrics.jsonl'), 'utf8'),
      /** As the learner does. `isSent`: its worker lives until it has the message. */
      async step(step: number, { isSent = true } = {}) {
        record.addBatch(step - 1, batch);
        const state = `${optimizer(step - 1)}${step} of ${host};`;
        const files = { 'adapter_config.json': '{}', 'adapter_model.safetensors': state, 'optimizer.pt': state };
        writeFileSync(join(folder, 'metrics.jsonl'), `{"step":${step},"reward":0.${step}}\n`, { flag: 'a' });
        mkdirSync(checkpoint(step));
        for (const [name, text] of Object.entries({ ...files, 'manifest.json': JSON.stringify(files) }))
          writeFileSync(join(checkpoint(step), name), text);
        if (isSent) await record.addCheckpoint({ step, policy: { adapter: checkpoint(step) } });
      },
    };
  }

  test('another host continues from the last step that was sent, with its metrics', async () => {
    const one = await attemptOn('one');
    for (const step of [1, 2, 3]) await one.step(step);
    await one.record.stored();
    await one.step(4, { isSent: false });
    expect(one.steps()).toEqual([2, 3, 4]);

    const two = await attemptOn('two');
    expect([two.from, two.steps()]).toEqual([3, [3]]);
    expect(two.optimizer(3)).toBe('1 of one;2 of one;3 of one;');
    expect(two.metrics()).toBe('{"step":1,"reward":0.1}\n{"step":2,"reward":0.2}\n{"step":3,"reward":0.3}\n');
    expect(await drawn()).toEqual({ 1: 0.1, 2: 0.2, 3: 0.3 });
    await two.step(4);
    await two.record.stored();
    expect(await drawn()).toEqual({ 1: 0.1, 2: 0.2, 3: 0.3, 4: 0.4 });

    // Back on the first host; no host has continued from its own step 4.
    const again = await attemptOn('one');
    expect(again.steps()).toEqual([4]);
    expect(again.optimizer(4)).toBe('1 of one;2 of one;3 of one;4 of two;');
    expect(again.metrics().split('\n')[3]).toBe('{"step":4,"reward":0.4}');
    expect(await storeOn('one').files.list('trainings/one/t/states/')).not.toEqual([]);
    await again.record.end();
    expect(await storeOn('one').files.list('trainings/one/t/states/')).toEqual([]);
    expect((await markers()).line.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    expect((await attemptOn('three')).from).toBe(0);
  });

  test('the contents of two states are kept; the one before stands in for a damaged one', async () => {
    const one = await attemptOn('one');
    for (const step of [1, 2, 3, 4]) await one.step(step);
    await one.record.stored();
    const store = storeOn('six');
    const files = async () => (await store.files.list('trainings/one/t/states/')).map(({ path }) => path);
    expect(new Set((await files()).map((path) => path.split('/')[5]))).toEqual(
      new Set(['checkpoint-3', 'checkpoint-4']),
    );
    const path = (await files()).find((one) => one.endsWith('checkpoint-4/optimizer.pt'))!;
    await store.files.remove(path);
    await store.files.create(path, 'damaged');
    const two = await attemptOn('two');
    expect([two.from, two.steps()]).toEqual([3, [3]]);
    await two.step(4);
    await two.record.stored();
    expect((await attemptOn('three')).optimizer(4)).toBe('1 of one;2 of one;3 of one;4 of two;');
  });

  test.each(Array.from({ length: kind === 'folder' ? 6 : 2 }, (_, n) => n))(
    'two owners whose requests are delayed write one line of states, and both come to its end (%i)',
    async (seed) => {
      const random = randomOf(`owners in a ${kind}`, seed);
      const delayed = (files: RecordFiles): Partial<RecordFiles> => {
        const slow =
          <Args extends unknown[], Result>(work: (...args: Args) => Promise<Result>) =>
          async (...args: Args): Promise<Result> => {
            await sleep(random.between(0, 10));
            const result = await work(...args);
            await sleep(random.between(0, 10));
            return result;
          };
        const { create, read, list, putFile, getFile, removeFolder } = files;
        return {
          ...{ create: slow(create), read: slow(read), list: slow(list) },
          ...{ putFile: slow(putFile), getFile: slow(getFile), removeFolder: slow(removeFolder) },
        };
      };
      let overtaken = 0;
      const own = async (host: string): Promise<string> => {
        const store = storeOn(host);
        for (;;) {
          const attempt = await attemptOn(host, withFiles(store, delayed(store.files)));
          try {
            for (let step = attempt.from + 1; step <= 5; step++) {
              await sleep(random.between(0, 30));
              await attempt.step(step);
            }
            await attempt.record.stored();
            return attempt.optimizer(5);
          } catch (error) {
            if (!isFailure(error, 'Superseded')) throw error;
            overtaken += 1;
          }
        }
      };
      const [a, b] = await Promise.all([own('one'), own('two')]);
      expect(a).toBe(b);
      expect(a).toMatch(/^1 of \w+;2 of \w+;3 of \w+;4 of \w+;5 of \w+;$/);
      const { line } = await markers();
      expect(line.map(({ step, batches }) => [step, batches.map((batch) => batch.step)])).toEqual(
        [1, 2, 3, 4, 5].map((step) => [step, [step - 1]]),
      );
      // A loser that has no state of its own goes back at most once a step.
      expect(overtaken).toBeLessThanOrEqual(5);
      const numbers = await storeOn('seven').files.list('trainings/one/t/markers/');
      expect(numbers).toHaveLength(5);
    },
  );
});
