import fc from 'fast-check';
import {
  pairedDifference,
  comparable,
  mean,
  meanInterval,
  meanShare,
  normalQuantile,
  passAtK,
  populationStd,
  successRate,
  wilsonInterval,
} from '../../../src/domain/statistics';

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

describe('means', () => {
  const anyValues = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 1, maxLength: 20 });

  it('do not depend on the order of their values, to the last bit', () => {
    fc.assert(fc.property(anyValues, (values) => expect(mean([...values].reverse())).toBe(mean(values))));
    expect(mean([0.3, 0.2, 0.1])).toBe(mean([0.1, 0.2, 0.3]));
    expect(() => mean([])).toThrow('no values');
  });

  it('of shares are one division of whole counts', () => {
    const share = (part: number, of: number) => ({ part, of });
    expect(meanShare([share(1, 4), share(1, 6), share(0, 1), share(2, 8), share(1, 3)])).toBe(0.2);
    expect(meanShare([share(0, 3)])).toBe(0);
    const shares = fc.array(
      fc.tuple(fc.nat(64), fc.integer({ min: 1, max: 64 })).map(([part, of]) => share(Math.min(part, of), of)),
      { minLength: 1, maxLength: 100 },
    );
    fc.assert(
      fc.property(shares, (all) => {
        expect(meanShare([...all].reverse())).toBe(meanShare(all));
        expect(meanShare(all)).toBeCloseTo(mean(all.map(({ part, of }) => part / of)), 12);
      }),
    );
  });

  it('are held against thresholds to 8 decimals', () => {
    expect([comparable(0.6 - 0.4), comparable(0.1 + 0.2), comparable(0.19999999)]).toEqual([0.2, 0.3, 0.19999999]);
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
});

describe('paired difference', () => {
  const values = Array.from({ length: 200 }, (_, i) => (i % 10) / 9);

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
    expect(pairedDifference({ treatment: control, control })).toEqual({
      ...{ mean: 0, low: 0, high: 0, n: 200 },
      test: { better: 0, worse: 0, p: 1 },
    });
  });

  it('refuses arms over different tasks, by name', () => {
    const control = new Map([['a', 1]]);
    expect(() => pairedDifference({ treatment: new Map([['b', 1]]), control })).toThrow('tasks of one arm only: b, a');
  });

  it('agrees with the normal interval for many tasks', () => {
    const treatment = new Map(values.map((value, i) => [`t${i}`, value]));
    const control = new Map(values.map((_, i) => [`t${i}`, 0.3]));
    const { mean, low, high } = pairedDifference({ treatment, control });
    const half = (1.959964 * populationStd(values)) / Math.sqrt(values.length);
    expect([mean, low, high]).toEqual([0.2, 0.2 - half, 0.2 + half].map((value) => expect.closeTo(value, 2)));
  });

  it('has an interval that excludes zero just where the test rejects it', () => {
    const outcome = fc.constantFrom(0, 1);
    const share = fc.constantFrom(0, 1 / 3, 2 / 3, 1);
    for (const value of [outcome, share])
      fc.assert(
        fc.property(fc.array(fc.tuple(value, value), { minLength: 1, maxLength: 40 }), (tasks) => {
          const side = (of: 0 | 1) => new Map(tasks.map((pair, task) => [`t${task}`, pair[of]]));
          const { mean, low, high, test } = pairedDifference({ treatment: side(0), control: side(1) });
          expect(low <= mean && mean <= high).toBe(true);
          expect(low > 0 || high < 0).toBe(test.p < 0.05);
        }),
        { numRuns: 40 },
      );
  });

  it('of several trials a task is tested by the same flips', () => {
    const third = (count: number, tasks: number) => new Map(values.slice(0, tasks).map((_, i) => [`t${i}`, count / 3]));
    const { low, test } = pairedDifference({ treatment: third(2, 12), control: third(1, 12) });
    expect([low, test.better, test.worse]).toEqual([expect.closeTo(1 / 3, 7), 12, 0]);
    expect(test.p).toBeLessThan(0.003);
    // Two of three in half of the tasks and one of three in the others, and the other way round: nothing but rounding is left.
    const mixed = (even: number, odd: number) =>
      new Map(values.slice(0, 12).map((_, i) => [`t${i}`, (i % 2 ? odd : even) / 3]));
    expect(pairedDifference({ treatment: mixed(2, 1), control: mixed(1, 2) }).test.p).toBe(1);
  });

  it('of five tasks can say nothing', () => {
    const all = (value: number) => new Map(values.slice(0, 5).map((_, i) => [`t${i}`, value]));
    expect(pairedDifference({ treatment: all(1), control: all(0) })).toMatchObject({ mean: 1, low: -1, high: 1 });
  });
});

describe('a rate', () => {
  it('takes the Wilson interval for single trials and the bootstrap over tasks for several', () => {
    const once = [1, 0, 1, 1];
    const wilson = (successes: number) => ({ ...wilsonInterval({ successes, trials: 4 }), method: 'wilson' });
    expect(successRate({ taskMeans: once, trials: 1 })).toEqual(wilson(3));
    expect(successRate({ taskMeans: once, trials: 4 })).toEqual({
      ...meanInterval({ values: once }),
      method: 'bootstrap',
    });
    // All alike says nothing of how sure it is to a bootstrap.
    expect(successRate({ taskMeans: [0, 0, 0, 0], trials: 4 })).toEqual(wilson(0));
    expect(successRate({ taskMeans: [1, 1, 1, 1], trials: 4 })).toEqual(wilson(4));
  });
});

describe('the sign-flip test of single trials, which is McNemar’s exact test', () => {
  const pairs = ({ better = 0, worse = 0, both = 0, none = 0 }) => {
    const outcomes = [
      ...Array.from({ length: better }, () => [1, 0]),
      ...Array.from({ length: worse }, () => [0, 1]),
      ...Array.from({ length: both }, () => [1, 1]),
      ...Array.from({ length: none }, () => [0, 0]),
    ] as [number, number][];
    const side = (of: 0 | 1) => new Map(outcomes.map((pair, task) => [`t${task}`, pair[of]]));
    return { treatment: side(0), control: side(1) };
  };
  const test = (of: Parameters<typeof pairs>[0]) => pairedDifference(pairs(of)).test;
  const p = (better: number, worse: number) => test({ better, worse, both: 1 }).p;

  // Twice the binomial tail, by hand: 2 (1 + 12 + 66) / 2^12, 2 (1 + 10 + 45) / 2^10, 2 / 2^6.
  it.each([
    [10, 2, 0.03857422],
    [2, 8, 0.109375],
    [6, 0, 0.03125],
    [5, 5, 1],
    [4, 5, 1],
    [0, 0, 1],
    // By exact fractions.
    [150, 86, 0.00003716],
  ])('%d better and %d worse', (better, worse, expected) => {
    const found = p(better, worse);
    expect(Math.abs(found - expected)).toBeLessThan(1e-3 * expected);
    expect(test({ better, worse, both: 7, none: 9 })).toEqual({ better, worse, p: found });
  });

  it('is symmetric, at most 1, and smaller the more uneven the pairs are', () => {
    const few = fc.integer({ min: 0, max: 300 });
    fc.assert(
      fc.property(few, few, (a, b) => {
        const found = p(a, b);
        expect(found).toBe(p(b, a));
        expect(found).toBeGreaterThan(0);
        expect(found).toBeLessThanOrEqual(1);
        const [less, more] = [Math.min(a, b), Math.max(a, b)];
        expect(p(more + 1, less)).toBeLessThanOrEqual(found + 1e-12);
      }),
      { numRuns: 20 },
    );
  });

  it('agrees with the exact binomial tail in whole numbers', () => {
    const choose = (n: bigint, k: bigint): bigint => (k === 0n ? 1n : (choose(n - 1n, k - 1n) * n) / k);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 60 }), (a, b) => {
        const n = BigInt(a + b);
        let tail = 0n;
        for (let k = 0n; k <= BigInt(Math.min(a, b)); k++) tail += choose(n, k);
        const exact = Math.min(1, Number((2n * tail * 10n ** 40n) / 2n ** n) / 1e40);
        expect(p(a, b)).toBeCloseTo(exact, 10);
      }),
      { numRuns: 40 },
    );
  });

  it('does not underflow for thousands of tasks', () => {
    expect(p(2000, 2000)).toBe(1);
    expect(p(2100, 1900)).toBeCloseTo(0.00164927, 7);
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
