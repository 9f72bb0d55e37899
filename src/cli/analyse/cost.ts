/** What language models cost, in words. Invariant: dollars are said only where every request has a price. */
import type { Spent } from '../../domain/language-model';
import { wholeNumber } from '../../report/format';

export type Cost = Omit<Spent, 'step'>;

/** `12 requests, 340,000 tokens in (200,000 of them cached), 12,000 out, $1.23`. */
export function costText({ requests, promptTokens, cachedTokens, completionTokens, dollars }: Cost): string {
  const cached = cachedTokens > 0 ? ` (${wholeNumber(cachedTokens)} of them cached)` : '';
  return [
    `${wholeNumber(requests)} request${requests === 1 ? '' : 's'}`,
    `${wholeNumber(promptTokens)} tokens in${cached}`,
    `${wholeNumber(completionTokens)} out`,
    ...(dollars === undefined ? [] : [dollarText(dollars)]),
  ].join(', ');
}

export const dollarText = (dollars: number): string => `$${dollars.toFixed(dollars < 0.1 && dollars > 0 ? 4 : 2)}`;
