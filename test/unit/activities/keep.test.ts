/** What workflows hand to the store and read of it again: nothing is lost on the way, in no order but theirs, and no more at once than a payload takes. */
import * as results from '../../../src/activities/results';
import { writeFileSync, chmodSync } from 'node:fs';
import { join } from 'node:path';
import { summaryOf } from '../../../src/training/result';
import { openFolderStore } from '../../../src/artifacts/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import type { ArmOutcome, CapabilityResult, Checkpoint, Iteration, KeptRecord } from '../../../src/domain/results';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
const opened = () => openFolderStore(home);

const ref = (name: string): ArtifactRef => ({ uri: `artifact:${name}`, sha256: name, bytes: 1, mediaType: 'x' });
const inPieces = async (value: unknown, characters = 100): Promise<ArtifactRef> => {
  const pieces: ArtifactRef[] = [];
  for (const text of JSON.stringify(value).match(new RegExp(`.{1,${characters}}`, 'gsu')) ?? [])
    pieces.push(await results.keepPiece({ store: opened() }, { text }));
  return results.keepResult({ store: opened() }, { pieces });
};
const iteration = (step: number, successRate: number): Iteration => ({
  ...{ step, rollouts: 10 * step, policy: { base: 'b', adapters: [{ ref: ref(`adapter ${step}`), weight: 1 }] } },
  heldOut: { ref: ref(`batch ${step}`), scored: 1000, successRate, meanReward: successRate } as Iteration['heldOut'],
});
const outcome: ArmOutcome = { iterations: [iteration(1, 0.2), iteration(2, 0.5), iteration(3, 0.9)] };

test.each([50, 100_000])(
  'a result in pieces of %d characters is whole again, in its own order, and says what it names',
  async (size) => {
    const value = { z: 1, a: ['„hier“ 🙂\n"\\', null], arm: outcome };
    const kept = await inPieces(value, size);
    expect((await opened().read(kept)).toString('utf8')).toBe(JSON.stringify(value));
    const { producer, inputs } = await opened().provenance(kept);
    expect(producer).toBe('keepResult');
    expect(inputs.map(({ sha256 }) => sha256)).toEqual(
      [1, 2, 3].flatMap((step) => [`adapter ${step}`, `batch ${step}`]),
    );
  },
);

test('the best iteration is that of the budget, as the whole list has it', async () => {
  const result = await inPieces(outcome);
  const [, second, third] = outcome.iterations;
  // Where trace spent none there is nothing to be equal to.
  for (const [rollouts, best] of [[20, second] as const, [9, null] as const, [0, third] as const])
    expect(await results.bestIteration({ store: opened() }, { result, rollouts })).toEqual(best);
});

test('checkpoints are read a few at a time, a long prompt alone, and all of them', async () => {
  const long = { text: 'x'.repeat(50_000), place: 'before' as const };
  const checkpoints: Checkpoint[] = Array.from({ length: 400 }, (_, n) => ({
    ...{ step: n + 1, policy: { base: 'b', adapters: [{ ref: ref(`adapter ${n}`), weight: 1 }] } },
    ...(n === 200 && { policy: { base: 'b', adapters: [], prompt: long }, rollouts: 7 }),
  }));
  const figures = { steps: 400, rollouts: 1, brokenRollouts: 0, promptTokens: 1, completionTokens: 1 };
  const store = opened();
  const training = await summaryOf(store, { ...figures, metrics: ref('metrics'), checkpoints });
  expect(training).toEqual({ ...figures, metrics: ref('metrics'), checkpoints: expect.any(Object) as object });
  const read: Checkpoint[] = [];
  while (read.length < 400) {
    const page = await results.readCheckpoints({ store }, { checkpoints: training.checkpoints, from: read.length });
    expect(page.total).toBe(400);
    if (page.checkpoints.length > 1) expect(JSON.stringify(page).length).toBeLessThan(40_000);
    read.push(...page.checkpoints);
  }
  expect(read).toEqual(checkpoints);
});

test('the record has what its children came to, and of one that came to nothing what the campaign knows', async () => {
  const whole = { workflowId: 'c', startedAt: 1, finishedAt: 2, stageSeconds: { router: 1 } };
  const trained = { name: 'a', workflowId: 'c/a', status: 'not_calibrated', reason: 'too hard', rounds: [] } as const;
  const failed = { name: 'b', workflowId: 'c/b', status: 'failed', reason: 'its code' } as const;
  const arm = {
    name: 'arm',
    kind: 'environments',
    workflowId: 'c/arm',
    status: 'failed',
    routable: false,
    rollouts: 30,
  };
  const kept = {
    ...whole,
    capabilities: [
      { ...trained, rounds: undefined, result: await inPieces({ ...trained, rounds: [{ round: 1 }] }) },
      failed,
    ],
    arms: [{ ...arm, reason: 'none within', result: await inPieces(outcome) }],
  };
  const record = await results.readRecord(opened(), await inPieces(kept as unknown as KeptRecord));
  expect(record).toEqual({
    ...whole,
    capabilities: [{ ...trained, rounds: [{ round: 1 }] }, { ...failed, rounds: [] } satisfies CapabilityResult],
    arms: [{ ...arm, reason: 'none within', iterations: outcome.iterations }],
  });
});

test('a result that is damaged in the store is said so, and kept again by whoever comes to it again', async () => {
  const value = { iterations: [iteration(1, 0.123)] };
  const result = await inPieces(value);
  const path = join(home, 'objects', result.sha256.slice(0, 2), result.sha256);
  chmodSync(path, 0o644);
  writeFileSync(path, 'damaged');
  const best = () => results.bestIteration({ store: opened() }, { result, rollouts: 10 });
  await expect(best()).rejects.toMatchObject({ type: 'ArtifactDamaged' });
  expect(await inPieces(value)).toEqual(result);
  expect(await best()).toEqual(value.iterations[0]);
});
