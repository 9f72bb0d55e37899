/** What language models cost. Invariant: dollars are counted where a price is known, and are never guessed. */
import type { ModelUsage, Price, Spent } from '../domain/endpoints';

const MILLION = 1_000_000;

/** Nothing without a price. */
export function costOf(usage: ModelUsage, price: Price | undefined): { dollars?: number } {
  if (!price) return {};
  const { promptTokens, completionTokens } = usage;
  const cachedTokens = Math.min(usage.cachedTokens, promptTokens);
  const { input, cachedInput = input, output } = price;
  const dollars = (promptTokens - cachedTokens) * input + cachedTokens * cachedInput + completionTokens * output;
  return { dollars: dollars / MILLION };
}

export type Sum = Omit<Spent, 'step'>;

/** Dollars of what has a price, and how many requests have none; neither where nothing has a price. */
export function sumOf(parts: readonly Sum[]): Sum {
  const of = (count: (part: Sum) => number) => parts.reduce((sum, part) => sum + count(part), 0);
  const unpriced = of((part) => (part.dollars === undefined ? part.requests : (part.unpriced ?? 0)));
  const isPriced = parts.length === 0 || parts.some(({ dollars }) => dollars !== undefined);
  return {
    requests: of(({ requests }) => requests),
    promptTokens: of(({ promptTokens }) => promptTokens),
    cachedTokens: of(({ cachedTokens }) => cachedTokens),
    completionTokens: of(({ completionTokens }) => completionTokens),
    ...(isPriced && { dollars: of(({ dollars = 0 }) => dollars), ...(unpriced > 0 && { unpriced }) }),
  };
}

/** As budgets count. */
export interface Total {
  requests: number;
  tokens: number;
  dollars: number;
}

export const total = (parts: readonly Sum[]): Total => {
  const { requests, promptTokens, completionTokens } = sumOf(parts);
  const dollars = parts.reduce((sum, part) => sum + (part.dollars ?? 0), 0);
  return { requests, tokens: promptTokens + completionTokens, dollars };
};

/** Where an endpoint does not say: four characters a token, as in English. */
export const CHARACTERS_A_TOKEN = 4;
export const tokensOf = (characters: number): number => Math.ceil(characters / CHARACTERS_A_TOKEN);
