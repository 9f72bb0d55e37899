/** Several runs as one comparison: over runs and tasks, run by run, and what is refused. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { UserError } from '../../../src/cli/errors';
import { compareReports } from '../../../src/cli/report';
import { runSeeds, type RunOptions } from '../../../src/cli/run/command';
import { openFolderStore } from '../../../src/store/open-store';
import { pairedDifference } from '../../../src/domain/statistics';
import type { Comparison, Span } from '../../../src/report/comparison';
import type { Arm, ReportDraft, SolverMatrix } from '../../../src/report/model';
import { completeReport } from '../../../src/report/render';
import { shopParts } from '../../support/kinds';
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
function draftOf(o: { name: string; trainingSeed?: number; matrix: SolverMatrix; rollouts?: number }): ReportDraft {
  const draft = reportFixture();
  const { name, trainingSeed, matrix, rollouts = 3072 } = o;
  Object.assign(draft.campaign, { name, configSha256: `${name}`.padEnd(64, '0') });
  if (trainingSeed !== undefined) draft.campaign.trainingSeed = trainingSeed;
  draft.arms = draft.arms!.filter((arm) => matrix.options.includes(arm.name)).map((arm) => testedOn(arm, matrix));
  const baseline = draft.arms.find((arm) => arm.role === 'baseline')!;
  baseline.trainingRollouts = figure('arms.grpo_target.rollouts.training', rollouts, rollouts, { unit: 'count' });
  delete draft.comparisons;
  draft.solverMatrix = { ...draft.solverMatrix!, tasks: matrix.tasks.length, inline: matrix };
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
const compared = (...named: string[]) => compareReports({ home, named });
const three = () => {
  keep(draftOf({ name: 'demo', matrix: matrixOf(30, 28) }));
  keep(draftOf({ name: 'demo-s2', trainingSeed: 2, matrix: matrixOf(32, 20), rollouts: 2560 }));
  keep(draftOf({ name: 'demo-s3', trainingSeed: 3, matrix: matrixOf(28, 30) }));
  return compared('demo', 'demo-s2', 'demo-s3');
};

test('runs on other test tasks are compared on those that they share', async () => {
  const other = matrixOf(32, 20);
  keep(draftOf({ name: 'demo', matrix: matrixOf(30, 28) }));
  keep(
    draftOf({
      name: 'demo-2',
      matrix: { ...other, tasks: other.tasks.map((task, i) => (i < 30 ? `more-${i}` : task)) },
    }),
  );
  const some = await compared('demo', 'demo-2');
  expect(some.arms.map(({ successRate }) => ('tasks' in successRate ? successRate.tasks : 0))).toEqual([10, 10, 10]);
  // None of these ten is solved by any: that is no certainty.
  const [base] = some.arms;
  expect(base!.successRate).toMatchObject({ value: 0, low: 0, high: expect.closeTo(0.213, 3) });
  keep(draftOf({ name: 'demo-3', matrix: { ...other, tasks: other.tasks.map((task) => `more-${task}`) } }));
  const none = await compared('demo', 'demo-3');
  expect(none.differences).toEqual([]);
});

test('means over runs and tasks, with every run beside them', async () => {
  const { arms, differences, runs, level } = await three();
  expect(level).toBe(0.9);
  expect(runs.map(({ name, seed, trainingSeed }) => [name, seed, trainingSeed])).toEqual([
    ['demo', 1, 1],
    ['demo-s2', 1, 2],
    ['demo-s3', 1, 3],
  ]);
  const [base, trace, baseline] = arms;
  expect(base).toMatchObject({
    name: 'base',
    role: 'base',
    missing: [],
    successRate: { value: 0.25, runs: 3, tasks: 40 },
  });
  expect(base!.differenceToBase).toBeUndefined();
  expect(trace!.successRate.value).toBeCloseTo(0.75, 12);
  expect(trace!.differenceToBase!.value).toBeCloseTo(0.5, 12);
  expect(baseline!.trainingRollouts).toBeCloseTo((3072 + 2560 + 3072) / 3, 9);
  expect(baseline!.byRun.map(({ run, successRate }) => [run, successRate])).toEqual([
    ['demo', 0.7],
    ['demo-s2', 0.5],
    ['demo-s3', 0.75],
  ]);
  expect(differences.map(({ arm, against }) => [arm, against])).toEqual([
    ['trace', 'base'],
    ['trace', 'grpo_target'],
  ]);
  const { difference, byRun } = differences[1]!;
  expect(difference.value).toBeCloseTo((2 + 12 - 2) / 3 / TASKS, 12);
  // One run is behind: other runs may well be, too.
  expect(difference.low).toBeLessThan(0);
  expect(difference.high).toBeGreaterThan(difference.value);
  expect(byRun.map(({ test: { better, worse } = {} as never }) => [better, worse])).toEqual([
    [2, 0],
    [12, 0],
    [0, 2],
  ]);
  expect(byRun[1]!.test!.p).toBeCloseTo(2 / 2 ** 12, 12);
});

test('an arm counts in the runs that evaluated it, on tasks that it has a scored rollout of', async () => {
  keep(draftOf({ name: 'one', matrix: matrixOf(30, 28) }));
  const matrix = matrixOf(20, 28);
  const partial = {
    tasks: matrix.tasks,
    options: ['base', 'trace'],
    outcomes: matrix.outcomes.map((row) => row.slice(0, 2)),
  };
  partial.outcomes[0] = [1, null];
  const other = draftOf({ name: 'two', trainingSeed: 2, matrix });
  other.arms = other.arms!.filter(({ name }) => name !== 'grpo_target');
  other.solverMatrix!.inline = partial;
  keep(other);
  const comparison = await compared('one', 'two');
  const { arms, differences } = comparison;
  expect(arms.find(({ name }) => name === 'grpo_target')).toMatchObject({
    missing: ['two'],
    successRate: { runs: 1, tasks: 40 },
  });
  expect(arms.find(({ name }) => name === 'trace')!.successRate).toMatchObject({ runs: 2, tasks: 39 });
  expect(arms.find(({ name }) => name === 'base')!.successRate).toMatchObject({ runs: 2, tasks: 40 });
  expect(differences.map(({ difference: { runs, tasks } }) => [runs, tasks])).toEqual([
    [2, 39],
    [1, 40],
  ]);
});

test('runs that share both seeds are no independent draws: they count as one', async () => {
  keep(draftOf({ name: 'one', matrix: matrixOf(30, 28) }));
  keep(draftOf({ name: 'again', matrix: matrixOf(32, 20) }));
  const shared = await compared('one', 'again');
  const { difference, byRun } = shared.differences.at(-1)!;
  expect([difference.runs, byRun.map(({ run }) => run)]).toEqual([1, ['one', 'again']]);
  expect(difference.value).toBeCloseTo((2 + 12) / 2 / TASKS, 12);
});

test('of one training of each nothing is said about trainings, however far the two differ on the tasks', async () => {
  keep(draftOf({ name: 'one', matrix: matrixOf(34, 20) }));
  keep(draftOf({ name: 'again', matrix: matrixOf(34, 20) }));
  const shared = await compared('one', 'again');
  const pair = shared.differences.at(-1)!;
  expect(pair).toMatchObject({ standing: 'one_training', byRun: [{ test: { better: 14, worse: 0 } }, {}] });
  const alone = pairedDifference({ ...sides(34, 20), confidence: 0.9 });
  expect(pair.difference).toMatchObject({
    ...{ low: expect.closeTo(alone.low, 2), high: expect.closeTo(alone.high, 2), runs: 1 },
  });
});

/** The outcomes of the routed policy and the baseline, by task. */
const sides = (trace: number, baseline: number) => {
  const { tasks, outcomes } = matrixOf(trace, baseline);
  const column = (place: number) => new Map(tasks.map((task, n) => [task, outcomes[n]![place] as number]));
  return { treatment: column(1), control: column(2) };
};

describe('the spread between trainings', () => {
  const comparedRuns = async (solved: [number, number][]) => {
    const names = solved.map(([trace, baseline], n) => {
      keep(draftOf({ name: `run-${n}`, trainingSeed: n + 1, matrix: matrixOf(trace, baseline) }));
      return `run-${n}`;
    });
    return compared(...names);
  };

  test('is that of these runs: it widens the interval of a policy and of a difference, and decides who is ahead', async () => {
    const alike = await comparedRuns([[32, 20], [32, 20], [32, 20]]); // prettier-ignore
    const apart = await comparedRuns([[40, 20], [32, 20], [24, 20]]); // prettier-ignore
    const [width, widthApart] = [alike, apart].map(({ arms, differences }) => {
      const [base, trace] = arms.map(({ successRate }) => successRate as Span);
      const { difference, standing } = differences.at(-1)!;
      return { standing, spans: [base!, trace!, difference].map(({ low, high }) => high - low) };
    });
    expect([width!.standing, widthApart!.standing]).toEqual(['ahead', 'undecided']);
    // The base model is not trained.
    expect(widthApart!.spans[0]).toBe(width!.spans[0]);
    for (const place of [1, 2]) expect(widthApart!.spans[place]).toBeGreaterThan(1.5 * width!.spans[place]!);
  });
});

test('one policy that was sampled twice is said to be one', async () => {
  const sampled = (name: string, trainingSeed: number, isOne: boolean) => {
    const draft = draftOf({ name, trainingSeed, matrix: matrixOf(30, 28) });
    if (isOne) draft.arms!.find((arm) => arm.name === 'trace')!.sameAs = 'grpo_target';
    keep(draft);
    return name;
  };
  const all = await compared(sampled('a', 1, true), sampled('b', 2, true));
  expect(all.differences.map(({ standing }) => standing)).toEqual(['ahead', 'same_policy']);
  const some = await compared(sampled('c', 1, true), sampled('d', 2, false));
  expect(some.differences.at(-1)).toMatchObject({
    standing: 'undecided',
    byRun: [{ run: 'c', samePolicy: true }, { run: 'd' }],
  });
});

test('a large matrix is read from the store', async () => {
  const matrix = matrixOf(30, 28);
  const store = openFolderStore(join(home, 'artifacts'));
  const from = await store.put({
    ...{ key: 'm', producer: 'test', inputs: [], mediaType: 'application/json', body: JSON.stringify(matrix) },
  });
  const large = draftOf({ name: 'large', matrix });
  large.solverMatrix = { from, tasks: TASKS };
  keep(large);
  keep(draftOf({ name: 'other', trainingSeed: 2, matrix }));
  const { arms } = await compared('large', 'other');
  expect(arms.find(({ name }) => name === 'trace')!.successRate).toMatchObject({ value: 0.75, runs: 2 });
  large.solverMatrix = { from: { ...from, sha256: 'f'.repeat(64), uri: `artifact:${'f'.repeat(64)}` }, tasks: TASKS };
  keep(large);
  await expect(compared('large', 'other')).rejects.toThrow(UserError);
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

describe('one run a training seed', () => {
  const options = { temporalPort: 0, uiPort: 0, trainingSeeds: [1, 2, 3], json: true };
  /** What each run was given; they end with these codes, and leave a report. */
  async function ran(more: Partial<RunOptions>, ...codes: number[]) {
    const file = join(home, 'demo.yaml');
    writeFileSync(file, JSON.stringify({ name: 'demo', ...shopParts, baseModel: { path: 'base' } }));
    const given: RunOptions[] = [];
    const code = await runSeeds(file, { ...options, home, ...more }, async (_file, one) => {
      const { trainingSeed: seed } = one;
      keep(draftOf({ name: seed === 1 ? 'demo' : `demo-s${seed}`, matrix: matrixOf(30, 28) }));
      given.push(one);
      return codes[given.length - 1] ?? 0;
    });
    const comparison = join(home, 'demo', 'comparison.json');
    const kept = existsSync(comparison) && (JSON.parse(readFileSync(comparison, 'utf8')) as Comparison);
    const seeds = given.map(({ trainingSeed }) => trainingSeed);
    return { code, seeds, compared: kept && kept.runs.map(({ name }) => name) };
  }

  test('one after another, then their comparison beside the first', async () => {
    expect(await ran({})).toEqual({
      code: 0,
      seeds: [1, 2, 3],
      compared: ['demo', 'demo-s2', 'demo-s3'],
    });
  });

  test('the first that does not end well is the last; a stage before the last leaves nothing to compare', async () => {
    expect(await ran({}, 0, 130)).toEqual({ code: 130, seeds: [1, 2], compared: false });
    expect(await ran({ until: 'selection' })).toEqual({ code: 0, seeds: [1, 2, 3], compared: false });
  });

  test('one name for all is refused', async () => {
    await expect(ran({ name: 'x' })).rejects.toThrow('--name');
  });
});
