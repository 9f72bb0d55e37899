/** What a training keeps of itself: in its order, and without a gap. */
import { appendFileSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TrainingRecord } from '../../../src/training/result';
import { openFolderStore } from '../../../src/store/open-store';
import type { TrainingResult } from '../../../src/domain/results';
import type { RolloutSummary } from '../../../src/domain/rollout';
import { put } from '../../support/activity-inputs';
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
  const ref = await put(store(), name, JSON.stringify(name));
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
