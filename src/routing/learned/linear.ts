/** A linear model of each option's success over the words of a text, as trainer/fit_router writes it. */
import { z } from 'zod';
import { heldWords, wordsSchema } from './words';

const linearFields = {
  words: wordsSchema,
  options: z.array(z.object({ name: z.string(), coef: z.array(z.number()), intercept: z.number() })).min(1),
};

/** Each option's success: a logistic regression of each. */
export const linearSchema = z.object({ form: z.literal('linear'), ...linearFields });
/** A ridge regression of all: what it predicts may lie outside 0 and 1. */
export const ridgeSchema = z.object({ form: z.literal('ridge'), ...linearFields });

export function sums({ words, options }: Pick<z.output<typeof linearSchema>, 'words' | 'options'>, text: string) {
  const held = heldWords(words, text);
  return options.map(({ name, coef, intercept }): [name: string, sum: number] => [
    name,
    held.reduce((sum, index) => sum + (coef[index] ?? NaN), intercept),
  ]);
}

export const logistic = (logit: number): number => 1 / (1 + Math.exp(-logit));
