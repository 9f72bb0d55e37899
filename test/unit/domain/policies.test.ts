/** Which sums of adapters are tried and become options of the router. */
import { mergedName, mergeOptions, mergesToTry } from '../../../src/domain/policies';

const named = (sums: readonly string[][]): string[] => sums.map(mergedName);
const adaptersOf = (n: number): string[] => Array.from({ length: n }, (_, i) => String.fromCharCode(97 + i));

test('pairs and the sum of all are tried, in the order of the campaign', () => {
  expect(named(mergesToTry(['b', 'a', 'c']))).toEqual(['b+a', 'b+c', 'a+c', 'b+a+c']);
  expect(named(mergesToTry(['b', 'a']))).toEqual(['b+a']);
  for (const one of [[], ['a']]) expect(mergesToTry(one)).toEqual([]);
});

test('a pair that does no better than one of its parts is no option, the sum of all is one however it did', () => {
  const rates = new Map(Object.entries({ a: 0.3, b: 0.5, c: 0.1, 'a+b': 0.6, 'a+c': 0.3, 'b+c': 0.4, 'a+b+c': 0.2 }));
  expect(named(mergeOptions(adaptersOf(3), rates))).toEqual(['a+b', 'a+b+c']);
  expect(named(mergeOptions(['a', 'c'], rates))).toEqual(['a+c']);
});

test('a sum whose rollouts could not be made is no option', () => {
  const rates = new Map(Object.entries({ a: 0.1, b: 0.1, c: 0.1, 'a+b': 0.6, 'b+c': 0.4 }));
  expect(named(mergeOptions(adaptersOf(3), rates))).toEqual(['a+b', 'b+c']);
});
