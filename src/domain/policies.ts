/**
 * What can be sampled beside the base model and single adapters: the names of the report's rows, gates inside the model, and sums of adapters.
 * Invariants: neither a capability nor an arm has the name of a row; the parts of a sum stand in the campaign's order, so that a sum has one name;
 * what is tried next follows from what was tried.
 */
import { z } from 'zod';
import type { FixedPolicy } from './rollout';

export const moeGateSchema = z.strictObject({
  form: z
    .enum(['sigmoid', 'softmax'])
    .default('sigmoid')
    .describe(
      '`softmax` is over base and adapters; `sigmoid` gives each adapter a weight from 0 to 2 on its own, at first 1: the plain sum.',
    ),
  scope: z
    .enum(['layer', 'global'])
    .default('layer')
    .describe(
      'One gate in each decoder layer, on what comes into it; or one for all layers, on the embeddings of the tokens so far.',
    ),
});
export type MoeGate = z.infer<typeof moeGateSchema>;

export const moeGatesSchema = z
  .array(moeGateSchema)
  .default([])
  .refine((gates) => new Set(gates.map(({ form, scope }) => `${form} ${scope}`)).size === gates.length, {
    message: 'a list of gates of which each is there once',
  });

export const policyNames = { base: 'base', routed: 'trace', ceiling: 'union_ceiling' } as const;

const GATE = 'moe_gate_';
export const gateName = ({ form, scope }: MoeGate): string => `${GATE}${form}_${scope}`;

/** Whether an option is all adapters behind a gate that was trained on the outcomes of the others. */
export const isLearned = (name: string): boolean => name.startsWith(GATE);

export const isPolicyName = (name: string): boolean =>
  isLearned(name) || (Object.values(policyNames) as string[]).includes(name);

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

/** How GEPA searches for a prompt; the defaults are GEPA's own, but for the number of validation tasks, which it leaves to its user. */
export const promptSearchFields = {
  prompt: z
    .string()
    .default('')
    .describe(
      'Prompt that the search begins with. Empty: the base model as it is, or, with `instead`, the written policy of the target.',
    ),
  place: z
    .enum(['before', 'instead'])
    .default('before')
    .describe('Whether the prompt stands before the system message of the environment or in its place.'),
  validationTasks: z
    .int()
    .positive()
    .default(50)
    .describe('Discovery tasks by which prompts are chosen; prompts are written from the others.'),
  minibatchSize: z.int().positive().default(3).describe('Rollouts that one reflection reads.'),
  candidateSelection: z
    .enum(['pareto', 'current_best', 'epsilon_greedy', 'top_k_pareto'])
    .default('pareto')
    .describe('How the prompt that is rewritten next is chosen.'),
  acceptance: z
    .enum(['strict_improvement', 'improvement_or_equal'])
    .default('strict_improvement')
    .describe(
      'When a new prompt is kept: better than the one that it was made of on its minibatch, or at least as good.',
    ),
  merges: z.number().int().min(0).default(0).describe('How often two prompts are merged at most.'),
};
export type PromptSearch = z.infer<z.ZodObject<typeof promptSearchFields>>;
