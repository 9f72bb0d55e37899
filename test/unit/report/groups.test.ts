/** Success of each arm by group of tasks: which tasks belong to a group, and which rollouts each figure is over. */
import { groupsOf } from '../../../src/report/build/groups';
import { lineage } from '../../../src/report/lineage';
import { completeReport } from '../../../src/report/render';
import { readTaskMeans } from '../../../src/rollout/read';
import { reportFixture } from '../../support/report-fixture';
import { scoredRollout } from '../../support/scored-rollout';
import { campaignStore } from './stored';

const { store, keepRollouts } = campaignStore();

const level = { confidence: 0.95, seed: 1 };
const tasks = [
  { id: 'airline/1', split: 'test' as const, groups: ['airline'] },
  { id: 'airline/2', split: 'test' as const, groups: ['airline'] },
  { id: 'retail/1', split: 'test' as const, groups: ['retail', 'needs key'] },
  { id: 'retail/2', split: 'test' as const },
  { id: 'retail/never-run', split: 'test' as const, groups: ['elsewhere'] },
];

async function columns() {
  const rewards = { base: [0, 0.5, 1, 0], trace: [1, 1, 1, 0.25] };
  const means = Object.entries(rewards).map(async ([arm, values]) => {
    const records = values.map((reward, i) => scoredRollout({ name: arm + i, task: tasks[i]!.id, reward }));
    return [arm, await readTaskMeans(store, await keepRollouts(arm, records))] as const;
  });
  return new Map(await Promise.all(means));
}

test('one row a group with evaluated tasks; a figure leads back to its rollouts', async () => {
  const { groups = [] } = groupsOf({ columns: await columns(), tasks, level, id: 'groups' });
  const rates = groups.map(({ arms }) => arms.map((one) => one.successRate.value));
  expect(groups.map(({ group, tasks: n }, i) => [group, n, ...rates[i]!])).toEqual([
    ['airline', 2, 0, 1],
    ['needs key', 1, 1, 1],
    ['retail', 1, 1, 1],
  ]);
  const report = completeReport({ ...reportFixture(), groups });
  const found = await lineage({ store, report, start: 'groups.airline.trace.success_rate' });
  expect(found.totals).toMatchObject({ batches: 1, scored: 4, successes: 3 });
});

test('a target without groups has no such tables', async () => {
  const ungrouped = tasks.map(({ id, split }) => ({ id, split }));
  expect(groupsOf({ columns: await columns(), tasks: ungrouped, level, id: 'groups' })).toEqual({});
});
