/** What a training keeps of itself: in its order, and without a gap. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TrainingRecord } from '../../../src/training/result';
import { openFolderStore } from '../../../src/artifacts/open-store';
import { sha256 } from '../../../src/artifacts/hash';
import type { TrainingResult } from '../../../src/domain/results';
import type { RolloutSummary } from '../../../src/domain/rollout';
import { closedAfterwards } from '../../support/opened';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let root: string;
eachTemporaryFolder((made) => {
  root = made;
  for (const step of [1, 2]) {
    mkdirSync(checkpoint(step), { recursive: true });
    writeFileSync(join(checkpoint(step), 'adapter_config.json'), '{}');
    writeFileSync(join(checkpoint(step), 'adapter_model.safetensors'), `weights ${step}`);
  }
  writeFileSync(join(root, 'metrics.jsonl'), '{"step":1}\n{"step":2}\n');
});

const store = () => openFolderStore(join(root, 'artifacts'));
const checkpoint = (step: number) => join(root, `checkpoint-${step}`);
const journalFile = () => join(root, 'artifacts', 'journals', `${sha256('training/t')}.jsonl`);
const lines = () => readFileSync(journalFile(), 'utf8').split('\n').filter(Boolean);
const tear = (number: number) => writeFileSync(journalFile(), lines().with(number, '["torn').join('\n'));

/** As another attempt opens it. */
async function record({ checkpointEvery = 1 } = {}): Promise<TrainingRecord> {
  const journal = closedAfterwards(await store().journal('training/t'));
  return new TrainingRecord({ store: store(), journal, id: 't', folder: root, base: 'base@1', checkpointEvery });
}
async function batch(name: string, scored: number): Promise<RolloutSummary> {
  const body = JSON.stringify(name);
  const ref = await store().put({ key: name, producer: 'test', inputs: [], mediaType: 'application/json', body });
  return {
    ...{ ref, purpose: 'training', title: name, scored, broken: 0, tasks: 1, promptTokens: scored, seconds: 1 },
    completionTokens: scored,
  } as unknown as RolloutSummary;
}
/** Records 0 and 2 are batches, 1 and 3 checkpoints. */
async function trained(): Promise<TrainingResult> {
  const made = await record();
  for (const step of [1, 2]) {
    await made.addBatch(step - 1, await batch(`batch ${step}`, step));
    await made.addCheckpoint({ step, policy: { adapter: checkpoint(step) } });
  }
  return made.result(2);
}

test('where a step was done again and again, the last one counts, whatever it was', async () => {
  const [a, b] = [await batch('a', 1), await batch('b', 5)];
  for (const one of [a, b, a]) await (await record()).addBatch(0, one);
  const { rollouts, superseded } = await (await record()).result(1);
  expect([rollouts, superseded?.rollouts]).toEqual([1, 5]);
  // What is told twice in a row stands once.
  await (await record()).addBatch(0, a);
  expect(lines()).toHaveLength(3);
});

test('batches that are the base rollouts are counted, and counted apart', async () => {
  const made = await record();
  await made.addBatch(0, await batch('base', 2), { shared: true });
  await made.addBatch(1, await batch('own', 3));
  for (const step of [1, 2]) await made.addCheckpoint({ step, policy: { adapter: checkpoint(step) } });
  const shared = { rollouts: 2, promptTokens: 2, completionTokens: 2 };
  expect(await made.result(2)).toMatchObject({ rollouts: 5, promptTokens: 5, shared });
});

const lost = (what: string, step: number) => ({
  type: 'TrainerDied',
  message: expect.stringMatching(`${what} of step ${step} is lost or damaged; the step is done again`) as string,
});

test.each([1, 3])(
  'a checkpoint whose line %i of the journal is torn is taken again from its folder',
  async (number) => {
    const before = await trained();
    tear(number);
    expect(await (await record()).result(2)).toEqual(before);
  },
);

test('a step whose rollouts are recorded nowhere is done again; recorded again, all is well', async () => {
  const before = await trained();
  tear(2);
  await expect((await record()).result(2)).rejects.toMatchObject(lost('what was rolled out', 2));
  expect([1, 2].map((step) => existsSync(checkpoint(step)))).toEqual([true, false]);
  await (await record()).addBatch(1, await batch('batch 2', 2));
  expect(await (await record()).result(2)).toEqual(before);
});

test('weights that are others than those that the store has lost do not take their place', async () => {
  const { checkpoints } = await trained();
  const { sha256: listing } = checkpoints[0]!.policy.adapters[0]!.ref;
  rmSync(join(root, 'artifacts', 'objects', listing.slice(0, 2), listing));
  rmSync(join(checkpoint(1), 'adapter_model.safetensors'));
  writeFileSync(join(checkpoint(1), 'adapter_model.safetensors'), 'torn');
  await expect((await record()).result(2)).rejects.toMatchObject(lost('the adapter', 1));
});

test('an adapter that no batch was sampled from and that is no candidate is not stored', async () => {
  const made = await record({ checkpointEvery: 3 });
  await made.addBatch(0, await batch('batch 1', 1));
  await made.addCheckpoint({ step: 1, policy: { adapter: checkpoint(1) } });
  await made.addBatch(1, await batch('batch 2', 2));
  await made.addCheckpoint({ step: 2, policy: { adapter: checkpoint(2) } });
  expect((await made.result(2)).checkpoints.map(({ step }) => step)).toEqual([2]);
  const stored = (step: number) => sha256(`adapter/t/step-${step}/${sha256(`weights ${step}`)}`);
  const keys = join(root, 'artifacts', 'keys');
  const isStored = (key: string) => existsSync(join(keys, key.slice(0, 2), `${key}.json`));
  expect([1, 2].map((step) => isStored(stored(step)))).toEqual([false, true]);
});
