/**
 * Retrieval, as trainer/fit_router writes it: the training tasks that are most similar to a text vote with their outcomes. Invariant: the
 * same arithmetic as there: cosines are compared to nine digits, and all tasks as similar as the last neighbour vote.
 */
import { z } from 'zod';
import { heldWords, wordsSchema } from './words';

export const nearestSchema = z.object({
  form: z.literal('nearest'),
  words: wordsSchema,
  options: z.array(z.string()).min(1),
  /** By word. */
  idf: z.array(z.number()),
  neighbours: z.number().int().positive(),
  /** How many tasks the options' success over all tasks counts for. */
  prior: z.number().nonnegative(),
  /** The words that a task's text holds, and by option the share of trials that it solved. */
  tasks: z.array(z.object({ words: z.array(z.number().int()), rates: z.array(z.number()) })).min(1),
});
type Nearest = z.output<typeof nearestSchema>;

const DIGITS = 1e9;

export function votes(model: Nearest, text: string): [name: string, rate: number][] {
  const { options, neighbours, prior, tasks } = model;
  const similar = similarities(model, text);
  // Parameters that do not fit one another: nothing can be said.
  if (!similar.every(Number.isFinite)) return options.map((name) => [name, NaN]);
  const last = [...similar].sort((a, b) => b - a)[Math.min(neighbours, similar.length) - 1] ?? NaN;
  const voting = tasks.filter((_, task) => similar[task]! >= last);
  const solved = (of: Nearest['tasks'], option: number) =>
    of.reduce((sum, { rates }) => sum + (rates[option] ?? NaN), 0);
  return options.map((name, option) => {
    const usual = solved(tasks, option) / tasks.length;
    return [name, (solved(voting, option) + prior * usual) / (voting.length + prior)];
  });
}

/** Cosines of TF-IDF, by task. */
function similarities({ words, idf, tasks }: Nearest, text: string): number[] {
  const weight = (word: number): number => (idf[word] ?? NaN) ** 2;
  const length = (held: readonly number[]): number => {
    const sum = held.reduce((total, word) => total + weight(word), 0);
    return sum === 0 ? 1 : Math.sqrt(sum);
  };
  const own = new Set(heldWords(words, text));
  const size = length([...own]);
  return tasks.map(({ words: held }) => {
    const shared = held.reduce((sum, word) => sum + (own.has(word) ? weight(word) : 0), 0);
    return Math.floor((shared / (size * length(held))) * DIGITS + 0.5) / DIGITS;
  });
}
