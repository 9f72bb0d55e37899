/**
 * Whether a policy keeps what the base model could do: its answers to plain requests beside the base model's. Invariants: no judge; requests are
 * the units, paired; a policy has collapsed where one of the limits is left by the mean.
 */
import { z } from 'zod';

/** Of one answer. */
export const plainMeasureSchema = z.object({
  task: z.string(),
  /** Sampled tokens. */
  tokens: z.number().int().nonnegative(),
  /** Of its runs of three words, the share that are different ones; 1 for fewer than three words. */
  distinct: z.number().min(0).max(1),
  /** The base model's mean log-prob of its tokens, in nats; absent where nothing was sampled. */
  baseLogprob: z.number().max(0).optional(),
});
export type PlainMeasure = z.infer<typeof plainMeasureSchema>;

export const plainMeasuresSchema = z.record(z.string(), z.array(plainMeasureSchema));
export type PlainMeasures = z.infer<typeof plainMeasuresSchema>;

/** What is left of the base model's, at least. */
export const PLAIN_LIMITS = {
  /** Mean tokens, as shares of the base model's. */
  tokens: { least: 0.5, most: 2 },
  /** Mean distinct share below the base model's. */
  distinct: 0.2,
  /** Mean log-prob a token below the base model's own, in nats: at 1 the base model finds each token e times less likely. */
  baseLogprob: 1,
};

const WORDS_IN_A_RUN = 3;

/** The share of different runs of three words in a text. */
export function distinctRuns(text: string): number {
  const words = text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
  const runs = words.slice(WORDS_IN_A_RUN - 1).map((_, n) => words.slice(n, n + WORDS_IN_A_RUN).join(' '));
  return runs.length === 0 ? 1 : new Set(runs).size / runs.length;
}

export interface PlainMeans {
  tokens: number;
  distinct: number;
  baseLogprob: number;
}

/** What has collapsed, in words; empty where nothing has. */
export function collapsed({ of, base }: { of: PlainMeans; base: PlainMeans }): string[] {
  const { tokens, distinct, baseLogprob } = PLAIN_LIMITS;
  return [
    ...(of.tokens < tokens.least * base.tokens ? ['its answers are less than half as long'] : []),
    ...(of.tokens > tokens.most * base.tokens ? ['its answers are more than twice as long'] : []),
    ...(of.distinct < base.distinct - distinct ? ['it repeats itself'] : []),
    ...(of.baseLogprob < base.baseLogprob - baseLogprob ? ['the base model finds its words unlikely'] : []),
  ];
}
