/** Curves over a real store, as trainings leave it, and where a step is done again. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openFolderStore } from '../../../src/store/open-store';
import type { Rollout, RolloutSummary } from '../../../src/domain/rollout';
import { TrainingRecord } from '../../../src/training/result';
import { createCurves } from '../../../src/view/curves';
import { createIndex } from '../../../src/view/rollouts';
import type { ArtifactStore } from '../../../src/store/store';
import { brokenRollout, putRollouts, scoredRollout } from '../../support/scored-rollout';
import { eachTemporaryFolder } from '../../support/temporary-folder';
import { inSteps } from '../../support/stored-keys';

const ID = 'ab'.repeat(32);
let home: string;
let folder: string;
let store: ArtifactStore;
eachTemporaryFolder((made) => {
  home = made;
  folder = join(home, 'trainings', `ask_first-${ID.slice(0, 12)}`);
  mkdirSync(folder, { recursive: true });
  store = inSteps(openFolderStore(join(home, 'artifacts')), 'demo');
});

const curves = async () => {
  const index = createIndex({ store, campaign: 'demo' });
  await index.refresh();
  return createCurves({ store, campaign: 'demo', index })();
};

async function batch(title: string, rollouts: Rollout[], key = title): Promise<RolloutSummary> {
  const ref = await putRollouts(store, title, rollouts, { key });
  return { ref, scored: rollouts.length, broken: 0, promptTokens: 1, completionTokens: 1 } as RolloutSummary;
}
const rollout = (name: string, reward: number) => scoredRollout({ name, task: name, reward });

function training(): TrainingRecord {
  const about = { campaign: 'demo', name: 'ask_first', id: ID, folder, base: 'base@1', checkpointEvery: 5 };
  return new TrainingRecord({ store, ...about });
}
const tell = (lines: object[]) =>
  writeFileSync(join(folder, 'metrics.jsonl'), lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

test('a training that runs: what its learner says of each step that a marker has', async () => {
  const record = training();
  const first = await batch('ask_first: training step 1', [rollout('a', 1), brokenRollout('b')]);
  record.addBatch(0, first);
  tell([{ step: 1, loss: 0.5, reward: 0.75 }]);
  await record.addCheckpoint({ step: 1, policy: { base: true } });
  record.addBatch(1, await batch('ask_first: training step 2', [rollout('c', 0.5)]));
  tell([{ step: 1, loss: 0.5, reward: 0.75 }, { step: 2, loss: 0.25, reward: 'no number' }]); // prettier-ignore
  await record.addCheckpoint({ step: 2, policy: { base: true } });
  tell([{ step: 1, reward: 0.75 }, { step: 3, reward: 1 }]); // prettier-ignore
  await record.stored();
  expect(await curves()).toEqual({
    trainings: [
      {
        name: 'ask_first',
        curves: {
          points: [{ step: 1, reward: 0.75 }],
          loss: [{ step: 1, value: 0.5 }],
        },
        heldOut: [],
      },
    ],
    rollouts: { scored: 2, broken: 1 },
  });
});

test('held-out reward stands at every step that was evaluated', async () => {
  const record = training();
  record.addBatch(0, await batch('ask_first: training step 1', [rollout('a', 1)]));
  tell([{ step: 1, loss: 0.5, reward: 1 }]);
  await record.addCheckpoint({ step: 1, policy: { base: true } });
  await record.stored();
  await batch('ask_first: held out, base', [rollout('g', 0)]);
  await batch('ask_first: held out at step 2', [rollout('h', 1), rollout('i', 0)]);
  await batch('test: trace', [rollout('j', 1)]);
  const [one] = (await curves()).trainings;
  expect(one!.heldOut).toEqual([
    { step: 0, value: 0 },
    { step: 2, value: 0.5 },
  ]);
});
