/** The rollout activity: what broke in a short outage is made again. */
import { createRolloutActivities } from '../../../src/activities';
import { openFolderStore } from '../../../src/store/open-store';
import { type FailureType, OutsideFailure } from '../../../src/domain/failures';
import type { TurnRequest } from '../../../src/policy/wire';
import { registry } from '../../support/kinds';
import { putPlan, rollOutInput, run } from '../../support/activity-inputs';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';
import { poolOf } from '../../support/environment-pool';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
const mockWaits: number[] = [];
jest.mock('node:timers/promises', () => ({
  ...jest.requireActual<object>('node:timers/promises'),
  setTimeout: async (ms: number) => void mockWaits.push(ms),
}));
/** Without the times in which chunks are collected, which are short or no whole numbers. */
const waited = () => mockWaits.splice(0).filter((ms) => ms >= 100 && Number.isInteger(ms));

/** One attempt of the activity at two rollouts of a task. */
async function rolledOut(seed: number, attempt: number, beforeTurn?: (request: TurnRequest) => void) {
  const store = openFolderStore(home);
  const environments = poolOf(async () => countingEnvironment());
  const client = countingPolicy(beforeTurn);
  const { rollOut } = createRolloutActivities({ store, home, python: '', kinds: registry, client, environments });
  const plan = await putPlan(store, ['n-1']);
  return run(rollOut, rollOutInput(plan, { store: await store.id(), seed, attempts: 2, maxBrokenShare: 0.1 }), {
    attempt,
  });
}

test('rollouts that broke in a short outage are made again, and stand as broken in the end, whatever attempt of the step it is', async () => {
  const seeds = new Set<number>();
  let type: FailureType = 'PolicyServerBusy';
  let asked = 0;
  // The first rollout is scored, the other one is not.
  const busy = ({ seed }: TurnRequest): void => {
    seeds.add(seed);
    if (seeds.size <= 3) return;
    asked += 1;
    throw new OutsideFailure(type, 'come back later');
  };
  const ended = async (seed: number) => ({ ...(await rolledOut(seed, 9, busy)), asked });
  expect(await ended(2)).toMatchObject({ scored: 1, broken: 1, asked: 5 });
  expect(waited()).toEqual([1000, 2000, 4000, 8000]);
  // What would come again is not waited for.
  [type, asked] = ['PolicyAnswerInvalid', 0];
  seeds.clear();
  expect(await ended(3)).toMatchObject({ scored: 1, broken: 1, asked: 1 });
  expect(waited()).toEqual([]);
  // The server is back.
  expect(await rolledOut(2, 1)).toMatchObject({ scored: 2, broken: 0 });
});
