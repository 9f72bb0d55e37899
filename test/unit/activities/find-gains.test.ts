/** Which adapters gain anything: on their own environments, or on the router's tasks, beyond chance, as the report's figures say it. */
import { createRolloutActivities } from '../../../src/activities';
import type { PolicyDependencies } from '../../../src/activities/context';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { run } from '../../support/activity-inputs';
import { registry } from '../../support/kinds';
import { putRollouts, scoredRollout } from '../../support/scored-rollout';
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
  const { findGains } = createRolloutActivities({ store, kinds: registry } as PolicyDependencies);
  const level = { confidence: 0.95, seed: 1 };
  const input = { store: await store.id(), adapters, ...level };
  expect(await run(findGains, input)).toEqual({
    gaining: ['on_its_own', 'on_the_target', 'together'],
  });
});
