/** Seeds whose instances say a test task's text: nobody uses them, and the next ones take their places. */
import { createControlActivities } from '../../../src/activities';
import { EnvironmentPool } from '../../../src/activities/environments';
import { leftOut, resolveTasks, testTexts } from '../../../src/activities/tasks';
import { openFolderStore } from '../../../src/store/open-store';
import type { ArtifactRef } from '../../../src/domain/artifacts';
import { sandboxSpec } from '../../../src/domain/kinds';
import { createShop } from '../../../examples/shop/target/shop';
import { registry } from '../../support/kinds';
import { putModule, run, shopTestTask } from '../../support/activity-inputs';
import { temporaryFolder } from '../../support/temporary-folder';

// A self-test plays a hundred seeds, which takes long on a busy machine.
const home = temporaryFolder();
const store = openFolderStore(home);
const environments = new EnvironmentPool(store, registry.environments);
afterAll(() => environments.close());
const progress = () => undefined;
const target = { kind: 'shop' };

/** The user says the test task where `says` holds of the seed, the user's second words where `later` does. */
async function moduleOf({ says = 'false', later = 'false' }: { says?: string; later?: string }) {
  const text = JSON.stringify((await shopTestTask()).text);
  return putModule(
    store,
    `
    export const describe = () => ({ policy: 'p', tools: [], maxSteps: 3 });
    export const make = (seed) => ({ seed, said: ${says} ? ${text} : 'write about ' + seed, right: false });
    export const start = ({ said }) => [{ role: 'user', content: said }];
    export const step = (state, { content }) => {
      const { seed } = state;
      const thanks = ${later} ? ${text} : 'thanks';
      return { state: { ...state, right: content === 'about ' + seed }, messages: [{ role: 'user', content: thanks }], done: true };
    };
    export const reward = ({ right }) => ({ reward: right ? 1 : 0, breakdown: {} });
    export const reference = () => ({ actions: [], tell: [] });
    export const solve = (seed) => [{ role: 'assistant', content: 'about ' + seed }];`,
  );
}
const outOf = (module: ArtifactRef, range = { from: 0, count: 8 }) =>
  leftOut({ store, environments, progress }, { module, unlike: target, range });

test('a pair is left out where the user says it, at once or later', async () => {
  expect(await outOf(await moduleOf({}))).toEqual([]);
  expect(await outOf(await moduleOf({ says: 'seed === 3' }))).toEqual([2, 3]);
  expect(await outOf(await moduleOf({ later: 'seed === 4' }))).toEqual([4, 5]);
  // Only what is needed is looked at; what takes the places is looked at as well.
  expect(await outOf(await moduleOf({ says: '[3, 8, 40].includes(seed)' }))).toEqual([2, 3, 8, 9]);
});

test('the tasks of a batch are the seeds that are left, and the same whoever asks', async () => {
  const environment = sandboxSpec(await moduleOf({ says: 'seed === 3' }));
  const resolved = (unlike?: typeof target) =>
    resolveTasks(
      { store, environments },
      { environment, tasks: { kind: 'seeds', from: 0, count: 4, ...(unlike && { unlike }) } },
    );
  expect(await resolved(target)).toEqual(['seed-0', 'seed-1', 'seed-4', 'seed-5']);
  expect(await resolved(target)).toEqual(await resolved(target));
  expect(await resolved()).toEqual(['seed-0', 'seed-1', 'seed-2', 'seed-3']);
});

test('test tasks are read once for all workers', async () => {
  // As of one whose user a model plays: a look asks nobody.
  const seen = (change = '') => ({
    ...createShop(),
    appearance: { task: async ({ id }: { id: string }) => ({ id, change }) },
  });
  const texts = await testTexts({ store, environment: seen(), progress });
  const silent = (change?: string) => ({ ...seen(change), reset: () => Promise.reject(new Error('asked again')) });
  expect(await testTexts({ store, environment: silent(), progress })).toEqual(texts);
  await expect(testTexts({ store, environment: silent('other'), progress })).rejects.toThrow('asked again');
});

test('the self-test sends a module back where more than a third of its instances says one', async () => {
  const { selfTest } = createControlActivities({ store, environments, kinds: registry, home, python: 'python3' });
  const tested = async (says: string) => {
    const module = await moduleOf({ says });
    return (await run(selfTest, { module, unlike: target, campaign: 'one', budget: {} })).findings;
  };
  expect(await tested('seed % 4 === 3')).toEqual([]);
  expect(await tested('seed % 2 === 1')).toEqual([
    expect.stringMatching(
      /^start: on \d+ of 102 seeds the text of a task is said that must not be known, e\.g\. by a user on seed 1:/,
    ),
  ]);
});
