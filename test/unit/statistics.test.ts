import fc from 'fast-check';
import {
  meanInterval,
  normalQuantile,
  pairedDifference,
  passAtK,
  populationStd,
  successRate,
  wilsonInterval,
} from '../../src/domain/statistics';

describe('normal quantile and standard deviation', () => {
  it('matches published values', () => {
    expect(normalQuantile(0.975)).toBeCloseTo(1.959963985, 7);
    expect(normalQuantile(0.995)).toBeCloseTo(2.575829304, 7);
    expect(normalQuantile(0.01)).toBeCloseTo(-2.326347874, 7);
    expect(normalQuantile(0.5)).toBe(0);
    expect(() => normalQuantile(1)).toThrow('p is 1');
  });

  it('is the population standard deviation', () => {
    expect(populationStd([2, 4, 4, 4, 5, 5, 7, 9])).toBe(2);
    expect(populationStd([3])).toBe(0);
    expect(() => populationStd([])).toThrow('no values');
  });
});

describe('Wilson interval', () => {
  // Newcombe (1998), Statistics in Medicine 17, table I: score method without continuity correction.
  it.each([
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])('%d of %d', (successes, trials, low, high) => {
    const interval = wilsonInterval({ successes, trials });
    expect(interval.low).toBeCloseTo(low, 4);
    expect(interval.high).toBeCloseTo(high, 4);
  });

  it('holds the proportion and stays within 0 and 1', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.double({ min: 0, max: 1, noNaN: true }), (trials, share) => {
        const successes = Math.round(share * trials);
        const { low, high, mean } = wilsonInterval({ successes, trials });
        expect(low).toBeGreaterThanOrEqual(0);
        expect(high).toBeLessThanOrEqual(1);
        expect(low).toBeLessThanOrEqual(mean);
        expect(high).toBeGreaterThanOrEqual(mean);
      }),
    );
  });

  it('refuses impossible counts', () => {
    expect(() => wilsonInterval({ successes: 0, trials: 0 })).toThrow('trials is 0');
    expect(() => wilsonInterval({ successes: 3, trials: 2 })).toThrow('successes is 3');
    expect(() => wilsonInterval({ successes: 1, trials: 2, confidence: 1 })).toThrow('confidence is 1');
  });
});

describe('bootstrap', () => {
  const values = Array.from({ length: 200 }, (_, i) => (i % 10) / 9);

  it('agrees with the normal interval for many values, and is deterministic', () => {
    const interval = meanInterval({ values });
    const half = (1.959964 * populationStd(values)) / Math.sqrt(values.length);
    expect(interval.low).toBeCloseTo(0.5 - half, 2);
    expect(interval.high).toBeCloseTo(0.5 + half, 2);
    expect(meanInterval({ values })).toEqual(interval);
    expect(meanInterval({ values, seed: 2 }).low).not.toBe(interval.low);
  });

  it('pairs tasks: a constant gain has an interval without width, whatever the spread of the tasks', () => {
    const control = new Map(values.map((value, i) => [`t${i}`, value]));
    const treatment = new Map([...control].reverse().map(([task, value]) => [task, value + 0.25]));
    const { mean, low, high } = pairedDifference({ treatment, control });
    for (const figure of [mean, low, high]) expect(figure).toBeCloseTo(0.25, 10);
  });

  it('does not depend on the order of the tasks, and no change is no gain', () => {
    const control = new Map(values.map((value, i) => [`t${i}`, value]));
    const treatment = new Map(values.map((value, i) => [`t${i}`, i % 3 === 0 ? 1 : value]));
    const shuffled = new Map([...treatment].reverse());
    expect(pairedDifference({ treatment: shuffled, control })).toEqual(pairedDifference({ treatment, control }));
    expect(pairedDifference({ treatment: control, control })).toEqual({ mean: 0, low: 0, high: 0, n: 200 });
  });

  it('refuses arms over different tasks, by name', () => {
    const control = new Map([['a', 1]]);
    expect(() => pairedDifference({ treatment: new Map([['b', 1]]), control })).toThrow('tasks of one arm only: b, a');
  });

  it('takes the Wilson interval for single trials and the bootstrap over tasks for several', () => {
    const once = [1, 0, 1, 1];
    expect(successRate({ taskMeans: once, trials: 1 })).toEqual(wilsonInterval({ successes: 3, trials: 4 }));
    expect(successRate({ taskMeans: once, trials: 4 })).toEqual(meanInterval({ values: once }));
  });
});

describe('pass@k', () => {
  it('is the unbiased estimate of Chen et al. (2021)', () => {
    expect(passAtK({ trials: 16, successes: 4, k: 1 })).toBeCloseTo(0.25, 12);
    // 1 - C(12, 4) / C(16, 4) = 1 - 495 / 1820
    expect(passAtK({ trials: 16, successes: 4, k: 4 })).toBeCloseTo(1 - 495 / 1820, 12);
    expect(passAtK({ trials: 16, successes: 0, k: 16 })).toBe(0);
    expect(passAtK({ trials: 16, successes: 1, k: 16 })).toBe(1);
    expect(() => passAtK({ trials: 4, successes: 1, k: 8 })).toThrow('k is 8');
  });
});
