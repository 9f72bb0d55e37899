/** Which sums of adapters are tried and become options of the router. */
import { countSums, sumName, sumPolicy, sumsOf, type Rates } from '../../../src/domain/policies';

const named = (sums: readonly string[][]): string[] => sums.map(sumName);

/** Tries what is to be tried until nothing is left; what was tried, and what became an option. */
function toTheEnd(adapters: string[], rateOf: (parts: readonly string[]) => number | null) {
  const rates = new Map(adapters.map((name) => [name, rateOf([name])]));
  const tried: string[][] = [];
  for (;;) {
    const { options, next } = sumsOf(adapters, rates);
    if (next.length === 0) return { options: named(options), rounds: tried };
    tried.push(named(next));
    for (const parts of next) rates.set(sumName(parts), rateOf(parts));
  }
}

const adaptersOf = (n: number): string[] => ['a', 'b', 'c', 'd', 'e', 'f', 'g'].slice(0, n);

test('of up to four adapters all sums are tried, small ones first, in the order of the campaign', () => {
  expect(named(sumsOf(['b', 'a', 'c'], new Map()).next)).toEqual(['b+a', 'b+c', 'a+c', 'b+a+c']);
  expect(named(sumsOf(adaptersOf(4), new Map()).next)).toEqual([
    'a+b',
    'a+c',
    'a+d',
    'b+c',
    'b+d',
    'c+d',
    'a+b+c',
    'a+b+d',
    'a+c+d',
    'b+c+d',
    'a+b+c+d',
  ]);
  for (const one of [[], ['a']]) expect(sumsOf(one, new Map())).toEqual({ options: [], next: [] });
});

test('all that were tried are options, however they did, but for those whose rollouts could not be made', () => {
  const { options, rounds } = toTheEnd(['a', 'b', 'c'], (parts) => (sumName(parts) === 'a+c' ? null : 0));
  expect(rounds).toEqual([['a+b', 'a+c', 'b+c', 'a+b+c']]);
  expect(options).toEqual(['a+b', 'b+c', 'a+b+c']);
});

test('of more, the adapter that raises the success most is added until none does', () => {
  // c alone is the best; with it a, then e; nothing helps these three.
  const good: Record<string, number> = { c: 0.4, b: 0.3, 'a+c': 0.6, 'b+c': 0.5, 'a+c+e': 0.7, 'a+b+c+e': 0.7 };
  const { options, rounds } = toTheEnd(adaptersOf(5), (parts) => good[sumName(parts)] ?? 0.1);
  expect(rounds).toEqual([
    ['a+c', 'b+c', 'c+d', 'c+e'],
    ['a+b+c', 'a+c+d', 'a+c+e'],
    ['a+b+c+e', 'a+c+d+e'],
  ]);
  expect(options).toEqual(['a+c', 'a+c+e']);
});

test('of equals the first is taken, and what could not be tried is passed over', () => {
  const first = toTheEnd(adaptersOf(5), (parts) => Math.min(parts.length, 2) / 10);
  expect(first.options).toEqual(['a+b']);
  const without = toTheEnd(adaptersOf(5), (parts) => (parts.includes('a') ? null : Math.min(parts.length, 2) / 10));
  expect(without.options).toEqual(['b+c']);
  expect(toTheEnd(adaptersOf(5), () => null)).toEqual({ options: [], rounds: [] });
});

test.each([0, 1, 2, 3, 4])('as many as are counted, of %i', (n) => {
  const { options, rounds } = toTheEnd(adaptersOf(n), () => 0);
  const count = { low: options.length, high: options.length };
  expect(countSums(n)).toEqual({ tried: count, options: count });
  expect(rounds.flat()).toHaveLength(options.length);
});

test.each([5, 7])('no more and no fewer than are counted, of %i', (n) => {
  const bounds = [() => 0, (parts: readonly string[]) => parts.length / 10].map((rate) => {
    const { options, rounds } = toTheEnd(adaptersOf(n), rate);
    return [rounds.flat().length, options.length];
  });
  const { tried, options } = countSums(n);
  expect(bounds).toEqual([
    [tried.low, options.low],
    [tried.high, options.high],
  ]);
});

test('a sum has the adapters of its parts as they are weighted there, and one name whatever was added last', () => {
  const part = (name: string) => ({
    base: 'b',
    adapters: [{ ref: { uri: name, sha256: name, bytes: 1, mediaType: 'x' }, weight: 1 }],
  });
  expect(sumPolicy('b', [part('a'), part('c')])).toEqual({
    base: 'b',
    adapters: [...part('a').adapters, ...part('c').adapters],
  });
  const rates: Rates = new Map(adaptersOf(5).map((name) => [name, name === 'e' ? 1 : 0]));
  expect(named(sumsOf(adaptersOf(5), rates).next)).toEqual(['a+e', 'b+e', 'c+e', 'd+e']);
});
