/** The rollout activity: rollouts that broke in a short outage are made again. */
import { createRolloutActivities } from '../../../src/activities';
import { openFolderStore } from '../../../src/store/open-store';
import { BATCH_ATTEMPTS, type FailureType, OutsideFailure } from '../../../src/domain/failures';
import type { TurnRequest } from '../../../src/policy/wire';
import { registry } from '../../support/kinds';
import { putPlan, rollOutInput, run } from '../../support/activity-inputs';
import { countingEnvironment, countingPolicy } from '../../support/counting-environment';
import { poolOf } from '../../support/environment-pool';
import { temporaryFolder } from '../../support/temporary-folder';

const home = temporaryFolder();
/** One attempt of the activity at two rollouts of a task. */
async function rolledOut(seed: number, faults: number, beforeTurn?: (request: TurnRequest) => void) {
  const store = openFolderStore(home);
  const environments = poolOf(async () => countingEnvironment());
  const client = countingPolicy(beforeTurn);
  const { rollOut } = createRolloutActivities({ store, home, python: '', kinds: registry, client, environments });
  const plan = await putPlan(store, ['n-1']);
  return run(rollOut, rollOutInput(plan, { store: await store.id(), seed, attempts: 2, maxBrokenShare: 0.1 }), {
    attempt: 9,
    faults,
  });
}

test('rollouts that broke in a short outage are made again by the next attempts, and stay broken in the last', async () => {
  const seeds = new Set<number>();
  let type: FailureType = 'PolicyServerBusy';
  // The first rollout is scored, the other one is not.
  const busy = ({ seed }: TurnRequest): void => {
    seeds.add(seed);
    if (seeds.size > 3) throw new OutsideFailure(type, 'come back later');
  };
  await expect(rolledOut(2, 0, busy)).rejects.toMatchObject({ type: 'RolloutsBroken', nonRetryable: false });
  expect(await rolledOut(2, BATCH_ATTEMPTS - 1, busy)).toMatchObject({ scored: 1, broken: 1 });
  // Failures that would come again are not retried.
  type = 'PolicyAnswerInvalid';
  seeds.clear();
  expect(await rolledOut(3, 0, busy)).toMatchObject({ scored: 1, broken: 1 });
  // The server is back.
  expect(await rolledOut(2, 0)).toMatchObject({ scored: 2, broken: 0 });
});
