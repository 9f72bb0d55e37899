import fc from 'fast-check';
import { calibrate as calibrateAt, calibrationReportSchema } from '../../src/domain/calibration';
import { calibrationBandsSchema } from '../../src/domain/campaign';

const bands = calibrationBandsSchema.parse({});
const calibrate = (o: Omit<Parameters<typeof calibrateAt>[0], 'confidence'>) => calibrateAt({ ...o, confidence: 0.95 });
const repeat = <T>(n: number, value: T): T[] => Array.from({ length: n }, () => value);
/** A group of 16 with `s` successes and `z` zeros; the others get 0.2. */
const group = (s: number, z = 0): number[] => [...repeat(s, 1), ...repeat(z, 0), ...repeat(16 - s - z, 0.2)];

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
    const groups = [...repeat(8, group(6)), group(16), group(0, 16)];
    const [wide, narrow] = [0.95, 0.8].map((confidence) => calibrateAt({ groups, bands, confidence }).intervals);
    for (const name of ['meanReward', 'successRate', 'allSuccess', 'constant'] as const) {
      expect([wide![name].level, narrow![name].level]).toEqual([0.95, 0.8]);
      expect(narrow![name].high - narrow![name].low).toBeLessThan(wide![name].high - wide![name].low);
    }
    expect(narrow!.passAt['4']!.level).toBe(0.8);
  });

  it('leaves out pass@k above the rollouts of the smallest group', () => {
    const report = calibrate({ groups: [group(4), [1, 0, 0, 0]], bands });
    expect(Object.keys(report.passAt)).toEqual(['1', '4']);
    expect(report.rolloutsPerSeed).toBe(4);
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
        expect([turned.verdict, turned.successRate]).toEqual([report.verdict, expect.closeTo(report.successRate, 9)]);
      }),
      { numRuns: 60 },
    );
  });
});
