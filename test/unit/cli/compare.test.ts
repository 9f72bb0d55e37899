/** Several runs as one comparison: over runs and tasks, run by run, and what is refused. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../../src/cli/errors';
import { compareReports } from '../../../src/cli/report';
import type { Arm, ReportDraft, SolverMatrix } from '../../../src/report/model';
import { completeReport } from '../../../src/report/render';
import { figure, reportFixture } from '../../support/report-fixture';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let home: string;
eachTemporaryFolder((folder) => (home = folder));

const TASKS = 40;
/** Solved by base, trace and the baseline: base a quarter, the others what the run says. */
const matrixOf = (trace: number, baseline: number): SolverMatrix => ({
  tasks: Array.from({ length: TASKS }, (_, i) => `test-${String(i).padStart(2, '0')}`),
  options: ['base', 'trace', 'grpo_target'],
  outcomes: Array.from({ length: TASKS }, (_, i) => [10, trace, baseline].map((solved) => Number(i < solved))),
});

/** A run: the fixture's arms of these three, with the outcomes of the matrix. */
function draftOf(o: { name: string; trainingSeed?: number; matrix: SolverMatrix }): ReportDraft {
  const draft = reportFixture();
  const { name, trainingSeed, matrix } = o;
  Object.assign(draft.campaign, { name, configSha256: `${name}`.padEnd(64, '0') });
  if (trainingSeed !== undefined) draft.campaign.trainingSeed = trainingSeed;
  draft.arms = draft.arms!.filter((arm) => matrix.options.includes(arm.name)).map((arm) => testedOn(arm, matrix));
  delete draft.comparisons;
  draft.solverMatrix = matrix;
  return draft;
}

function testedOn(arm: Arm, { options, outcomes }: SolverMatrix): Arm {
  const place = options.indexOf(arm.name);
  const solved = outcomes.filter((row) => row[place] === 1).length;
  const rest = { ...arm };
  delete rest.differenceToBase;
  const rate = { unit: 'fraction' as const, interval: { low: 0, high: 1, level: 0.9, method: 'wilson' } };
  return { ...rest, tasks: TASKS, successRate: figure(`arms.${arm.name}.success_rate`, solved / TASKS, TASKS, rate) };
}

const keep = (draft: ReportDraft, folder = join(home, draft.campaign.name)): string => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'report.json'), JSON.stringify(completeReport(draft)));
  return join(folder, 'report.json');
};
const compared = async (...named: string[]) => compareReports({ home, named });
/** Compares runs, each with what the routed policy and the baseline solve. */
const comparedRuns = (...solved: [trace: number, baseline: number][]) =>
  compared(
    ...solved.map(([trace, baseline], n) => {
      keep(draftOf({ name: `run-${n + 1}`, trainingSeed: n + 1, matrix: matrixOf(trace, baseline) }));
      return `run-${n + 1}`;
    }),
  );

test('runs on other test tasks are compared on those that they share', async () => {
  const other = matrixOf(32, 20);
  const renamed = (from: number) => ({ ...other, tasks: other.tasks.map((task, i) => (i < from ? `x${task}` : task)) });
  keep(draftOf({ name: 'demo', matrix: matrixOf(30, 28) }));
  keep(draftOf({ name: 'demo-2', matrix: renamed(30) }));
  const { arms } = await compared('demo', 'demo-2');
  expect(arms.map(({ successRate }) => successRate.n)).toEqual([10, 10, 10]);
  // The base model solves none of these ten: that is no certainty.
  expect(arms[0]!.successRate).toMatchObject({ value: 0, interval: { high: expect.closeTo(0.213, 3) } });
  keep(draftOf({ name: 'demo-3', matrix: renamed(TASKS) }));
  expect((await compared('demo', 'demo-3')).differences).toEqual([]);
});

test('means over runs and tasks, with every run beside them', async () => {
  const { arms, differences, runs, level } = await comparedRuns([30, 28], [32, 20], [28, 30]);
  expect(level).toBe(0.9);
  expect(runs).toMatchObject([1, 2, 3].map((trainingSeed) => ({ name: `run-${trainingSeed}`, seed: 1, trainingSeed })));
  const [base, trace, baseline] = arms;
  expect(base).toMatchObject({ role: 'base', successRate: { value: 0.25, n: 40 } });
  expect(base!.differenceToBase).toBeUndefined();
  expect(trace).toMatchObject({ successRate: { value: expect.closeTo(0.75) }, differenceToBase: { value: 0.5 } });
  expect(baseline!.byRun.map(({ successRate }) => successRate)).toEqual([0.7, 0.5, 0.75]);
  const { difference, byRun } = differences[1]!;
  expect(differences.map(({ arm, against }) => `${arm} ${against}`)).toEqual(['trace base', 'trace grpo_target']);
  expect(difference.value).toBeCloseTo((2 + 12 - 2) / 3 / TASKS, 12);
  // One run is behind: other runs may well be, too.
  expect(difference.interval!.low).toBeLessThan(0);
  expect(byRun.map((run) => Math.round(run.difference * TASKS))).toEqual([2, 12, -2]);
});

test('an arm counts in the runs that evaluated it, on tasks that it has a scored rollout of', async () => {
  keep(draftOf({ name: 'one', matrix: matrixOf(30, 28) }));
  const { tasks, outcomes } = matrixOf(20, 28);
  const matrix = {
    tasks,
    options: ['base', 'trace'],
    outcomes: [[1, null], ...outcomes.slice(1).map((row) => row.slice(0, 2))],
  };
  keep(draftOf({ name: 'two', trainingSeed: 2, matrix }));
  const { arms } = await compared('one', 'two');
  const [base, trace, baseline] = arms;
  expect(base).toMatchObject({ successRate: { n: 40 } });
  expect(trace).toMatchObject({ successRate: { n: 39, interval: { method: 'over tasks and 2 trainings' } } });
  expect(baseline).toMatchObject({
    byRun: [{ run: 'one' }],
    successRate: { n: 40, interval: { method: 'over tasks' } },
  });
});

test('of one training of each nothing is said about trainings, however far the two differ on the tasks', async () => {
  for (const name of ['one', 'again']) keep(draftOf({ name, matrix: matrixOf(34, 20) }));
  const { differences } = await compared('one', 'again');
  expect(differences.at(-1)).toMatchObject({
    standing: 'one_training',
    difference: { interval: { method: 'over tasks' } },
  });
});

test('the spread between trainings widens the interval of a policy and of a difference, and decides who is ahead', async () => {
  const read = ({ arms, differences }: Awaited<ReturnType<typeof compared>>) => {
    const spans = [...arms.slice(0, 2).map(({ successRate }) => successRate), differences.at(-1)!.difference];
    return {
      standing: differences.at(-1)!.standing,
      widths: spans.map(({ interval }) => interval!.high - interval!.low),
    };
  };
  const alike = read(await comparedRuns([32, 20], [32, 20], [32, 20]));
  const apart = read(await comparedRuns([40, 20], [32, 20], [24, 20]));
  expect([alike.standing, apart.standing]).toEqual(['ahead', 'undecided']);
  // The base model is not trained.
  expect(apart.widths[0]).toBe(alike.widths[0]);
  for (const place of [1, 2]) expect(apart.widths[place]).toBeGreaterThan(1.5 * alike.widths[place]!);
});

test('one policy that was sampled twice is said to be one', async () => {
  const names = ['a', 'b', 'c'];
  for (const [n, name] of names.entries()) {
    const draft = draftOf({ name, trainingSeed: n + 1, matrix: matrixOf(30, 28) });
    if (name !== 'c') draft.arms!.find((arm) => arm.name === 'trace')!.sameAs = 'grpo_target';
    keep(draft);
  }
  const standing = async (...named: string[]) => (await compared(...named)).differences.at(-1)!.standing;
  expect([await standing('a', 'b'), await standing('a', 'c')]).toEqual(['same_policy', 'undecided']);
});

test.each<[string, (draft: ReportDraft) => void]>([
  ['another target', (draft) => (draft.campaign.target = { name: 'shop', version: '1 (requests 3)' })],
  ['another base model', (draft) => (draft.campaign.baseModel = 'b')],
  [
    'no evaluation',
    (draft) => {
      for (const part of ['arms', 'solverMatrix', 'router'] as const) delete draft[part];
      Object.assign(draft.campaign, { status: 'completed', stage: 'selection' });
    },
  ],
])('%s is refused', async (_what, change) => {
  keep(draftOf({ name: 'one', matrix: matrixOf(30, 28) }));
  const draft = draftOf({ name: 'two', matrix: matrixOf(30, 28) });
  change(draft);
  keep(draft);
  await expect(compared('one', 'two')).rejects.toThrow(UserError);
});

test('the same report twice, and one that is not there are refused', async () => {
  const file = keep(draftOf({ name: 'one', matrix: matrixOf(30, 28) }));
  mkdirSync(join(home, 'empty'));
  for (const other of [file, 'two', join(home, 'empty')])
    await expect(compared('one', other)).rejects.toThrow(UserError);
});
