/**
 * Names of the report's rows, sums of adapters, and prompts. Neither a capability nor an arm has the name of a row. The parts of a sum stand in the
 * campaign's order, so that a sum has one name.
 */
import { z } from 'zod';
import type { FixedPolicy } from './rollout';

export const policyNames = {
  base: 'base',
  routed: 'trace',
  ceiling: 'oracle',
} as const;

export const isPolicyName = (name: string): boolean => (Object.values(policyNames) as string[]).includes(name);

export const sumName = (parts: readonly string[]): string => parts.join('+');

/** Returns the sum of policies without a prompt. */
export const sumPolicy = (base: string, parts: readonly FixedPolicy[]): FixedPolicy => ({
  base,
  adapters: parts.flatMap(({ adapters }) => adapters),
});

/** Success on the train tasks by option; without those whose rollouts could not be made. */
export type Rates = ReadonlyMap<string, number>;

/**
 * Returns the sums to try: every pair, and the sum of all. Their number grows as the square of the adapters', where that of all sums would double
 * with each adapter.
 */
export function sumsToTry(adapters: readonly string[]): string[][] {
  const pairs = adapters.flatMap((one, n) => adapters.slice(n + 1).map((other) => [one, other]));
  return adapters.length > 2 ? [...pairs, [...adapters]] : pairs;
}

/** Returns the sums that the router may choose: each pair that does better than both of its parts, and the sum of all. */
export function sumOptions(adapters: readonly string[], rates: Rates): string[][] {
  return sumsToTry(adapters).filter((parts) => {
    const rate = rates.get(sumName(parts));
    if (rate === undefined) return false;
    return parts.length === adapters.length || parts.every((part) => rate > (rates.get(part) ?? 0));
  });
}

/** Returns how many sums of so many adapters are tried, and how many become options, if an adapter gains anything. */
export function countSums(adapters: number): { tried: number; options: { low: number; high: number } } {
  const tried = sumsToTry(Array.from({ length: adapters }, String)).length;
  return { tried, options: { low: Math.min(1, tried), high: tried } };
}

/** Settings of GEPA. The defaults are GEPA's own, except for the number of validation tasks, which GEPA leaves to its user. */
export const promptSearchFields = {
  prompt: z.string().default('').describe("First prompt; empty: none, with `instead` the target's policy."),
  place: z
    .enum(['before', 'instead'])
    .default('before')
    .describe("Before or instead of the environment's system message."),
  validationTasks: z.int().positive().default(50).describe('Train tasks that choose among prompts.'),
  minibatchSize: z.int().positive().default(3).describe('Rollouts for one reflection.'),
  candidateSelection: z
    .enum(['pareto', 'current_best', 'epsilon_greedy', 'top_k_pareto'])
    .default('pareto')
    .describe('Choice of the next prompt to rewrite.'),
  acceptance: z
    .enum(['strict_improvement', 'improvement_or_equal'])
    .default('strict_improvement')
    .describe('When a new prompt is kept, by the minibatch.'),
  merges: z.number().int().min(0).default(0).describe('Most merges of two prompts.'),
};
export type PromptSearch = z.infer<z.ZodObject<typeof promptSearchFields>>;
