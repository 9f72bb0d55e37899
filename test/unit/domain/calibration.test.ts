import fc from 'fast-check';
import {
  calibrate as calibrateAt,
  calibrationReportSchema,
  wantsAid,
  calibrationBandsSchema,
  type CalibrationBands,
} from '../../../src/domain/calibration';
import type { Group } from '../../../src/domain/rollout';

const bands = calibrationBandsSchema.parse({});
const groupsOf = (rewards: readonly (readonly number[])[], branch?: string): Group[] =>
  rewards.map((each) => ({ rewards: each, ...(branch !== undefined && { branch }) }));
const calibrate = ({ groups, ...o }: { groups: readonly (readonly number[])[]; bands: CalibrationBands }) =>
  calibrateAt({ ...o, groups: groupsOf(groups), confidence: 0.95 });
const repeat = <T>(n: number, value: T): T[] => Array.from({ length: n }, () => value);
/** A group of 16 with `s` successes and `z` zeros; the others get 0.2. */
const group = (s: number, z = 0): number[] => [...repeat(s, 1), ...repeat(z, 0), ...repeat(16 - s - z, 0.2)];

/** One in five in each way of counting them: in this order the rates of the groups add up to less. */
const AT_THE_BAND = [[0, 1, 0, 0], [0, 0, 0, 0, 1, 0], [0], [1, 1, 0, 0, 0, 0, 0, 0], [1, 0, 0]];

describe('calibrate', () => {
  it('accepts what is inside the bands and measures it', () => {
    const report = calibrate({ groups: [...repeat(8, group(6)), group(16), group(0, 16)], bands });
    expect(report).toMatchObject({ accepted: true, verdict: 'accepted', reasons: [], seeds: 10, rolloutsPerSeed: 16 });
    expect(report.successRate).toBeCloseTo((8 * (6 / 16) + 1) / 10, 12);
    expect(report.meanReward).toBeCloseTo((8 * ((6 + 2) / 16) + 1) / 10, 12);
    expect(report).toMatchObject({ allSuccess: 0.1, allZero: 0.1, constant: 0.2, informative: 0.8 });
    expect(Object.keys(report.passAt)).toEqual(['1', '4', '8', '16']);
    // 1 - C(10,4)/C(16,4) = 1 - 210/1820 for 8 of the groups, 1 for one, 0 for one.
    expect(report.passAt['4']).toBeCloseTo((8 * (1 - 210 / 1820) + 1) / 10, 12);
    expect(report.intervals.successRate.low).toBeLessThan(report.successRate);
    expect(report.intervals.successRate.high).toBeGreaterThan(report.successRate);
  });

  it.each([
    ['too_easy', repeat(10, group(12)), ['success rate', 'mean reward']],
    ['too_easy', [...repeat(7, group(4)), ...repeat(3, group(16))], ['all-success']],
    ['too_hard', repeat(10, group(1)), ['success rate']],
    ['too_hard', [...repeat(7, group(8)), ...repeat(3, group(0, 16))], ['all-zero']],
    ['too_little_contrast', [...repeat(4, group(15)), ...repeat(6, group(0))], ['constant', 'inform']],
    ['too_little_contrast', [...repeat(5, group(16)), ...repeat(5, group(0, 16))], ['all-success', 'all-zero']],
  ] as const)('says %s', (verdict, groups, reasons) => {
    const report = calibrate({ groups, bands });
    expect(report).toMatchObject({ accepted: false, verdict });
    for (const reason of reasons) expect(report.reasons.join('\n')).toContain(reason);
  });

  it('misses the band of the reward std', () => {
    const close = { ...bands, successRate: [0, 1] as [number, number] };
    expect(calibrate({ groups: repeat(4, [0.4, 0.41]), bands: close })).toMatchObject({
      verdict: 'too_little_contrast',
      reasons: ['reward std 0.005 is below 0.05'],
    });
  });

  it('takes rewards that are equal to 8 decimals as constant', () => {
    const groups = [
      [0.3, 0.3 + 1e-10],
      [0.3, 0.3001],
    ];
    expect(calibrate({ groups, bands })).toMatchObject({ constant: 0.5, informative: 0.5 });
  });

  it('gives intervals of the level that is asked for, and says so', () => {
    const groups = groupsOf([...repeat(8, group(6)), group(16), group(0, 16)]);
    const [wider, narrower] = [0.95, 0.8].map((confidence) => calibrateAt({ groups, bands, confidence }));
    const [wide, narrow] = [wider!.intervals, narrower!.intervals];
    for (const name of ['meanReward', 'successRate', 'allSuccess', 'constant'] as const) {
      expect([wide[name].level, narrow[name].level]).toEqual([0.95, 0.8]);
      expect(narrow[name].high - narrow[name].low).toBeLessThan(wide[name].high - wide[name].low);
    }
    expect(narrower!.passAtIntervals['4']!.level).toBe(0.8);
  });

  it('leaves out pass@k above the rollouts of the smallest group', () => {
    const report = calibrate({ groups: [group(4), [1, 0, 0, 0]], bands });
    expect(Object.keys(report.passAt)).toEqual(['1', '4']);
    expect(report.rolloutsPerSeed).toBe(4);
  });

  describe('with branches', () => {
    const of = (special: number[][], twin: number[][]) =>
      calibrateAt({
        groups: [...groupsOf(special, 'special'), ...groupsOf(twin, 'twin')],
        bands,
        confidence: 0.95,
      });

    it('measures each', () => {
      const { branches, judged } = of(repeat(6, group(4)), [...repeat(3, group(8)), group(16)]);
      expect(branches!['special']).toMatchObject({ seeds: 6, successRate: 0.25, allSuccess: 0, informative: 1 });
      expect(branches!['twin']).toMatchObject({ seeds: 4, successRate: 0.625, allSuccess: 0.25, informative: 0.75 });
      expect(judged).toBeUndefined();
      expect(calibrate({ groups: repeat(3, group(4)), bands }).branches).toBeUndefined();
    });

    it('judges the others where the base has mastered one', () => {
      // As `tell` on the demo: special 52 of 192, twin 170 of 192.
      const special = [...repeat(8, group(4)), ...repeat(4, group(5))];
      const twin = [...repeat(6, group(16)), ...repeat(2, group(13)), ...repeat(4, group(12))];
      const report = of(special, twin);
      expect(calibrate({ groups: [...special, ...twin], bands })).toMatchObject({ verdict: 'too_easy' });
      expect(report).toMatchObject({ accepted: true, verdict: 'accepted', reasons: [], seeds: 24 });
      expect(report.judged).toMatchObject({ branches: ['special'], mastered: ['twin'] });
      expect(report.judged!.text).toBe('over the instances of `special`; `twin` is mastered: 0.89');
      expect(report.judged!.measures).toEqual(report.branches!['special']);
      expect(calibrationReportSchema.parse(JSON.parse(JSON.stringify(report)))).toEqual(report);
    });

    it('turns the way that the others need, and says over which it judged', () => {
      const report = of(repeat(6, group(1)), repeat(6, group(16)));
      expect(report).toMatchObject({ accepted: false, verdict: 'too_hard' });
      expect(report.reasons).toEqual([
        'success rate 0.063 is below 0.2',
        'over the instances of `special`; `twin` is mastered: 1.00',
      ]);
    });

    it.each([
      ['all are mastered', repeat(6, group(14)), repeat(6, group(16)), 'too_easy'],
      ['none is', [...repeat(3, group(16)), ...repeat(3, group(1))], repeat(6, group(6)), 'too_easy'],
      ['it is too hard', repeat(6, group(0, 16)), repeat(6, group(10)), 'too_hard'],
    ] as const)('judges all of it where %s', (_, special, twin, verdict) => {
      const report = of([...special], [...twin]);
      expect([report.judged, report.verdict]).toEqual([undefined, verdict]);
    });

    it('holds each branch that is judged against its own floor, where there is one', () => {
      const floored = { ...bands, minBranchSuccess: 0.1 };
      const at = (special: number[][], twin: number[][]) =>
        calibrateAt({
          groups: [...groupsOf(special, 'special'), ...groupsOf(twin, 'twin')],
          bands: floored,
          confidence: 0.95,
        });
      const [seldom, often] = [repeat(6, group(1)), repeat(6, group(8))];
      expect(of(seldom, often)).toMatchObject({ accepted: true });
      expect(at(seldom, often)).toMatchObject({
        verdict: 'too_hard',
        reasons: ['success rate 0.063 over the instances of `special` is below 0.1'],
      });
      expect(wantsAid(at(seldom, often), floored)).toBe(true);
      expect(at(repeat(6, group(2)), often)).toMatchObject({ accepted: true });
      // A twin that is mastered is not judged; the special ones are, by both.
      const mastered = at(seldom, repeat(6, group(16)));
      expect(mastered.judged?.mastered).toEqual(['twin']);
      expect(mastered.reasons.slice(0, 2)).toEqual([
        'success rate 0.063 is below 0.2',
        'success rate 0.063 over the instances of `special` is below 0.1',
      ]);
    });

    it('judges all of it where some instances are of no branch', () => {
      const groups = [...groupsOf(repeat(6, group(4)), 'special'), ...groupsOf(repeat(6, group(16)), 'twin')];
      const report = calibrateAt({ groups: [...groups, { rewards: group(4) }], bands, confidence: 0.95 });
      expect([report.judged, report.verdict]).toEqual([undefined, 'too_easy']);
    });
  });

  it.each([
    ['too hard', repeat(10, group(1)), 'too_hard', true],
    ['too easy', repeat(10, group(14)), 'too_easy', false],
    ['within the bands', repeat(10, group(6)), 'accepted', false],
    ['flat at few successes', [...repeat(3, group(12)), ...repeat(7, group(0))], 'too_little_contrast', true],
    [
      'flat at many successes',
      [...repeat(2, group(16)), ...repeat(4, group(10)), ...repeat(4, group(0))],
      'too_little_contrast',
      false,
    ],
  ] as const)('asks for hints or not where it is %s', (_, groups, verdict, wanted) => {
    const report = calibrate({ groups, bands });
    expect([report.verdict, wantsAid(report, bands)]).toEqual([verdict, wanted]);
  });

  it('refuses rewards that are none', () => {
    expect(() => calibrate({ groups: [], bands })).toThrow(/no groups/);
    expect(() => calibrate({ groups: [[1], []], bands })).toThrow(/group 1 is empty/);
    expect(() => calibrate({ groups: [[NaN]], bands })).toThrow(/reward NaN/);
  });

  it('keeps its schema, does not depend on the order, and accepts exactly without reasons', () => {
    const rewards = fc.array(fc.constantFrom(0, 0.05, 0.2, 0.5, 1), { minLength: 1, maxLength: 16 });
    fc.assert(
      fc.property(fc.array(rewards, { minLength: 1, maxLength: 12 }), (groups) => {
        const report = calibrate({ groups, bands });
        expect(calibrationReportSchema.parse(JSON.parse(JSON.stringify(report)))).toEqual(report);
        expect(report.accepted).toBe(report.reasons.length === 0);
        expect(report.constant + report.informative).toBeCloseTo(1, 9);
        const turned = calibrate({ groups: groups.map((g) => [...g].reverse()).reverse(), bands });
        const { verdict, reasons, successRate, meanReward, rewardStd } = report;
        expect(turned).toMatchObject({ verdict, reasons, successRate, meanReward, rewardStd });
      }),
      { numRuns: 60, examples: [[AT_THE_BAND]] },
    );
  });

  it('accepts what is exactly at a band, in whatever order it comes', () => {
    for (const groups of [AT_THE_BAND, [...AT_THE_BAND].reverse()])
      expect(calibrate({ groups, bands })).toMatchObject({ successRate: 0.2, accepted: true });
    // Whatever is added up: 0.05 and 0.35 come to a mean of 0.19999999999999998 in doubles, 0.4 and 0.5 to a deviation of 0.04999999999999999.
    const groups = [...repeat(3, [0.05, 0.05]), ...repeat(3, [0.35, 0.35])];
    const open = { ...bands, successRate: [0, 1] as [number, number] };
    expect(calibrate({ groups, bands: open }).reasons).not.toContainEqual(expect.stringMatching('mean reward'));
    expect(calibrate({ groups: repeat(4, [0.4, 0.5]), bands: open })).toMatchObject({ accepted: true, reasons: [] });
  });

  it('asks for hints below the middle of the band, not at it', () => {
    const open: [number, number] = [0, 1];
    const narrow = { ...bands, successRate: [0.1, 0.2] as [number, number], meanReward: open, maxAllZero: 1 };
    const groups = [...repeat(17, group(0, 16)), ...repeat(3, group(16))];
    const report = calibrate({ groups, bands: narrow });
    expect([report.successRate, report.verdict, wantsAid(report, narrow)]).toEqual([
      0.15,
      'too_little_contrast',
      false,
    ]);
  });
});
