/** One ridge regression of all options' successes on the words of a text, as trainer/fit_router writes it. */
import { z } from 'zod';
import { heldWords, wordsSchema } from './words';

export const ridgeSchema = z.object({
  form: z.literal('ridge'),
  words: wordsSchema,
  options: z.array(z.object({ name: z.string(), coef: z.array(z.number()), intercept: z.number() })).min(1),
});

/** What it predicts may lie outside 0 and 1. */
export function sums({ words, options }: z.output<typeof ridgeSchema>, text: string) {
  const held = heldWords(words, text);
  return options.map(({ name, coef, intercept }): [name: string, sum: number] => [
    name,
    held.reduce((sum, index) => sum + (coef[index] ?? NaN), intercept),
  ]);
}
