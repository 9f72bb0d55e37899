/** Curves over a real store, as trainings leave it: while they run, where a step is done again, and at their end. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { keptJson } from '../../../src/artifacts/store';
import { type NotingStore, notingUsage } from '../../../src/artifacts/usage';
import { metricsFolder, mirrorCurves } from '../../../src/cli/metrics';
import type { Rollout, RolloutSummary } from '../../../src/domain/rollout';
import { ROLLOUTS_MEDIA_TYPE } from '../../../src/rollout/read';
import { TrainingRecord } from '../../../src/training/result';
import { createCurves, type Payment } from '../../../src/view/curves';
import { closedAfterwards } from '../../support/opened';
import { scoredRollout } from '../../support/scored-rollout';
import { eachTemporaryFolder } from '../../support/temporary-folder';

const ID = 'ab'.repeat(32);
let home: string;
let folder: string;
let store: NotingStore;
let payments: Payment[];
eachTemporaryFolder((made) => {
  home = made;
  folder = join(home, 'trainings', `ask_first-${ID.slice(0, 12)}`);
  mkdirSync(folder, { recursive: true });
  store = closedAfterwards(notingUsage(openFolderStore(join(home, 'artifacts')), () => 'demo'));
  payments = [];
});

const curves = async () => {
  const all = await createCurves({ store, home, campaign: 'demo', payments: () => Promise.resolve(payments) })();
  return Object.fromEntries(all.map(({ run, rows }) => [run, rows]));
};
const pointsOf = (rows: { step: number; values: Record<string, number> }[] | undefined, tag: string) =>
  (rows ?? []).flatMap(({ step, values }) => (tag in values ? [[step, values[tag]]] : []));

const broken = (name: string): Rollout => {
  const { key, task } = scoredRollout({ name, task: name, reward: 0 });
  return { status: 'broken', key, task, attempt: 0, error: { type: 'BadEnvironment', message: 'it ended' } };
};
async function batch(title: string, rollouts: Rollout[], key = title): Promise<RolloutSummary> {
  const body = rollouts.map((one) => `${JSON.stringify(one)}\n`).join('');
  const of = { producer: `rollouts: ${title}`, inputs: [], mediaType: ROLLOUTS_MEDIA_TYPE };
  const ref = await store.put({ key: `rollouts/${key}`, ...of, body });
  await store.noted();
  return { ref, scored: rollouts.length, broken: 0, promptTokens: 1, completionTokens: 1 } as RolloutSummary;
}
const rollout = (name: string, reward: number, branch?: string) =>
  scoredRollout({ name, task: name, reward, ...(branch !== undefined && { branch }) });

async function training() {
  const journal = await store.journal(`training/${ID}`);
  await journal.append('name', { kind: 'name', name: 'ask_first' });
  const record = new TrainingRecord({ store, journal, id: ID, folder, base: 'base@1', checkpointEvery: 5 });
  return { record, close: () => journal.close() };
}
const tell = (lines: object[]) =>
  writeFileSync(join(folder, 'metrics.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

test('a training that runs: what its learner tells, and of each step the batch that it learned from last', async () => {
  const { record, close } = await training();
  await record.addBatch(0, await batch('ask_first: training step 1', [rollout('a', 1, 'twin'), broken('b')]));
  await record.addBatch(1, await batch('ask_first: training step 2', [rollout('c', 0.5)]));
  await record.addBatch(1, await batch('ask_first: training step 2', [rollout('d', 1), rollout('e', 1)], 'again'));
  tell([
    { step: 1, loss: 0.5, reward: 1, name: 'no number' },
    { step: 2, loss: 0.25, reward: 1 },
  ]);
  await close();
  const { ask_first: rows, 'all-rollouts': all } = await curves();
  expect(pointsOf(rows, 'train/loss')).toEqual([[1, 0.5], [2, 0.25]]); // prettier-ignore
  expect(pointsOf(rows, 'train/broken_share')).toEqual([[1, 0.5], [2, 0]]); // prettier-ignore
  expect(pointsOf(rows, 'train/success')).toEqual([[1, 1], [2, 1]]); // prettier-ignore
  expect(pointsOf(rows, 'train/reward/twin')).toEqual([[1, 1]]);
  expect(pointsOf(rows, 'train/name')).toEqual([]);
  // What was played for a step that is done again was played.
  expect(pointsOf(all, 'rollouts/scored').at(-1)).toEqual([5, 4]);
  expect(pointsOf(all, 'rollouts/broken').at(-1)).toEqual([5, 1]);
});

test('one that has ended is read from the store alone, on any host; held-out success stands at every step that was evaluated', async () => {
  const { record, close } = await training();
  await record.addBatch(0, await batch('ask_first: training step 1', [rollout('a', 1)]));
  tell([{ step: 1, loss: 0.5, reward: 1 }]);
  const metrics = await store.put({
    ...{ key: `training/${ID}/metrics/1/x`, producer: 'train', inputs: [], mediaType: 'application/jsonl' },
    body: '{"step":1,"loss":0.5,"reward":1}\n',
  });
  const counts = { rollouts: 1, brokenRollouts: 0, promptTokens: 1, completionTokens: 1 };
  const result = { steps: 1, ...counts, metrics, checkpoints: [] };
  await keptJson(store, { key: `training/${ID}`, producer: 'train', inputs: [metrics] }, () => result);
  await close();
  await batch('ask_first: held out, base', [rollout('g', 0)]);
  const { ref } = await batch('ask_first: held out at step 2', [rollout('h', 1), rollout('i', 0)]);
  // The policy of step 3 is that of step 2: so is its batch.
  const iterations = [2, 3].map((step) => ({ step, heldOut: { ref } }));
  const body = JSON.stringify({ name: 'ask_first', trained: { training: { metrics }, iterations } });
  const kept = { producer: 'keepResult', inputs: [], mediaType: 'application/json' };
  await store.put({ key: 'result/1', ...kept, body });
  await batch('test: trace', [rollout('j', 1)]);
  await store.noted();
  rmSync(folder, { recursive: true });
  const { ask_first: rows, trace } = await curves();
  expect(pointsOf(rows, 'train/loss')).toEqual([[1, 0.5]]);
  expect(pointsOf(rows, 'held_out/success')).toEqual([[0, 0], [2, 0.5], [3, 0.5]]); // prettier-ignore
  expect(pointsOf(trace, 'test/success')).toEqual([[0, 1]]);
});

test('costs add up by requests; of very many the last is always there', async () => {
  const one: Payment = { role: 'analyst', requests: 2, dollars: 0.5, promptTokens: 10, completionTokens: 1 };
  payments = Array.from({ length: 1234 }, () => one);
  const { 'all-costs': rows } = await curves();
  expect(pointsOf(rows, 'costs/dollars').slice(0, 2)).toEqual([[2, 0.5], [4, 1]]); // prettier-ignore
  expect(pointsOf(rows, 'costs/dollars/analyst').at(-1)).toEqual([2468, 617]);
  expect(rows!.length).toBeLessThan(250);
});

test('a batch that was incomplete and then made whole: what broke is scored, and counts once', async () => {
  await batch('base rollouts', [rollout('a', 1), broken('b')], 'incomplete');
  await batch('base rollouts', [rollout('a', 1), rollout('b', 1)]);
  const { 'all-rollouts': rows } = await curves();
  const { promptTokens } = (rollout('a', 1) as Extract<Rollout, { status: 'scored' }>).usage;
  const values = { 'rollouts/scored': 2, 'rollouts/broken': 0, 'tokens/prompt': 2 * promptTokens };
  expect(rows!.at(-1)).toMatchObject({ step: 2, values });
});

test('names from a model are no paths', async () => {
  await batch('test: ../../etc/passwd', [rollout('a', 1)]);
  await batch(`test: ${'long_'.repeat(60)}`, [rollout('b', 1)]);
  const names = Object.keys(await curves()).filter((name) => name !== 'all-rollouts');
  expect(names.every((name) => /^[\w+][\w+.-]{0,119}$/.test(name))).toBe(true);
  expect(names).toHaveLength(2);
});

test.each([
  ['a Python that is not there', '/nowhere/python', /ENOENT/],
  ['one that ends at once', process.execPath, /ended with code|bad option/],
  ['one that hangs', 'hanging', /not written within 0.5 s/],
])('%s is said once, and nothing waits for it', async (_, python, problem) => {
  const hanging = join(home, 'hanging');
  writeFileSync(hanging, '#!/bin/sh\nsleep 1000 & sleep 1000\n', { mode: 0o755 });
  await batch('test: base', [rollout('a', 1)]);
  await batch('test: trace', [rollout('b', 1)]);
  const before = process.env['CAMPAIGN_METRICS_PYTHON'];
  process.env['CAMPAIGN_METRICS_PYTHON'] = python === 'hanging' ? hanging : python;
  const notes: string[] = [];
  const out = metricsFolder(home, 'demo');
  const note = (text: string) => notes.push(text);
  try {
    const limit = python === 'hanging' ? { endMs: 500 } : {};
    const mirror = mirrorCurves({ home, campaign: 'demo', tools: ['wandb'], out, note, ...limit });
    expect(await mirror.end()).toEqual({});
  } finally {
    if (before === undefined) delete process.env['CAMPAIGN_METRICS_PYTHON'];
    else process.env['CAMPAIGN_METRICS_PYTHON'] = before;
  }
  expect(notes).toEqual([expect.stringMatching(problem)]);
});
