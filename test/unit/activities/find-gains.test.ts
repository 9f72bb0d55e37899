/** Which adapters gain anything: on their own environments, or on the router's tasks, beyond chance, as the report's figures say it. */
import { createRolloutActivities } from '../../../src/activities';
import type { PolicyDependencies } from '../../../src/activities/context';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { differenceFigure } from '../../../src/report/build/figures';
import { readTaskMeans } from '../../../src/rollout/read';
import { putRollouts, run } from '../../support/activity-inputs';
import { scoredRollout } from '../../support/scored-rollout';
import { temporaryFolder } from '../../support/temporary-folder';

const store = openFolderStore(temporaryFolder());

/** One rollout of each of 40 tasks, of which so many succeed, from the first on or from the last. */
const batch = (name: string, successes: number, from: 'first' | 'last' = 'first'): Promise<ArtifactRef> =>
  putRollouts(
    store,
    name,
    Array.from({ length: 40 }, (_, n) => {
      const succeeds = from === 'first' ? n < successes : n >= 40 - successes;
      return scoredRollout({ name: `${name} ${n}`, task: `t${n}`, reward: succeeds ? 1 : 0 });
    }),
  );

test('a gain on either counts, a loss never, and what may be chance does not', async () => {
  const base = await batch('base', 10);
  const [low, much, little] = [await batch('own low', 8), await batch('own much', 20), await batch('own little', 12)];
  const [better, worse] = [await batch('matrix better', 20), await batch('matrix worse', 2)];
  const elsewhere = await batch('matrix elsewhere', 10, 'last');
  const from = (before: ArtifactRef, after: ArtifactRef) => ({ before, after });
  const heldOut = from(await batch('base held out', 4, 'last'), await batch('held out', 8, 'last'));
  const adapters = [
    { name: 'on_its_own', own: from(low, much), target: [from(base, worse)] },
    { name: 'on_the_target', own: from(much, low), target: [from(base, better)] },
    // Four of forty, none lost.
    { name: 'by_chance', own: from(low, little), target: [from(base, elsewhere)] },
    // The same four and, of the router's tasks, three others: seven of forty.
    { name: 'together', own: from(low, low), target: [heldOut, from(base, await batch('matrix three', 13))] },
    { name: 'nowhere', own: from(low, low), target: [from(base, base)] },
    { name: 'worse', own: from(much, low), target: [from(base, worse)] },
  ];
  const { findGains } = createRolloutActivities({ store } as PolicyDependencies);
  const level = { confidence: 0.95, seed: 1 };
  const figure = async (treatment: ArtifactRef, control: ArtifactRef) => {
    const [after, before] = [await readTaskMeans(store, treatment), await readTaskMeans(store, control)];
    return differenceFigure({ id: 'gain', treatment: after, control: before, level });
  };
  expect(await figure(much, low)).toMatchObject({
    value: 0.3,
    interval: { low: expect.closeTo(0.17, 1), high: expect.closeTo(0.44, 1) },
    test: { better: 12, worse: 0, p: expect.closeTo(2 ** -11, 12) },
  });
  expect(await figure(little, low)).toMatchObject({
    value: 0.1,
    interval: { low: expect.closeTo(-0.015, 3), high: expect.closeTo(0.19, 1) },
    test: { better: 4, worse: 0, p: 0.125 },
  });
  const input = { store: await store.id(), adapters, ...level };
  expect(await run(findGains, input)).toEqual({
    gaining: ['on_its_own', 'on_the_target', 'together'],
  });
});
