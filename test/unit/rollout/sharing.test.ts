/** Batches of one setting that ask for some of the same rollouts: each is played once, whoever asks. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ArtifactStore } from '../../../src/store/store';
import type { RollOutOptions, RolloutBatch } from '../../../src/rollout/engine';
import { ROLLOUTS_MEDIA_TYPE } from '../../../src/rollout/read';
import { played } from '../../support/played';
import { countingBatch, damagedIn, withFiles } from '../../support/counting-batch';
import { temporaryStore } from '../../support/temporary-store';
import { countingPolicy } from '../../support/counting-environment';

let store: ArtifactStore;
temporaryStore((made) => (store = made));

const options = (changes: Partial<RollOutOptions> = {}) => countingBatch(store, changes);
const batchesBehind = async ({ summary }: Pick<RolloutBatch, 'summary'>) =>
  (await store.provenance(summary.ref)).inputs.filter(({ mediaType }) => mediaType === ROLLOUTS_MEDIA_TYPE);
/** Task "n-3" takes 5 turns: it looks, adds three times and says so. */
const turnsOf = (attempts: number, ...tasks: number[]) => tasks.reduce((sum, n) => sum + attempts * (n + 2), 0);

test('a batch takes what finished ones of its setting hold, plays the rest, and leads back to them', async () => {
  const first = await played(options({ tasks: ['n-0', 'n-1'] }));
  const second = await played(options({ tasks: ['n-4', 'n-5'], attempts: 1 }));
  const client = countingPolicy();
  const third = await played(options({ tasks: ['n-1', 'n-3', 'n-4'], purpose: 'outcome_matrix', client }));
  expect(third).toMatchObject({ reused: 3, summary: { scored: 6, broken: 0, reused: 3 } });
  expect(second.summary).not.toHaveProperty('reused');
  expect(client.turns).toBe(turnsOf(2, 3) + turnsOf(1, 4));
  const shared = third.records.filter(({ task }) => task === 'n-1');
  expect(shared).toEqual(first.records.filter(({ task }) => task === 'n-1'));
  expect(await batchesBehind(third)).toEqual([first.summary.ref, second.summary.ref]);

  const again = countingPolicy();
  const apart = await played(options({ tasks: ['n-0'], client: again }));
  expect([apart.reused, again.turns]).toEqual([2, 0]);
  expect(await batchesBehind(apart)).toEqual([first.summary.ref]);
});

test('a batch that is damaged is passed over, and one that was cut off before it was noted is not lost', async () => {
  const first = await played(options({ tasks: ['n-0', 'n-1'] }));
  const damaged = damagedIn(store, first.summary.ref);
  const client = countingPolicy();
  expect((await played(options({ store: damaged, tasks: ['n-1', 'n-3'], client }))).reused).toBe(0);
  expect(client.turns).toBe(turnsOf(2, 1, 3));

  const unnoted = withFiles(store, {
    create: (path, text) =>
      path.startsWith('batches/') ? Promise.reject(new Error('killed')) : store.files.create(path, text),
  });
  await expect(played(options({ store: unnoted, tasks: ['n-5'] }))).rejects.toThrow('killed');
  await played(options({ tasks: ['n-5'] }));
  expect((await played(options({ tasks: ['n-5', 'n-6'] }))).reused).toBe(2);
});

test('two that overlap run one after the other', async () => {
  const client = countingPolicy(() => sleep(1));
  const [first, second] = await Promise.all([
    played(options({ tasks: ['n-1', 'n-4'], client })),
    played(options({ tasks: ['n-2', 'n-4'], client })),
  ]);
  expect(client.turns).toBe(turnsOf(2, 1, 2, 4));
  expect([first.reused, second.reused].sort()).toEqual([0, 2]);
});
