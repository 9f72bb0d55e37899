/**
 * Applies a fitted router (trainer/fit_router) to a conversation's first user message. Invariant: an unknown form or a number that is
 * not finite is an error, never a silent choice.
 */
import { z } from 'zod';

const crossValidatedSchema = z.object({ mean: z.number(), standardError: z.number(), n: z.number().int() });
export type CrossValidated = z.infer<typeof crossValidatedSchema>;

export const routerSchema = z.object({
  kind: z.literal('linear'),
  lowercase: z.boolean(),
  tokenPattern: z.string(),
  /** Shortest and longest word n-gram. */
  ngrams: z.tuple([z.number().int(), z.number().int()]),
  vocabulary: z.record(z.string(), z.number().int()),
  options: z.array(z.object({ name: z.string(), coef: z.array(z.number()), intercept: z.number() })).min(1),
  /** Set when routing did not beat the best single option in cross-validation. */
  constant: z.string().optional(),
  /** Success rates over the train tasks, each task routed by a fit that has not seen it. */
  crossValidation: z.object({
    helps: z.boolean(),
    routed: crossValidatedSchema,
    base: crossValidatedSchema,
    bestSingle: crossValidatedSchema.extend({ option: z.string() }),
    unionCeiling: crossValidatedSchema,
  }),
});
export type Router = z.infer<typeof routerSchema>;

/** Which option, and each option's predicted probability of success. `base` wins ties. */
export function route(router: Router, text: string): { option: string; probabilities: Record<string, number> } {
  const present = features(router, text);
  const probabilities = Object.fromEntries(
    router.options.map(({ name, coef, intercept }) => {
      const logit = present.reduce((sum, index) => sum + (coef[index] ?? NaN), intercept);
      if (!Number.isFinite(logit))
        throw new Error(`router option "${name}": the coefficients do not match the vocabulary`);
      return [name, 1 / (1 + Math.exp(-logit))];
    }),
  );
  if (router.constant !== undefined) return { option: router.constant, probabilities };
  const ranked = Object.entries(probabilities).sort(
    ([a, p], [b, q]) => q - p || Number(b === 'base') - Number(a === 'base'),
  );
  return { option: ranked[0]?.[0] ?? 'base', probabilities };
}

/** Indices of the n-grams that are present (binary features). */
function features(
  { lowercase, tokenPattern, ngrams: [shortest, longest], vocabulary }: Router,
  text: string,
): number[] {
  const words = (lowercase ? text.toLowerCase() : text).match(new RegExp(tokenPattern, 'gu')) ?? [];
  const found = new Set<number>();
  for (let n = shortest; n <= longest; n++) {
    for (let i = 0; i + n <= words.length; i++) {
      const index = vocabulary[words.slice(i, i + n).join(' ')];
      if (index !== undefined) found.add(index);
    }
  }
  return [...found];
}
