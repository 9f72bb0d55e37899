import {
  calibrate as calibrateAt,
  calibrationReportSchema,
  calibrationBandsSchema,
  type CalibrationBands,
} from '../../../src/domain/calibration';
import type { Group } from '../../../src/domain/rollout';

type Rewards = readonly (readonly number[])[];
const bands = calibrationBandsSchema.parse({});
const anySuccess: CalibrationBands = { ...bands, successRate: [0, 1] };
const of = (rewards: Rewards, branch?: string): Group[] =>
  rewards.map((each) => ({ rewards: each, ...(branch !== undefined && { branch }) }));
const judge = (groups: readonly Group[], held = bands) => calibrateAt({ groups, bands: held, confidence: 0.95 });
const calibrate = (rewards: Rewards, held = bands) => judge(of(rewards), held);
const repeat = <T>(n: number, value: T): T[] => Array.from({ length: n }, () => value);
/** A group of 16 with `s` successes and `z` zeros; the others get 0.2. */
const group = (s: number, z = 0): number[] => [...repeat(s, 1), ...repeat(z, 0), ...repeat(16 - s - z, 0.2)];

/** One in five in each way of counting them: in this order the rates of the groups add up to less. */
const AT_THE_BAND = [[0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0], [1, 1, 0, 0, 0, 0, 0, 0], [1, 0, 0]];

describe('calibrate', () => {
  it('accepts what is inside the bands and measures it, with intervals of the level that is asked for', () => {
    const groups = [...repeat(8, group(6)), group(16), group(0, 16)];
    const report = calibrate(groups);
    expect(report).toMatchObject({ accepted: true, verdict: 'accepted', reasons: [], seeds: 10 });
    expect(report.successRate).toBeCloseTo((8 * (6 / 16) + 1) / 10, 12);
    expect(report.meanReward).toBeCloseTo((8 * ((6 + 2) / 16) + 1) / 10, 12);
    expect(report).toMatchObject({ allSuccess: 0.1, allZero: 0.1, informative: 0.8 });
    const narrower = calibrateAt({ groups: of(groups), bands, confidence: 0.8 });
    for (const name of ['meanReward', 'successRate', 'informative'] as const) {
      const [wide, narrow] = [report.intervals[name], narrower.intervals[name]];
      expect([wide.level, narrow.level]).toEqual([0.95, 0.8]);
      expect([wide.low < report[name], wide.high > report[name]]).toEqual([true, true]);
      expect(narrow.high - narrow.low).toBeLessThan(wide.high - wide.low);
    }
  });

  it.each([
    ['too_easy', repeat(10, group(12)), ['success rate', 'mean reward']],
    ['too_easy', [...repeat(7, group(4)), ...repeat(3, group(16))], ['all-success']],
    ['too_hard', repeat(10, group(1)), ['success rate']],
    ['too_hard', [...repeat(7, group(8)), ...repeat(3, group(0, 16))], ['all-zero']],
    ['too_little_contrast', [...repeat(4, group(15)), ...repeat(6, group(0))], ['inform']],
    ['too_little_contrast', [...repeat(5, group(16)), ...repeat(5, group(0, 16))], ['all-success', 'all-zero']],
    ['too_little_contrast', repeat(4, [0.4, 0.41]), ['^reward std 0.005 is below 0.05$'], anySuccess],
  ] as const)('says %s', (verdict, groups, reasons, held = bands) => {
    const report = calibrate(groups, held);
    expect(report).toMatchObject({ accepted: false, verdict });
    for (const reason of reasons) expect(report.reasons.join('\n')).toMatch(new RegExp(reason));
  });

  describe('with branches', () => {
    const branched = (special: Rewards, twin: Rewards, held = bands) =>
      judge([...of(special, 'special'), ...of(twin, 'twin')], held);

    it('judges the others where the base has mastered one', () => {
      // As `tell` on the demo: special 52 of 192, twin 170 of 192.
      const special = [...repeat(8, group(4)), ...repeat(4, group(5))];
      const twin = [...repeat(6, group(16)), ...repeat(2, group(13)), ...repeat(4, group(12))];
      const report = branched(special, twin);
      expect(calibrate([...special, ...twin])).toMatchObject({ verdict: 'too_easy' });
      expect(report).toMatchObject({ accepted: true, verdict: 'accepted', reasons: [], seeds: 24 });
      expect(report.judged).toEqual({
        ...{ branches: ['special'], measures: report.branches!['special'] },
        text: 'over the instances of `special`; `twin` is mastered: 0.89',
      });
      expect(calibrationReportSchema.parse(JSON.parse(JSON.stringify(report)))).toEqual(report);
    });

    it.each([
      ['all are mastered', repeat(6, group(14)), repeat(6, group(16)), 'too_easy'],
      ['none is', [...repeat(3, group(16)), ...repeat(3, group(1))], repeat(6, group(6)), 'too_easy'],
      ['it is too hard', repeat(6, group(0, 16)), repeat(6, group(10)), 'too_hard'],
      ['some instances are of no branch', repeat(6, group(4)), repeat(6, group(16)), 'too_easy', [group(4)]],
    ] as const)('judges all of it where %s', (_, special, twin, verdict, others: Rewards = []) => {
      const report = judge([...of(special, 'special'), ...of(twin, 'twin'), ...of(others)]);
      expect([report.judged, report.verdict]).toEqual([undefined, verdict]);
    });

    const [seldom, often, always] = [1, 8, 16].map((successes) => repeat(6, group(successes)));
    const floored = { ...bands, minBranchSuccess: 0.1 };
    const low = 'success rate 0.063 is below 0.2';
    const belowFloor = 'success rate 0.063 over the instances of `special` is below 0.1';
    const over = 'over the instances of `special`; `twin` is mastered: 1.00';
    it.each([
      ['the way that the others need, and over which', bands, seldom!, always!, [low, over]],
      ['nothing of a branch without a floor', bands, seldom!, often!, []],
      ['which branch is below its own floor', floored, seldom!, often!, [belowFloor]],
      ['nothing of one above it', floored, repeat(6, group(2)), often!, []],
      ['both, of those that are judged', floored, seldom!, always!, [low, belowFloor, over]],
    ])('says %s', (_, held, special, twin, reasons) => {
      const report = branched(special, twin, held);
      const verdict = reasons.length > 0 ? 'too_hard' : 'accepted';
      expect(report).toMatchObject({ verdict, reasons });
    });
  });

  it('accepts what is exactly at a band, whatever is added up', () => {
    expect(calibrate(AT_THE_BAND)).toMatchObject({ successRate: 0.2, accepted: true });
    // 0.05 and 0.35 come to a mean of 0.19999999999999998 in doubles, 0.4 and 0.5 to a deviation of 0.04999999999999999.
    const { reasons } = calibrate([...repeat(3, [0.05, 0.05]), ...repeat(3, [0.35, 0.35])], anySuccess);
    expect(reasons).not.toContainEqual(expect.stringMatching('mean reward'));
    expect(calibrate(repeat(4, [0.4, 0.5]), anySuccess)).toMatchObject({ accepted: true, reasons: [] });
  });
});
