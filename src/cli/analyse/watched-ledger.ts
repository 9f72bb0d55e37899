/** A ledger that tells what is paid for while it is. */
import { costOf, sumOf } from '../../language-model/costs';
import type { Ledger } from '../../language-model/types';
import type { Cost } from './cost';

export function watchedLedger(ledger: Ledger, onSpent: (all: Cost) => void): Ledger {
  const paid: Cost[] = [];
  return {
    ...ledger,
    async keep(key, kept) {
      await ledger.keep(key, kept);
      paid.push({ requests: 1, ...kept.reply.usage, ...costOf(kept.reply.usage, kept.price) });
      onSpent(sumOf(paid));
    },
  };
}
