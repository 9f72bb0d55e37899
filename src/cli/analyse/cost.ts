/** What language models cost, in words. Invariant: what has no price is not taken for free, and is said. */
import type { Spent } from '../../domain/endpoints';
import { wholeNumber } from '../../report/format';

export type Cost = Omit<Spent, 'step'>;

/** `12 requests, 340,000 tokens in (200,000 of them cached), 12,000 out, $1.23`; without a price `unpriced`. */
export function costText({ requests, promptTokens, cachedTokens, completionTokens, ...paid }: Cost): string {
  const cached = cachedTokens > 0 ? ` (${wholeNumber(cachedTokens)} of them cached)` : '';
  return [
    `${wholeNumber(requests)} request${requests === 1 ? '' : 's'}`,
    `${wholeNumber(promptTokens)} tokens in${cached}`,
    `${wholeNumber(completionTokens)} out`,
    moneyText({ requests, ...paid }),
  ].join(', ');
}

function moneyText({ requests, dollars, unpriced = 0 }: Pick<Cost, 'requests' | 'dollars' | 'unpriced'>): string {
  if (dollars === undefined) return 'unpriced';
  const others = unpriced > 0 ? ` (${wholeNumber(unpriced)} of ${wholeNumber(requests)} requests unpriced)` : '';
  return `${dollarText(dollars)}${others}`;
}

export const dollarText = (dollars: number): string => `$${dollars.toFixed(dollars < 0.1 && dollars > 0 ? 4 : 2)}`;
