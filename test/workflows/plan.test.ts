/** `campaign plan` counts the rollouts that the workflows ask for: the same campaign, run with activities that only count. */
import type { TestWorkflowEnvironment } from '@temporalio/testing';
import { countWork } from '../../src/cli/plan/estimate';
import type { RollOutInput } from '../../src/activities/types';
import { quiet, start, timeSkipping, withWorkers } from './environment';
import { config, fakeActivities, summary } from './fake-activities';

jest.setTimeout(120_000);
quiet();
let env: TestWorkflowEnvironment;
beforeAll(async () => {
  env = await timeSkipping();
});
afterAll(() => env?.teardown());

const tasks = { train: 17, validation: 5, router: 11, test: 13 };

const sizeOf = ({ tasks: set }: RollOutInput): number => (set.kind === 'plan' ? tasks[set.part] : set.count);

test('every purpose, rollout for rollout', async () => {
  const campaign = config({
    name: 'counted',
    rollouts: { perTask: 3 },
    calibration: { seeds: 7, rolloutsPerSeed: 4 },
    training: { steps: 10, checkpointEvery: 3, groupsPerStep: 2, groupSize: 8 },
    validation: { seeds: 6, trials: 2 },
    router: { trials: 2 },
    evaluation: { trials: 4 },
    arms: [
      { kind: 'grpo_target' },
      { kind: 'grpo_single' },
      { kind: 'joint' },
      { kind: 'environments', modules: '/somewhere' },
    ],
  });
  const made: Record<string, number> = {};
  const count = (purpose: string, rollouts: number) => (made[purpose] = (made[purpose] ?? 0) + rollouts);
  const { activities } = fakeActivities({
    rollOut: async (input) => {
      count(input.purpose, sizeOf(input) * input.attempts);
      return summary(input);
    },
  });
  const { prepare, train } = activities;
  activities.prepare = async (input) => ({ ...(await prepare(input)), tasks });
  activities.train = async (input) => {
    const trained = await train(input);
    count('training', trained.rollouts);
    return trained;
  };
  await withWorkers(env, activities, async () => (await start(env, { campaign })).result());
  const planned = countWork({ campaign, tasks, capabilities: 2 }).purposes;
  expect(made).toEqual(Object.fromEntries(planned.map(({ purpose, rollouts }) => [purpose, rollouts.low])));
});
