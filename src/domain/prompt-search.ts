/** How GEPA searches for a prompt; the defaults are GEPA's own, but for the number of validation tasks, which it leaves to its user. */
import { z } from 'zod';

const count = z.number().int().positive();

export const promptSearchFields = {
  /** Where the search begins. Empty: the base model as it is, or, `instead`, the target's written policy. */
  prompt: z.string().default(''),
  /** Before the environment's system message, which stays, or in its place. */
  place: z.enum(['before', 'instead']).default('before'),
  /** Of the discovery tasks, those that prompts are chosen by; prompts are written from the others. */
  validationTasks: count.default(50),
  /** Rollouts that one reflection reads. */
  minibatchSize: count.default(3),
  candidateSelection: z.enum(['pareto', 'current_best', 'epsilon_greedy', 'top_k_pareto']).default('pareto'),
  /** Of a new prompt on its minibatch, against the one that it was made of. */
  acceptance: z.enum(['strict_improvement', 'improvement_or_equal']).default('strict_improvement'),
  /** How often two prompts are merged at most. */
  merges: z.number().int().min(0).default(0),
};
export type PromptSearch = z.infer<z.ZodObject<typeof promptSearchFields>>;
