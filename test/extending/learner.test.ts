/** The process protocol is no trainer's alone: a learner that compares prompts runs through the same activity code. */
import { Context } from '@temporalio/activity';
import { MockActivityEnvironment } from '@temporalio/testing';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { LearnerProcess } from '../../src/training/learner-process';
import { Learning } from '../../src/training/run-learner';
import { TrainingRecord } from '../../src/training/result';
import { openFolderStore } from '../../src/store/open-store';
import { progress } from '../../src/activities/heartbeat';
import type { ArtifactStore } from '../../src/store/store';
import type { TrainHeartbeat } from '../../src/domain/work';
import type { TrainingResult } from '../../src/domain/results';
import { countingEnvironment } from '../support/counting-environment';
import { scriptedPolicy, turnOf } from '../support/scripted-policy';
import { eachTemporaryFolder } from '../support/temporary-folder';

const learner = resolve(__dirname, '..', 'fixtures', 'learners', 'two-prompts.mjs');
let folder: string;
eachTemporaryFolder((made) => (folder = made));

/** Adds up to what is asked only where its prompt says that it shall count. */
const promptable = scriptedPolicy(({ messages }) => {
  const counts = messages.some(({ role, content }) => role === 'system' && content.startsWith('count'));
  const wanted = Number(messages.find(({ role }) => role === 'user')!.content.slice('n-'.length));
  const turn = turnOf(messages);
  if (!counts || turn >= wanted) return { role: 'assistant', content: 'done' };
  return { role: 'assistant', content: '', toolCalls: [{ id: `call_${turn}`, name: 'add', arguments: {} }] };
});

function learningOf(store: ArtifactStore): Learning {
  const kept = { base: 'base@1', checkpointEvery: 2 };
  return new Learning({
    show: progress,
    onDurable: () => undefined,
    signal: Context.current().cancellationSignal,
    deps: { store, client: promptable, home: folder },
    name: 'two-prompts',
    folder,
    record: new TrainingRecord({ store, campaign: 'one', name: 'two-prompts', id: 'two-prompts', folder, ...kept }),
    process: new LearnerProcess({
      command: [process.execPath, learner, folder, 'n-3'],
      log: join(folder, 'learner.log'),
      env: {},
      limits: { stallSeconds: 30 },
    }),
    ...kept,
    batch: {
      campaign: 'one',
      environment: countingEnvironment({ system: ['add .'] }),
      sampling: { temperature: 1, topP: 1, maxTokens: 16 },
      seed: 1,
      concurrency: 2,
      maxAttempts: 1,
      maxSteps: 8,
      inputs: [],
      maskReadOnlyTurns: true,
      everyStepAnew: false,
    },
    steps: 2,
  });
}

test('a learner that reads conversations comes to a prompt', async () => {
  const store = openFolderStore(join(folder, 'store'));
  const activity = new MockActivityEnvironment();
  const beats: TrainHeartbeat[] = [];
  activity.on('heartbeat', (beat: TrainHeartbeat) => beats.push({ ...beat }));

  const result: TrainingResult = await activity.run(() => learningOf(store).run());

  expect(result).toMatchObject({ steps: 2, rollouts: 4, brokenRollouts: 0 });
  expect(result.checkpoints).toEqual([
    {
      step: 2,
      policy: { base: 'base@1', adapters: [], prompt: { text: 'count before you answer .', place: 'before' } },
    },
  ]);
  // The whole conversation was there to read: system, user, three calls with their answers, the last word and the user's.
  const metrics = readFileSync(join(folder, 'metrics.jsonl'), 'utf8').trim().split('\n');
  expect(metrics.map((line) => JSON.parse(line) as object)).toEqual([
    { step: 1, reward: 0, turns: 4 },
    { step: 2, reward: 1, turns: 10 },
  ]);
  expect(String(await store.read(result.metrics)).trim()).toBe(metrics.join('\n'));
  // The metrics lead back to what was rolled out for them.
  expect((await store.provenance(result.metrics)).inputs).toHaveLength(2);
  expect(beats.at(-1)).toMatchObject({ kind: 'train', step: 2, steps: 2, reward: 1 });
});
