/**
 * Routes by a ridge regression that predicts each option's success from the words of the first user message (trainer/fit_router).
 * Invariant: it routes only if that was significantly better than the best single option on tasks that chose neither.
 */
import { z } from 'zod';
import { defineKind } from '../domain/kinds';
import { getOrMake } from '../domain/maps';
import { checkOptions, fitWithPython, foldsField, textOf, TIE } from './python-fit';
import type { ChooseInput, ChosenOption, FittedRouter, RouterContext, RouterKind } from './router';

const TOKEN_PATTERN = '[A-Za-z0-9_]+|[^ \\t\\r\\nA-Za-z0-9_]';

/** The words and word pairs of a text that count, as trainer/fit_router/ridge.py finds them. */
const wordsSchema = z
  .object({
    lowercase: z.boolean(),
    // Another pattern, of an untrusted folder, could take unlimited time.
    tokenPattern: z.literal(TOKEN_PATTERN),
    ngrams: z.tuple([z.number().int(), z.number().int()]),
    vocabulary: z.record(z.string(), z.number().int()),
  })
  .transform(({ vocabulary, ...words }) => ({
    ...words,
    pattern: new RegExp(words.tokenPattern, 'gu'),
    // A plain object would have a word "constructor".
    vocabulary: new Map(Object.entries(vocabulary)),
  }));

const ridgeSchema = z.object({
  form: z.literal('ridge'),
  words: wordsSchema,
  options: z.array(z.object({ name: z.string(), coef: z.array(z.number()), intercept: z.number() })).min(1),
});
type Ridge = z.output<typeof ridgeSchema>;

export const learned: RouterKind = defineKind({
  kind: 'learned',
  // 5: one cross-validation and a paired test decide.
  version: '5',
  options: { folds: foldsField },
  open(options, identity, context: RouterContext) {
    const models = new WeakMap<FittedRouter, Ridge>();

    function readModel({ parameters, options }: FittedRouter): Ridge {
      const model = ridgeSchema.parse(parameters);
      const names = model.options.map(({ name }) => name);
      checkOptions(names, options);
      return model;
    }

    return {
      identity,
      async fit(input) {
        const fit = await fitWithPython({ input, options, context });
        if (fit.constant === undefined) ridgeSchema.parse(fit.parameters);
        return fit;
      },
      async choose({ fitted, messages }: ChooseInput): Promise<ChosenOption> {
        const model = getOrMake(models, fitted, () => readModel(fitted));
        const predicted = predictions(model, textOf(messages));
        const best = Math.max(...predicted.values());
        // `base` is the first and sums are last: on a tie fewer adapters win.
        const chosen = fitted.options.find(({ name }) => predicted.get(name)! >= best - TIE)!;
        const probabilities = Object.fromEntries(
          [...predicted].map(([name, value]) => [name, Math.min(1, Math.max(0, value))]),
        );
        return { chosen: chosen.name, probabilities };
      },
    };
  },
});

function predictions({ words, options }: Ridge, text: string): Map<string, number> {
  const indices = wordIndices(words, text);
  const predicted = new Map<string, number>();
  for (const { name, coef, intercept } of options) {
    const value = indices.reduce((sum, index) => sum + (coef[index] ?? NaN), intercept);
    if (!Number.isFinite(value)) throw new Error(`router option "${name}": the parameters do not match the words`);
    predicted.set(name, value);
  }
  return predicted;
}

function wordIndices({ lowercase, pattern, ngrams, vocabulary }: Ridge['words'], text: string): number[] {
  const words = (lowercase ? text.toLowerCase() : text).match(pattern) ?? [];
  const [shortest, longest] = ngrams;
  const indices = new Set<number>();
  for (let n = shortest; n <= longest; n++) {
    for (let i = 0; i + n <= words.length; i++) {
      const index = vocabulary.get(words.slice(i, i + n).join(' '));
      if (index !== undefined) indices.add(index);
    }
  }
  return [...indices];
}
