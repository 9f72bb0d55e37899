/** Names of the report's rows, merged adapters, and prompts. The parts of a merged adapter stand in the campaign's order, so that it has one name. */
import { z } from 'zod';
import type { FixedPolicy } from './rollout';

export const policyNames = {
  base: 'base',
  routed: 'trace',
  ceiling: 'oracle',
} as const;

export const isPolicyName = (name: string): boolean => (Object.values(policyNames) as string[]).includes(name);

export const mergedName = (parts: readonly string[]): string => parts.join('+');

export const mergedPolicy = (base: string, parts: readonly FixedPolicy[]): FixedPolicy => ({
  base,
  adapters: parts.flatMap(({ adapters }) => adapters),
});

/** Success on the train tasks by option; without those whose rollouts could not be made. */
export type Rates = ReadonlyMap<string, number>;

/** Returns the parts of the merged adapters to try: every pair, and all. All subsets would double with each adapter. */
export function mergesToTry(adapters: readonly string[]): string[][] {
  const pairs = adapters.flatMap((one, n) => adapters.slice(n + 1).map((other) => [one, other]));
  return adapters.length > 2 ? [...pairs, [...adapters]] : pairs;
}

/** Returns the merged adapters that the router may choose: each pair that does better than both of its parts, and all of them. */
export function mergeOptions(adapters: readonly string[], rates: Rates): string[][] {
  return mergesToTry(adapters).filter((parts) => {
    const rate = rates.get(mergedName(parts));
    if (rate === undefined) return false;
    return parts.length === adapters.length || parts.every((part) => rate > (rates.get(part) ?? 0));
  });
}

/** Returns how many merged adapters of so many adapters are tried, and how many become options, if an adapter gains anything. */
export function countMerges(adapters: number): { tried: number; options: { low: number; high: number } } {
  const tried = mergesToTry(Array.from({ length: adapters }, String)).length;
  return { tried, options: { low: Math.min(1, tried), high: tried } };
}

/** Settings of GEPA. The defaults are GEPA's own, except for the number of validation tasks, which GEPA leaves to its user. */
export const promptSearchSchema = z.object({
  prompt: z.string().default('').describe("First prompt; with `instead`, empty means the target's policy."),
  place: z
    .enum(['before', 'instead'])
    .default('before')
    .describe("Before the environment's system message, or instead of it."),
  validationTasks: z.int().positive().default(50).describe('Tasks that choose among prompts.'),
  minibatchSize: z.int().positive().default(3).describe('Rollouts for one reflection.'),
  acceptance: z
    .enum(['strict_improvement', 'improvement_or_equal'])
    .default('strict_improvement')
    .describe('When a new prompt is kept.'),
});
export type PromptSearch = z.infer<typeof promptSearchSchema>;
