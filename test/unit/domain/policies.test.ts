/** Which sums of adapters are tried and become options of the router. */
import fc from 'fast-check';
import { countSums, sumName, sumOptions, sumsToTry } from '../../../src/domain/policies';

const named = (sums: readonly string[][]): string[] => sums.map(sumName);
const adaptersOf = (n: number): string[] => Array.from({ length: n }, (_, i) => String.fromCharCode(97 + i));

test('pairs and the sum of all are tried, in the order of the campaign', () => {
  expect(named(sumsToTry(['b', 'a', 'c']))).toEqual(['b+a', 'b+c', 'a+c', 'b+a+c']);
  expect(named(sumsToTry(['b', 'a']))).toEqual(['b+a']);
  for (const one of [[], ['a']]) expect(sumsToTry(one)).toEqual([]);
});

test('a pair that does no better than one of its parts is no option, the sum of all is one however it did', () => {
  const rates = new Map(Object.entries({ a: 0.3, b: 0.5, c: 0.1, 'a+b': 0.6, 'a+c': 0.3, 'b+c': 0.4, 'a+b+c': 0.2 }));
  expect(named(sumOptions(adaptersOf(3), rates))).toEqual(['a+b', 'a+b+c']);
  expect(named(sumOptions(['a', 'c'], rates))).toEqual(['a+c']);
});

test('a sum whose rollouts could not be made is no option', () => {
  const rates = new Map(Object.entries({ a: 0.1, b: 0.1, c: 0.1, 'a+b': 0.6, 'b+c': 0.4 }));
  expect(named(sumOptions(adaptersOf(3), rates))).toEqual(['a+b', 'b+c']);
});

test('as many as are counted', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 9 }), fc.func(fc.double({ min: 0, max: 1, noNaN: true })), (n, rate) => {
      const adapters = adaptersOf(n);
      const tried = named(sumsToTry(adapters));
      const rates = new Map([...adapters, ...tried].map((name) => [name, rate(name)]));
      const { options } = countSums(n);
      expect(tried).toHaveLength(countSums(n).tried);
      expect(sumOptions(adapters, rates).length).toBeGreaterThanOrEqual(options.low);
      expect(sumOptions(adapters, rates).length).toBeLessThanOrEqual(options.high);
    }),
  );
});
