/** What the forms of routing see of a text, as trainer/fit_router/text.py finds it: which words and word pairs it holds. */
import { z } from 'zod';

export const wordsSchema = z
  .object({
    lowercase: z.boolean(),
    tokenPattern: z.string(),
    /** Shortest and longest word n-gram. */
    ngrams: z.tuple([z.number().int(), z.number().int()]),
    vocabulary: z.record(z.string(), z.number().int()),
  })
  .transform(({ vocabulary, ...words }) => ({
    ...words,
    pattern: new RegExp(words.tokenPattern, 'gu'),
    // Not the object itself: that has a "constructor", whatever the texts say.
    vocabulary: new Map(Object.entries(vocabulary)),
  }));
type Words = z.output<typeof wordsSchema>;

/** Indices of the n-grams that the text holds, each once. */
export function heldWords(
  { lowercase, pattern, ngrams: [shortest, longest], vocabulary }: Words,
  text: string,
): number[] {
  const words = (lowercase ? text.toLowerCase() : text).match(pattern) ?? [];
  const found = new Set<number>();
  for (let n = shortest; n <= longest; n++) {
    for (let i = 0; i + n <= words.length; i++) {
      const index = vocabulary.get(words.slice(i, i + n).join(' '));
      if (index !== undefined) found.add(index);
    }
  }
  return [...found];
}
