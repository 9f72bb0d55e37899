/**
 * Sums of adapters that the router may choose beside single ones, each part with weight 1. Invariants: pure functions; parts stand in the
 * campaign's order, so that a sum has one name; what is tried next follows from what was tried.
 */
import type { FixedPolicy } from './rollout';

/** Of so many adapters all sums are tried; of more, the sums on a greedy way. */
export const ALL_SUMS_OF = 4;

/** The sum's name among the options. */
export const sumName = (parts: readonly string[]): string => parts.join('+');

/** Of policies without a prompt. */
export const sumPolicy = (base: string, parts: readonly FixedPolicy[]): FixedPolicy => ({
  base,
  adapters: parts.flatMap(({ adapters }) => adapters),
});

/** Success on the train tasks by option, null of one whose rollouts could not be made. */
export type Rates = ReadonlyMap<string, number | null>;

export interface Sums {
  /** Those that are options: they were tried. */
  options: string[][];
  /** Those to be tried before there are more. */
  next: string[][];
}

/**
 * All sums of few adapters. Of many: to the best single adapter the one is added that raises the success most, and so on until none raises
 * it; the sums on this way are options. Of equals the first.
 */
export function sumsOf(adapters: readonly string[], rates: Rates): Sums {
  if (adapters.length > ALL_SUMS_OF) return greedySums(adapters, rates);
  const all = subsets(adapters).filter((parts) => parts.length > 1);
  return split(all, rates);
}

function greedySums(adapters: readonly string[], rates: Rates): Sums {
  const options: string[][] = [];
  let last = best(
    adapters.map((name) => [name]),
    rates,
  );
  while (last) {
    const { parts, rate } = last;
    const longer = adapters.flatMap((name) => (parts.includes(name) ? [] : [[...parts, name]]));
    const { options: tried, next } = split(
      longer.map((names) => adapters.filter((name) => names.includes(name))),
      rates,
    );
    if (next.length > 0) return { options, next };
    const better = best(tried, rates);
    last = better && better.rate > rate ? better : undefined;
    if (last) options.push(last.parts);
  }
  return { options, next: [] };
}

const isTried = (parts: readonly string[], rates: Rates): boolean => rates.has(sumName(parts));

/** Those whose rollouts could not be made are neither. */
const split = (sums: readonly string[][], rates: Rates): Sums => ({
  options: sums.filter((parts) => typeof rates.get(sumName(parts)) === 'number'),
  next: sums.filter((parts) => !isTried(parts, rates)),
});

function best(sums: readonly string[][], rates: Rates): { parts: string[]; rate: number } | undefined {
  let found: { parts: string[]; rate: number } | undefined;
  for (const parts of sums) {
    const rate = rates.get(sumName(parts)) ?? null;
    if (rate !== null && (!found || rate > found.rate)) found = { parts, rate };
  }
  return found;
}

/** By size, then in order. */
function subsets(names: readonly string[]): string[][] {
  const all = names.reduce<string[][]>((sets, name) => [...sets, ...sets.map((set) => [...set, name])], [[]]);
  const place = (set: readonly string[]): number[] => set.map((name) => names.indexOf(name));
  return all.sort((a, b) => a.length - b.length || firstDifference(place(a), place(b)));
}

const firstDifference = (a: readonly number[], b: readonly number[]): number =>
  a.map((value, i) => value - (b[i] ?? 0)).find((difference) => difference !== 0) ?? 0;

/** How many sums of so many adapters are tried, and how many become options. None where no adapter gains anything. */
export function countSums(adapters: number): Record<'tried' | 'options', { low: number; high: number }> {
  if (adapters > ALL_SUMS_OF)
    return {
      tried: { low: adapters - 1, high: (adapters * (adapters - 1)) / 2 },
      options: { low: 0, high: adapters - 1 },
    };
  const all = 2 ** adapters - adapters - 1;
  return { tried: { low: all, high: all }, options: { low: all, high: all } };
}
