/** Branches of instances: the figures of a batch, the best iteration, and what a training's metrics say of each. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TrainingRecord } from '../../../src/training/result';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { evaluationSchema } from '../../../src/domain/environment';
import { bestIteration, type Iteration } from '../../../src/domain/results';
import { type RolloutSummary, rolloutSchema } from '../../../src/domain/rollout';
import { outcomeOf, summarise } from '../../../src/domain/outcomes';
import { scoredRollout } from '../../support/scored-rollout';

const rollouts = (rewards: Record<string, number[]>) =>
  Object.entries(rewards).flatMap(([branch, each]) =>
    each.map((reward, i) =>
      scoredRollout({ name: `${branch}${i}`, task: `${branch}${i}`, reward, ...(branch !== '' && { branch }) }),
    ),
  );
const ref = { uri: 'artifact:0', sha256: '0', bytes: 0, mediaType: 'x' };
const summary = (rewards: Record<string, number[]>, sha256 = '0'): RolloutSummary => ({
  ...summarise(rollouts(rewards).map(outcomeOf)),
  ref: { ...ref, sha256 },
  purpose: 'training',
  title: '',
  seconds: 0,
});

test('a name is short and plain', () => {
  const named = (branch: unknown) => evaluationSchema.safeParse({ reward: 1, breakdown: {}, branch }).success;
  expect(['special', 'a_2', 'x'.repeat(40), undefined].map(named)).toEqual([true, true, true, true]);
  expect(['', 'x'.repeat(41), 'A', 'a b', '__proto__', 1].map(named)).toEqual(Array(6).fill(false));
});

test('a scored rollout keeps its branch', () => {
  const [one] = rollouts({ special: [1] });
  expect(rolloutSchema.parse(JSON.parse(JSON.stringify(one)))).toMatchObject({ branch: 'special' });
});

describe('a batch', () => {
  it('has the figures of each branch, of the rollouts that have one', () => {
    expect(summary({ twin: [1, 1, 0.5], special: [0, 1], '': [0] })).toMatchObject({
      scored: 6,
      meanReward: 3.5 / 6,
      branches: {
        special: { scored: 2, meanReward: 0.5, successRate: 0.5 },
        twin: { scored: 3, meanReward: 2.5 / 3, successRate: 2 / 3 },
      },
    });
  });

  it('has none where no rollout has a branch', () => {
    expect(summary({ '': [0, 1] })).not.toHaveProperty('branches');
    expect(summary({})).toMatchObject({ scored: 0, meanReward: 0, successRate: 0 });
  });
});

describe('the best iteration', () => {
  const iteration = (step: number, rewards: Record<string, number[]>): Iteration => ({
    step,
    rollouts: 10 * step,
    policy: { base: 'base@1', adapters: [] },
    heldOut: summary(rewards),
  });
  const best = (...of: Record<string, number[]>[]) => bestIteration(of.map((each, i) => iteration(i + 1, each)))?.step;

  it('is picked by the mean over branches, so that a gain on the larger one does not hide what the smaller lost', () => {
    const [special, twin] = [
      [1, 1, 1, 1, 1, 1],
      [1, 1],
    ];
    const refuses = { special, twin: [0, 0] };
    const learns = { special: [1, 1, 1, 0, 0, 0], twin };
    expect(summary(refuses).successRate).toBeGreaterThan(summary(learns).successRate);
    expect(best(refuses, learns)).toBe(2);
    expect(best(learns, refuses)).toBe(1);
  });

  it('is the one of more reward among equals, also by branch, then the one of the fewest rollouts', () => {
    expect(best({ special: [0, 0, 0], twin: [0.9] }, { special: [0.4, 0.4, 0.4], twin: [0.2] })).toBe(1);
    expect(best({ special: [0.5], twin: [0] }, { special: [0.1], twin: [0.5] })).toBe(2);
    expect(best({ special: [1], twin: [0] }, { special: [0], twin: [1] })).toBe(1);
  });

  it('does not hang on the order of a sum: equal successes and equal rewards are equal', () => {
    const tenth = (solved: number): number[] => [
      ...Array<number>(solved).fill(1),
      ...Array<number>(10 - solved).fill(0),
    ];
    // 0.3 + 0.2 + 0.1 is less than 0.1 + 0.2 + 0.3.
    expect(best({ a: tenth(3), b: tenth(2), c: tenth(1) }, { a: tenth(1), b: tenth(2), c: tenth(3) })).toBe(1);
    expect(best({ '': [0.3, 0.2, 0.1] }, { '': [0.1, 0.2, 0.3] })).toBe(1);
    expect(best({ a: [0.1, 0.3], b: [0] }, { a: [0.4, 0], b: [0] })).toBe(1);
  });

  it('is picked by all rollouts where there are no branches', () => {
    expect(best({ '': [1, 0, 0] }, { '': [1, 1, 0] }, { '': [1, 1, 0] })).toBe(2);
    expect(bestIteration([])).toBeUndefined();
  });
});

test('metrics of a training have the mean reward of every branch of the step; the file of the learner stays', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'branches-'));
  try {
    const store = openFolderStore(join(folder, 'artifacts'));
    const journal = await store.journal('training');
    const about = { store, journal, id: 'id', folder, base: 'base@1', checkpointEvery: 1 };
    const record = new TrainingRecord(about);
    const batch = async (step: number, rewards: Record<string, number[]>) => {
      const key = `batch ${step}`;
      const put = await store.put({ key, producer: 'test', inputs: [], mediaType: 'x', body: key });
      await record.addBatch(step, { ...summary(rewards), ref: put });
    };
    await batch(0, { special: [0, 1], twin: [1, 1] });
    await batch(1, { '': [1] });
    await batch(2, { special: [1, 1] });
    for (const step of [1, 2, 3])
      await record.addCheckpoint({ step, policy: { prompt: { text: `prompt ${step}`, place: 'before' } } });
    const lines = ['{"step":1,"reward":0.75,"loss":1e-7}', '{"step": 2, "reward": 1}', 'torn', '{"step":3,"reward":1}'];
    const own = `${lines.join('\n')}\n`;
    writeFileSync(join(folder, 'metrics.jsonl'), own);
    const { metrics } = await record.result(3);
    expect((await store.read(metrics)).toString('utf8').split('\n')).toEqual([
      '{"step":1,"reward":0.75,"loss":1e-7,"reward_by_branch":{"special":0.5,"twin":1}}',
      '{"step": 2, "reward": 1}',
      'torn',
      '{"step":3,"reward":1,"reward_by_branch":{"special":1}}',
      '',
    ]);
    await journal.close();
  } finally {
    rmSync(folder, { recursive: true });
  }
});
