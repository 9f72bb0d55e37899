import fc from 'fast-check';
import {
  acrossTrainings,
  holm,
  pairedDifference,
  mean,
  meanInterval,
  passPower,
  studentQuantile,
  successRate,
  wilsonInterval,
} from '../../../src/domain/statistics';
import { passPowerFigures } from '../../../src/report/build/figures';

/** Values by task, in the order given. */
const byTask = (values: readonly number[]) => new Map(values.map((value, n) => [`t${n}`, value]));
const values = Array.from({ length: 200 }, (_, i) => (i % 10) / 9);

describe('means', () => {
  const anyValues = fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 1, maxLength: 20 });

  it('do not depend on the order of their values, to the last bit', () => {
    fc.assert(fc.property(anyValues, (values) => expect(mean([...values].reverse())).toBe(mean(values))));
    expect(mean([0.3, 0.2, 0.1])).toBe(mean([0.1, 0.2, 0.3]));
    expect(() => mean([])).toThrow('no values');
  });
});

test('pass^k is the share of sets of k trials that all succeed', () => {
  const outcomes = [1, 1, 0, 1];
  const pairs = outcomes.flatMap((one, n) => outcomes.slice(n + 1).map((other) => one * other));
  expect(passPower({ successes: 3, trials: 4, k: 2 })).toBeCloseTo(mean(pairs), 12);
  expect([2, 3, 4].map((k) => passPower({ successes: 2, trials: 4, k }))).toEqual([expect.closeTo(1 / 6, 12), 0, 0]);
  const tasks = new Map([
    ['a', { success: 1, reward: 1, trials: 3 }],
    ['b', { success: 0.5, reward: 0.5, trials: 2 }], // a trial is broken
  ]);
  const figures = passPowerFigures('arms.x', { tasks, trials: 3, from: [] }, { confidence: 0.95, seed: 1 });
  expect(figures).toMatchObject([
    { id: 'arms.x.pass_power_2', value: 0.5, n: 2 },
    { id: 'arms.x.pass_power_3', value: 1, n: 1 },
  ]);
});

describe('Wilson interval', () => {
  // Newcombe (1998), Statistics in Medicine 17, table I: score method without continuity correction.
  it.each([
    [81, 263, 0.2553, 0.3662],
    [0, 20, 0, 0.1611],
  ])('%d of %d', (successes, trials, low, high) => {
    const interval = wilsonInterval({ successes, trials });
    expect(interval.low).toBeCloseTo(low, 4);
    expect(interval.high).toBeCloseTo(high, 4);
  });
});

describe('paired difference', () => {
  const control = byTask(values);

  it('pairs tasks: a constant gain has an interval without width, whatever the spread of the tasks', () => {
    const treatment = new Map([...control].reverse().map(([task, value]) => [task, value + 0.25]));
    const { value, low, high } = pairedDifference({ treatment, control });
    expect([value, low, high]).toEqual(Array(3).fill(expect.closeTo(0.25, 10)));
  });

  it('does not depend on the order of the tasks, and no change is no gain', () => {
    const treatment = byTask(values.map((value, i) => (i % 3 === 0 ? 1 : value)));
    const shuffled = new Map([...treatment].reverse());
    expect(pairedDifference({ treatment: shuffled, control })).toEqual(pairedDifference({ treatment, control }));
    // As many tasks that did not differ leave room for a few that would have.
    expect(pairedDifference({ treatment: control, control })).toEqual({
      ...{ value: 0, low: expect.closeTo(-0.0137, 4) as number, high: expect.closeTo(0.0137, 4) as number, n: 200 },
      test: { better: 0, worse: 0, p: 1 },
    });
  });

  it('has an interval that excludes zero just where the test rejects it', () => {
    const outcome = fc.constantFrom(0, 1);
    const share = fc.constantFrom(0, 1 / 3, 2 / 3, 1);
    for (const value of [outcome, share])
      fc.assert(
        fc.property(fc.array(fc.tuple(value, value), { minLength: 1, maxLength: 40 }), (tasks) => {
          const side = (of: 0 | 1) => byTask(tasks.map((pair) => pair[of]));
          const { value, low, high, test } = pairedDifference({ treatment: side(0), control: side(1) });
          expect(low <= value && value <= high).toBe(true);
          expect(low > 0 || high < 0).toBe(test.p < 0.05);
        }),
        { numRuns: 40 },
      );
  });

  const twelve = (even: number, odd = even) => byTask(Array.from({ length: 12 }, (_, n) => (n % 2 ? odd : even) / 3));
  it('of several trials a task is tested by the same flips', () => {
    const { low, test } = pairedDifference({ treatment: twelve(2), control: twelve(1) });
    expect([low, test.better, test.worse]).toEqual([expect.closeTo(1 / 3, 7), 12, 0]);
    expect(test.p).toBeLessThan(0.003);
    // Two of three in half of the tasks and one of three in the others, and the other way round: nothing but rounding is left.
    expect(pairedDifference({ treatment: twelve(2, 1), control: twelve(1, 2) }).test.p).toBe(1);
  });

  it('where few tasks differ leaves room for those that would have, and says no more than the test', () => {
    const solved = (tasks: number, of: number) =>
      new Map(Array.from({ length: of }, (_, n) => [`${n}`, n < tasks ? 1 : 0]));
    const over = (tasks: number, of: number) =>
      pairedDifference({ treatment: solved(tasks, of), control: solved(0, of) });
    // Bonett and Price's: (b - c) / (n + 2) and 1.96 standard errors, of b and c one more each.
    expect(over(1, 20)).toMatchObject({
      low: expect.closeTo(-0.1077, 3) as number,
      high: expect.closeTo(0.1986, 3) as number,
    });
    expect(over(7, 200).low).toBeGreaterThan(0);
    expect(over(7, 200).test.p).toBeLessThan(0.05);
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
  /** So many tasks that are better or worse, solved by both or by none. */
  const test = (better: number, worse: number, both = 1, none = 0) => {
    const side = (own: number, other: number) =>
      byTask([own, other, 1, 0].flatMap((value, n) => Array<number>([better, worse, both, none][n]!).fill(value)));
    return pairedDifference({ treatment: side(1, 0), control: side(0, 1) }).test;
  };

  // By exact fractions; the first is 2 (1 + 12 + 66) / 2^12 by hand.
  it.each([
    [10, 2, 0.03857421875],
    [0, 0, 1],
    [2100, 1900, 0.00164927],
  ])('%d better and %d worse', (better, worse, expected) => {
    const found = test(better, worse, 7, 9);
    expect(found).toMatchObject({ better, worse });
    expect(found.p / expected).toBeCloseTo(1, 5);
  });
});

test('Holm’s correction: the smallest p times all tests, the next times one less, and none below an earlier one', () => {
  expect(holm([])).toEqual([]);
  expect(holm([0.03])).toEqual([0.03]);
  expect(holm([0.04, 0.01, 0.03])).toEqual([0.06, 0.03, 0.06].map((p) => expect.closeTo(p, 12)));
  expect(holm([0.9, 0.5])).toEqual([1, 1]);
});

test.each([
  [1, 12.706],
  [4, 2.776],
  [1000, 1.962],
])('Student’s t of %d degrees of freedom: %d', (degrees, quantile) => {
  expect(studentQuantile(0.95, degrees)).toBeCloseTo(quantile, 2);
});

describe('over several trainings', () => {
  test('one training has no interval, and several that agree have that of the tasks', () => {
    const tasks = { value: 0.1, low: 0.05, high: 0.15 };
    expect(acrossTrainings(tasks, { means: [0.1], confidence: 0.95 })).toBeUndefined();
    expect(acrossTrainings(tasks, { means: [0.1, 0.1], confidence: 0.95 })).toEqual({
      low: expect.closeTo(0.05, 12),
      high: expect.closeTo(0.15, 12),
    });
    const { low } = acrossTrainings(tasks, { means: [0.16, 0.07, 0.015], confidence: 0.95 })!;
    expect(low).toBeLessThan(0);
  });
});
