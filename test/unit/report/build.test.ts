/** A report from a campaign's record and the artifacts behind it: what each figure is of, and what each arm has cost. */
import { figuresIn } from '../../../src/domain/artifacts';
import { calibrate } from '../../../src/domain/calibration';
import type { Purpose, Rollout } from '../../../src/domain/rollout';
import type { Report, ReportDraft } from '../../../src/report/model';
import type { ArmResult, CampaignRecord, CapabilityResult } from '../../../src/domain/results';
import { normalQuantile } from '../../../src/domain/statistics';
import { buildReport } from '../../../src/report/build/report';
import { lineage } from '../../../src/report/lineage';
import { completeReport } from '../../../src/report/render';
import { brokenRollout, scoredRollout } from '../../support/scored-rollout';
import { startedCampaign } from './stored';
import { store, summaryOf, one, two, LEVEL, recordsOf, batch, calibrationOf, fullRecord } from './record';

const draftOf = (of: CampaignRecord) => buildReport({ store, record: of, tasks: [], spent: [] });
const built = async (of: CampaignRecord): Promise<Report> => completeReport(await draftOf(of));
const armOf = ({ arms }: ReportDraft, name: string) => arms!.find((arm) => arm.name === name)!;
const rowOf = ({ rollouts }: ReportDraft, purpose: Purpose) =>
  rollouts!.byPurpose.find((row) => row.purpose === purpose)!;

/** The record with another baseline. */
const withBaseline = (change: (arm: ArmResult) => ArmResult): CampaignRecord => ({
  ...record,
  arms: record.arms!.map((arm) => (arm.name === 'theirs' ? change(arm) : arm)),
});
/** The record with another first capability. */
function withCapability(change: Partial<CapabilityResult>): CampaignRecord {
  const [first, ...others] = record.capabilities!;
  return { ...record, capabilities: [{ ...first!, ...change }, ...others] };
}

/** The record as it was after the first stage. */
const earlyOf = ({ campaign, baseRollouts, prepared, stageSeconds }: CampaignRecord): CampaignRecord => {
  return { ...startedCampaign(baseRollouts), campaign, prepared, stageSeconds };
};

let record: CampaignRecord;
let report: Report;
beforeAll(async () => {
  record = await fullRecord();
  report = await built(record);
});

test('a warning about the first rollouts is gone where a later one got a reward; a problem stays', async () => {
  const baseCheck = { rollouts: record.baseRollouts.ref, problems: ['a problem'], warnings: ['no reward'] };
  const findings = async (meanReward: number) => {
    const baseRollouts = { ...record.baseRollouts, meanReward };
    return (await draftOf({ ...record, baseCheck, baseRollouts })).baseCheck?.findings;
  };
  expect(await findings(0)).toEqual(['a problem', 'no reward']);
  expect(await findings(0.01)).toEqual(['a problem']);
});

test('every arm has its role; one that came to nothing is a row with its reason', () => {
  expect(report.arms!.map(({ name, role, status }) => [name, role, status])).toEqual([
    ['base', 'base', 'completed'],
    [one, 'adapter', 'completed'],
    ['trace', 'routed', 'completed'],
    ['theirs', 'baseline', 'completed'],
    ['other', 'baseline', 'failed'],
    ['oracle', 'oracle', 'completed'],
  ]);
  expect(armOf(report, 'theirs').kind).toBe('grpo_target');
  expect(armOf(report, 'other')).toMatchObject({ reason: 'no such option', trainingRollouts: { value: null } });
  expect(armOf(report, 'oracle').successRate!.value).toBe(0.5);
  expect(report.comparisons!.map(({ arm, against, difference }) => [arm, against, difference.n])).toEqual([
    ['trace', 'theirs', 3],
  ]);
});

test('rollouts: spent on training, and all that was spent to come to it', () => {
  const spent = (name: string) => {
    const { trainingRollouts, allRollouts } = armOf(report, name);
    return [trainingRollouts.value, allRollouts.value];
  };
  // Calibration 6, training 40, held out 5 + 5, base on its seeds 3, itself on the target 5.
  const adapter = 6 + 40 + 5 + 5 + 3 + 5;
  expect(spent('base')).toEqual([0, 0]);
  expect(spent(one)).toEqual([40, adapter]);
  // Base rollouts 7, base held out 5, outcome matrix 3 + 3.
  expect(spent('trace')).toEqual([40, 7 + 5 + adapter + 6]);
  expect(spent('oracle')).toEqual([40, 7 + 5 + adapter]);
  // Training, and its held-out evaluations.
  expect(spent('theirs')).toEqual([40, 40 + 5 + 5]);
});

test('what failed after its training has spent it, is no arm for that, and is said', async () => {
  const [{ best, validation, ...capability }, second] = record.capabilities as [CapabilityResult, CapabilityResult];
  expect([best, validation]).not.toContain(undefined);
  const changed = withBaseline(({ name, kind, workflowId, work }) => {
    return { name, kind, workflowId, status: 'failed', work: { training: work!.training, iterations: [] } };
  });
  const failed: CapabilityResult = { ...capability, status: 'failed', reason: 'RolloutsBroken: many' };
  const draft = await built({ ...changed, capabilities: [failed, second] });
  expect(draft.arms!.map(({ role }) => role)).not.toContain('adapter');
  // Base rollouts 7, base held out 5, calibration 6, training 40, held out 5 + 5, outcome matrix 3 + 3.
  expect(armOf(draft, 'trace')).toMatchObject({ trainingRollouts: { value: 40 }, allRollouts: { value: 74 } });
  expect(armOf(draft, 'theirs')).toMatchObject({ trainingRollouts: { value: null }, allRollouts: { value: 40 } });
  expect(rowOf(draft, 'training').scored.value).toBe(80);
  const [first] = draft.capabilities!;
  expect(first!.training).toMatchObject({ steps: 4, bestStep: undefined });
  expect(first).not.toHaveProperty('validation');
});

const own = 40 + 5 + 5;
test.each<[string, (arm: ArmResult) => ArmResult, object]>([
  [
    'trained beyond the rollouts of trace: that counts for nothing',
    ({ work, ...arm }) => ({
      ...arm,
      work: {
        iterations: [...work!.iterations, { ...work!.iterations[1]!, step: 6, rollouts: 60 }],
        training: { ...work!.training, rollouts: 60 },
      },
    }),
    { trainingRollouts: { value: 40 }, training: { rollouts: { value: 60 }, bestStep: 2 } },
  ],
  [
    'took over environments: it names the capabilities, and counts what these took to calibrate',
    (arm) => ({ ...arm, builtOn: [one] }),
    { builtOn: [one], allRollouts: { value: own + 6 } },
  ],
  [
    'has two iterations of equal weights that share a batch, which is counted once',
    ({ work, ...arm }) => {
      const [first, second] = work!.iterations;
      return { ...arm, work: { ...work!, iterations: [first!, { ...second!, heldOut: first!.heldOut }] } };
    },
    { allRollouts: { value: own - 5 } },
  ],
])('a baseline that %s', async (_, change, expected) => {
  const changed = withBaseline(change);
  const draft = await draftOf(changed);
  expect(armOf(draft, 'theirs')).toMatchObject({ allRollouts: { value: own }, ...expected });
  const heldOut = new Set(changed.arms![0]!.work!.iterations.map((each) => each.heldOut.ref.sha256)).size;
  expect(rowOf(draft, 'held_out').scored.value).toBe(rowOf(report, 'held_out').scored.value! - 5 * (2 - heldOut));
});

test('a rollout that batches share is counted once, for what it was first for, and the purposes add up', async () => {
  const [matrix, ...others] = record.router!.policies;
  // Of base: five rollouts of the held-out evaluation, where it broke at one, and three of its own.
  const heldOut = await recordsOf(record.baseHeldOut!);
  const [{ key, task }, ...scored] = heldOut as [Rollout, ...Rollout[]];
  const broken = { ...brokenRollout(task, 'EnvironmentDied', 'gone'), key };
  const baseHeldOut = await summaryOf('held_out', 'base held out, one broken', [broken, ...scored]);
  const all = [...heldOut, ...(await recordsOf(matrix!.rollouts))];
  const shared = await summaryOf('outcome_matrix', 'matrix shared', all);
  const router = { ...record.router!, policies: [{ ...matrix!, rollouts: shared }, ...others] };
  const once = await built({ ...record, baseHeldOut, router });
  const counts = (of: Report, purpose: Purpose) => [rowOf(of, purpose).scored.value!, rowOf(of, purpose).broken.value];
  const [ofHeldOut] = counts(report, 'held_out') as [number];
  const [ofMatrix] = counts(report, 'outcome_matrix') as [number];
  expect(counts(once, 'held_out')).toEqual([ofHeldOut - 1, 0]);
  expect(counts(once, 'outcome_matrix')).toEqual([ofMatrix + 1, 0]);
  expect(once.rollouts!.brokenByError.map(({ errorType }) => errorType)).toEqual(['RouterFailed']);
  for (const field of ['scored', 'broken', 'promptTokens', 'completionTokens'] as const) {
    const sum = once.rollouts!.byPurpose.reduce((before, row) => before + row[field]!.value!, 0);
    const total = field === 'scored' || field === 'broken' ? report.rollouts![field] : report.cost![field];
    expect([field, sum]).toEqual([field, total.value]);
  }
  expect([once.rollouts!.scored.n, once.rollouts!.scored.value, once.rollouts!.broken.value]).toEqual([
    report.rollouts!.scored.n,
    report.rollouts!.scored.value,
    report.rollouts!.broken.value,
  ]);
  const { value, n } = armOf(report, 'trace').allRollouts;
  expect(armOf(once, 'trace').allRollouts).toMatchObject({ value, n });
  const totals = async (start: string) => (await lineage({ store, report: once, start })).totals;
  expect(await totals('rollouts.held_out.scored')).toMatchObject({ broken: 1 });
  expect(await totals('arms.trace.rollouts.all')).toMatchObject({ scored: value! - 40, broken: 0 });
});

describe('what a rollout took', () => {
  const secondsOf = async (of: CampaignRecord) => (await built(of)).cost?.secondsPerRollout;

  /** With a batch of 7 base rollouts that took 14 s in the attempt that finished it. */
  const withBase = (reused = 0): CampaignRecord => ({
    ...record,
    baseRollouts: { ...record.baseRollouts, seconds: 14, reused },
  });

  test('base rollouts by the attempt that finished them, a training by its own clock and those beside it', async () => {
    const { groupsPerStep, groupSize } = record.campaign.training;
    const training = 10 / (groupsPerStep * groupSize);
    expect(await secondsOf(withBase())).toEqual({ rollout: expect.closeTo(2), training });
    const workers = { ...record.campaign.workers, gpuSlots: 8 };
    const beside = { ...record, campaign: { ...record.campaign, workers } };
    expect(await secondsOf(beside)).toMatchObject({ training: training / 2 });
  });

  test('rollouts of earlier attempts do not count; where most are of those, nothing is measured', async () => {
    expect(await secondsOf(withBase(3))).toMatchObject({ rollout: 14 / 4 });
    expect((await secondsOf(withBase(6)))?.rollout).toBeUndefined();
    expect(await secondsOf(earlyOf(withBase(7)))).toBeUndefined();
  });
});

test('iterations carry success and mean reward on held-out tasks, and the rollouts until them', () => {
  const { iterations, bestStep, rewardCurve } = armOf(report, 'theirs').training!;
  expect(iterations.map((i) => [i.step, i.rollouts.value, i.successRate.value, i.meanReward.value])).toEqual([
    [2, 20, 0.4, 0.4],
    [4, 40, 1, 1],
  ]);
  expect([bestStep, rewardCurve!.points.length]).toEqual([2, 4]);
  expect(['base', one, 'theirs'].map((name) => armOf(report, name).heldOut!.value)).toEqual([0.2, 0.4, 0.4]);
});

test('calibration is shown as it was decided; a round whose self-test failed has its findings alone', () => {
  const [first, second] = report.capabilities![0]!.rounds!;
  const { module } = record.capabilities![0]!.rounds[0]!;
  expect(first).toEqual({ round: 1, selfTest: { passed: false, findings: ['doing nothing scores 1.0'] }, module });
  const groups = [
    [1, 0],
    [0, 1],
    [0.5, 0],
  ].map((rewards) => ({ rewards }));
  const expected = calibrate({ groups, bands: record.campaign.calibration, confidence: LEVEL });
  expect(second!.calibration).toMatchObject({
    verdict: expected.verdict,
    meanReward: { value: expected.meanReward, n: 3, interval: expected.intervals.meanReward },
  });
});

describe('with branches', () => {
  type RewardOf = (seed: number, branch: string) => number;
  /** 48 held-out seeds: 34 forbidden, 14 allowed twins. */
  const onSeeds = (purpose: Purpose, title: string, rewardOf: RewardOf) => {
    const rollouts = Array.from({ length: 48 }, (_, seed) => {
      const branch = seed < 34 ? 'special' : 'twin';
      return scoredRollout({ name: `${title} ${seed}`, task: `seed-${seed}`, reward: rewardOf(seed, branch), branch });
    });
    return summaryOf(purpose, title, rollouts);
  };
  const withBranches = async (after: RewardOf, title: string): Promise<Report> => {
    const [first] = record.capabilities!;
    const before = await onSeeds('held_out', `${title}: base`, (_, branch) => Number(branch === 'twin'));
    const heldOut = await onSeeds('held_out', `${title}: best`, after);
    const best = { ...first!.best!, heldOut };
    const { training } = first!.work!;
    const calibrationRollouts = await onSeeds('calibration', `${title}: calibration`, (seed, branch) =>
      branch === 'twin' || seed % 3 === 0 ? 1 : 0.1,
    );
    const rounds = [
      { ...first!.rounds[1]!, calibration: await calibrationOf(calibrationRollouts), calibrationRollouts },
    ];
    const validation = { ...first!.validation!, synthesized: { before, after: heldOut } };
    return built(withCapability({ rounds, work: { training, iterations: [best] }, best, validation }));
  };

  test('an adapter that says "not allowed" in 47 of 48 episodes is gamed, whatever the target says', async () => {
    const gamed = await withBranches((seed, branch) => (branch === 'special' || seed === 47 ? 1 : 0), 'gamed');
    const { validation, statement } = gamed.capabilities![0]!;
    expect(statement!.rewardHacking).toBe(true);
    expect(
      validation!.branches!.map(({ branch, before, after, difference }) => [
        branch,
        [before.value, before.n, before.interval!.method],
        [after.value, after.n],
        [difference.value, difference.n, difference.interval!.low > 0, difference.interval!.high < 0],
      ]),
    ).toEqual([
      ['special', [0, 34, 'wilson'], [1, 34], [1, 34, true, false]],
      ['twin', [1, 14, 'wilson'], [1 / 14, 14], [1 / 14 - 1, 14, false, true]],
    ]);
    const at = `capabilities.${one}.validation.synthesized`;
    expect(statement!.behind.slice(0, 2)).toEqual([`${at}.twin.difference`, `${at}.special.difference`]);
    expect(gamed.doubts.map(({ behind }) => behind)).toContainEqual(statement!.behind);
    // It stays an option of the router.
    expect(gamed.router!.choices!.map(({ option }) => option)).toContain(one);
    const { totals } = await lineage({ store, report: gamed, start: `${at}.twin.difference` });
    expect(totals.scored).toBe(96);
  });

  test('one that gains on one branch and keeps the other is not', async () => {
    const after: RewardOf = (seed, branch) => Number(branch === 'special' || seed > 34);
    expect((await withBranches(after, 'kept')).capabilities![0]!.statement!.rewardHacking).toBe(false);
  });
});

test('selection: outcomes of the labeled rollouts, votes out of all passes, those that failed', async () => {
  const { failed, passed, passes, failedPasses, candidates } = report.selection!;
  expect([failed.value, passed.value, passes, failedPasses.length]).toEqual([5, 2, 10, 2]);
  expect(candidates[0]).toMatchObject({ votes: 8, passes: 10, coverage: { value: 0.4, n: 8 } });
  // What an analyst gives outright has no votes and no statistics.
  const { selection } = await built({ ...record, selection: { ...record.selection!, labels: [], failedPasses: [] } });
  expect(selection).toMatchObject({ passes: 0, candidates: [{ name: one, selected: true }, { name: two }] });
  expect(selection!.candidates[0]!.coverage).toBeUndefined();
});

test('the router: what it chose', () => {
  const { kind, constant, choices, crossValidation } = report.router!;
  expect([kind, constant]).toEqual(['learned', undefined]);
  expect(
    choices!.map(({ option, share, successRate }) => [
      ...[option, share.value, share.n, successRate.value, successRate.n],
    ]),
  ).toEqual([
    ['base', 1 / 3, 3, 0, 1],
    [one, 2 / 3, 3, 1, 2],
  ]);
  expect(crossValidation.forms).toMatchObject([
    { form: 'constant', kept: false, successRate: { value: 0.5, n: 12 } },
    { form: 'ridge', kept: true, successRate: { value: 0.6, n: 12 } },
  ]);
  const half = normalQuantile(0.5 + LEVEL / 2) * 0.1;
  expect(crossValidation.routed.interval).toMatchObject({ low: 0.6 - half, high: 0.6 + half, level: LEVEL });
  expect(crossValidation.oracle.interval!.high).toBe(1);
});

/** The record with one more option that was evaluated. */
async function withOption(name: string, router: object): Promise<CampaignRecord> {
  const rollouts = await batch('test', `test ${name}`, [1, 1, 1, 0]);
  return {
    ...record,
    router: { ...record.router!, options: ['base', one, name], ...router },
    evaluation: { policies: [...record.evaluation!.policies, { name, rollouts }], failed: [] },
  };
}

test('a sum is a row of its own that has cost what its parts have', async () => {
  const sum = `${one}+${two}`;
  const summed = await built(await withOption(sum, { merged: [[one, two]] }));
  const { trainingRollouts, ...row } = armOf(summed, sum);
  expect(row).toMatchObject({ role: 'merged', status: 'completed', successRate: { value: 0.75 } });
  expect(trainingRollouts.value).toBe(armOf(summed, one).trainingRollouts.value);
  expect(row.successRate!.id).toBe(`arms.${one}-${two}.success_rate`);
  expect(summed.arms!.map(({ role }) => role).slice(0, 4)).toEqual(['base', 'adapter', 'merged', 'routed']);
  expect(armOf(summed, 'oracle').successRate!.value).toBe(0.75);
});

test('an adapter is judged by all tasks of the target that it was tried on, each once', () => {
  const { onTarget, statement } = report.capabilities!.find(({ name }) => name === 'tell_what_is_asked')!;
  // Held-out 5, router's 3, test 4; in this record the sets share their tasks.
  expect(onTarget).toMatchObject({ id: 'capabilities.tell_what_is_asked.on_target', n: 5 });
  expect(statement!.verdict).toBe('no_gain');
});

test('every figure has artifacts and an id of its own, and its interval the level of the campaign', () => {
  const figures = figuresIn(report);
  const byId = new Map(figures.map((one) => [one.id, one]));
  for (const one of figures) expect(one).toEqual(byId.get(one.id));
  expect(figures.filter(({ n, value, from }) => n > 0 && (!Number.isFinite(value) || from.length === 0))).toEqual([]);
  expect(new Set(figures.flatMap(({ interval }) => interval?.level ?? []))).toEqual(new Set([LEVEL]));
});

test('rollouts are counted by purpose; tokens as they were returned', () => {
  expect(report.rollouts!.byPurpose.map(({ purpose, scored }) => [purpose, scored.value])).toEqual([
    ['base_rollouts', 7],
    ['calibration', 6],
    ['training', 80],
    ['held_out', 5 + 20 + 3 + 5],
    ['outcome_matrix', 6],
    ['test', 15],
  ]);
  const training = rowOf(report, 'training');
  expect([training.broken.value, training.promptTokens!.value]).toEqual([4, 800]);
  expect(report.rollouts!.brokenByError).toMatchObject([
    { errorType: 'RouterFailed', message: 'no answer', task: 't3', rollouts: { value: 1 } },
  ]);
});

test('base rollouts that a search found again count once, and are spent by its arm all the same', async () => {
  const shared = { rollouts: 10, promptTokens: 100, completionTokens: 20 };
  const once = await built(
    withBaseline(({ work, ...arm }) => ({ ...arm, work: { ...work!, training: { ...work!.training, shared } } })),
  );
  expect(rowOf(once, 'training').scored.value).toBe(rowOf(report, 'training').scored.value! - 10);
  expect(once.rollouts!.scored.value).toBe(report.rollouts!.scored.value! - 10);
  expect(once.cost!.promptTokens.value).toBe(report.cost!.promptTokens.value! - 100);
  expect(once.cost!.completionTokens.value).toBe(report.cost!.completionTokens.value! - 20);
  for (const field of ['trainingRollouts', 'allRollouts'] as const)
    expect(armOf(once, 'theirs')[field].value).toBe(armOf(report, 'theirs')[field].value);
});

test('a policy that could not be evaluated is a failed row, and a bound over it is not known', async () => {
  const [noAdapter, noRouter] = ['PolicyNotLoaded: gone', 'PolicyServerError: 500'];
  const failed = [
    { name: one, reason: noAdapter },
    { name: 'trace', reason: noRouter },
  ];
  const policies = record.evaluation!.policies.filter(({ name }) => ['base', 'theirs'].includes(name));
  const part = await built({ ...record, evaluation: { policies, failed } });
  expect(armOf(part, one)).toMatchObject({ role: 'adapter', status: 'failed', reason: noAdapter });
  expect(armOf(part, one).allRollouts.value).toBe(armOf(report, one).allRollouts.value);
  expect(armOf(part, 'trace')).toMatchObject({ status: 'failed', reason: noRouter });
  const { status, reason } = armOf(part, 'oracle');
  expect([status, reason]).toEqual(['failed', expect.stringContaining(one)]);
  expect([part.comparisons, part.router!.choices]).toEqual([[], undefined]);
});

test('a campaign that was stopped has no arms; an artifact that is something else is an error that names it', async () => {
  const early = earlyOf(record);
  const stopped = await built({ ...early, stoppedAfter: 'rollouts' });
  expect([stopped.arms, stopped.selection, stopped.router]).toEqual([undefined, undefined, undefined]);
  const selection = { ...record.selection!, selection: record.prepared.plan };
  await expect(built({ ...early, selection })).rejects.toThrow(
    /artifact:[0-9a-f]+ has another form than expected: .*passes/s,
  );
});
