/**
 * A linear model over the words of the first user message, as trainer/fit_router writes it. Invariant: an unknown form or a number that is
 * not finite is an error, never a silent choice.
 */
import { z } from 'zod';
import { fitSchema, type Fit, type FittedRouter } from '../router';

const modelSchema = z.object({
  lowercase: z.boolean(),
  tokenPattern: z.string(),
  /** Shortest and longest word n-gram. */
  ngrams: z.tuple([z.number().int(), z.number().int()]),
  vocabulary: z.record(z.string(), z.number().int()),
  options: z.array(z.object({ name: z.string(), coef: z.array(z.number()), intercept: z.number() })).min(1),
});
type Model = z.infer<typeof modelSchema> & { pattern: RegExp };

const fileSchema = fitSchema.omit({ parameters: true }).extend({ kind: z.literal('linear') });

/** The fit in a router file of trainer/fit_router. */
export function fitOf(file: unknown): Fit {
  const { constant, crossValidation } = fileSchema.parse(file);
  return { ...(constant !== undefined && { constant }), crossValidation, parameters: modelSchema.parse(file) };
}

/** A fitted router's model; throws if it is not one for its options. */
export function modelOf({ parameters, options }: FittedRouter): Model {
  const model = modelSchema.parse(parameters);
  const [given, wanted] = [model.options, options].map((list) => list.map(({ name }) => name).sort());
  if (JSON.stringify(given) !== JSON.stringify(wanted)) {
    throw new Error(`a linear model of ${given?.join(', ')} can't choose among ${wanted?.join(', ')}; fit it again`);
  }
  return { ...model, pattern: new RegExp(model.tokenPattern, 'gu') };
}

/** Each option's predicted probability of success. */
export function probabilities(model: Model, text: string): Record<string, number> {
  const present = features(model, text);
  return Object.fromEntries(
    model.options.map(({ name, coef, intercept }) => {
      const logit = present.reduce((sum, index) => sum + (coef[index] ?? NaN), intercept);
      if (!Number.isFinite(logit)) {
        throw new Error(`router option "${name}": the coefficients do not match the vocabulary`);
      }
      return [name, 1 / (1 + Math.exp(-logit))];
    }),
  );
}

/** Indices of the n-grams that are present (binary features). */
function features({ lowercase, pattern, ngrams: [shortest, longest], vocabulary }: Model, text: string): number[] {
  const words = (lowercase ? text.toLowerCase() : text).match(pattern) ?? [];
  const found = new Set<number>();
  for (let n = shortest; n <= longest; n++) {
    for (let i = 0; i + n <= words.length; i++) {
      const index = vocabulary[words.slice(i, i + n).join(' ')];
      if (index !== undefined) found.add(index);
    }
  }
  return [...found];
}
