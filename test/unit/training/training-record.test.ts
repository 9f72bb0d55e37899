/** What a training keeps of itself: in its order, and without a gap. */
import { appendFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TrainingRecord } from '../../../src/training/result';
import { openFolderStore } from '../../../src/store/open-store';
import { sha256 } from '../../../src/store/hash';
import type { TrainingResult } from '../../../src/domain/results';
import type { RolloutSummary } from '../../../src/domain/rollout';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let root: string;
eachTemporaryFolder((made) => {
  root = made;
  writeFileSync(join(root, 'metrics.jsonl'), '{"step":1}\n{"step":2}\n');
});

const store = () => openFolderStore(join(root, 'artifacts'));
const checkpoint = (step: number) => join(root, `checkpoint-${step}`);
const markers = () => {
  const folder = join(root, 'artifacts', 'trainings', 'one', 't', 'markers');
  return readdirSync(folder).sort().map((name) => join(folder, name)); // prettier-ignore
};

/** As another attempt opens it. */
async function record({ checkpointEvery = 1 } = {}): Promise<TrainingRecord> {
  const about = { campaign: 'one', name: 'tell', id: 't', folder: root, base: 'base@1', checkpointEvery };
  const made = new TrainingRecord({ store: store(), ...about });
  await made.restore();
  return made;
}
async function batch(name: string, scored: number): Promise<RolloutSummary> {
  const body = JSON.stringify(name);
  const ref = await store().put({ key: name, producer: 'test', inputs: [], mediaType: 'application/json', body });
  return {
    ...{ ref, purpose: 'training', title: name, scored, broken: 0, tasks: 1, promptTokens: scored, seconds: 1 },
    completionTokens: scored,
  } as unknown as RolloutSummary;
}
async function trained(): Promise<TrainingResult> {
  const made = await record();
  for (const step of [1, 2]) await learn(made, step);
  return made.result(2);
}
/** As a learner does: one whose manifest says `state` of its step. */
async function learn(
  made: TrainingRecord,
  step: number,
  { name = `batch ${step}`, scored = step, state = 'state' } = {},
): Promise<void> {
  makeCheckpoint(step, state);
  made.addBatch(step - 1, await batch(name, scored));
  await made.addCheckpoint({ step, policy: { adapter: checkpoint(step) } });
}

function makeCheckpoint(step: number, state = 'state'): void {
  rmSync(checkpoint(step), { recursive: true, force: true });
  mkdirSync(checkpoint(step));
  writeFileSync(join(checkpoint(step), 'adapter_config.json'), '{}');
  writeFileSync(join(checkpoint(step), 'adapter_model.safetensors'), `weights ${step}`);
  writeFileSync(join(checkpoint(step), 'manifest.json'), `${state} ${step}`);
}

test('batches that are the base rollouts are counted, and counted apart', async () => {
  const made = await record();
  made.addBatch(0, await batch('base', 2), { shared: true });
  made.addBatch(1, await batch('own', 3));
  for (const step of [1, 2]) {
    makeCheckpoint(step);
    await made.addCheckpoint({ step, policy: { adapter: checkpoint(step) } });
  }
  const shared = { rollouts: 2, promptTokens: 2, completionTokens: 2 };
  expect(await made.result(2)).toMatchObject({ rollouts: 5, promptTokens: 5, shared });
});

const lost = (what: string, step: number) => ({
  type: 'TrainerDied',
  message: expect.stringMatching(`${what} of step ${step} is lost; the step is done again`) as string,
});

test('a step whose marker is damaged is done again, with those after it; then all is well', async () => {
  const before = await trained();
  appendFileSync(markers()[0]!, 'x');
  const again = await record();
  expect([1, 2].map((step) => existsSync(checkpoint(step)))).toEqual([false, false]);
  for (const step of [1, 2]) await learn(again, step);
  expect(await again.result(2)).toEqual(before);
  expect(markers()).toHaveLength(4);
  expect(await (await record()).result(2)).toEqual(before);
});

test('a learner that ends without the rollouts of a step does that step again', async () => {
  const made = await record();
  await learn(made, 1);
  await expect(made.result(2)).rejects.toMatchObject(lost('the batch', 2));
  expect([1, 2].map((step) => existsSync(checkpoint(step)))).toEqual([true, false]);
});

test('a step whose adapter is lost is done again, with those after it', async () => {
  const before = await trained();
  const { sha256: listing } = before.checkpoints[0]!.policy.adapters[0]!.ref;
  rmSync(join(root, 'artifacts', 'objects', listing.slice(0, 2), listing));
  const again = await record();
  expect([1, 2].map((step) => existsSync(checkpoint(step)))).toEqual([false, false]);
  for (const step of [1, 2]) await learn(again, step);
  expect(await again.result(2)).toEqual(before);
});

test('an adapter that no batch was sampled from and that is no candidate is not stored', async () => {
  const made = await record({ checkpointEvery: 3 });
  for (const step of [1, 2]) await learn(made, step);
  expect((await made.result(2)).checkpoints.map(({ step }) => step)).toEqual([2]);
  const stored = (step: number) => sha256(`adapter/t/step-${step}/${sha256(`weights ${step}`)}`);
  const keys = join(root, 'artifacts', 'keys');
  const isStored = (key: string) => existsSync(join(keys, key.slice(0, 2), `${key}.json`));
  expect([1, 2].map((step) => isStored(stored(step)))).toEqual([false, true]);
});
