/** Payments of a step that calls language models. */
import type { PayingRole } from '../domain/endpoints';
import type { Work } from '../domain/work';
import { type LedgerOptions, openLedger } from '../llm/ledger';
import type { Ledger } from '../llm/model';
import { count } from '../metrics';
import type { ArtifactStore } from '../store/store';
import { markProgress, working } from './heartbeat';
import type { Payer } from './types';

/** Opens the ledger of a step. Payments are counted in metrics, and a kept reply is durable progress. */
export function ledgerOf(o: LedgerOptions): Ledger {
  const onPaid = (dollars: number) => count('campaign_spent_microdollars', dollars * 1e6, { role: o.role });
  const ledger = openLedger({ ...o, onPaid });
  return {
    ...ledger,
    async keep(...reply) {
      await ledger.keep(...reply);
      markProgress();
    },
  };
}

/** Returns progress, signal and ledger for a part that calls a language model. */
export function asking(
  o: Payer & { store: ArtifactStore; title: string; role: PayingRole },
): Work & { ledger: Ledger } {
  const { store, campaign, budget, role, title } = o;
  const work = working(title);
  work.progress(0, 1);
  return { ...work, ledger: ledgerOf({ store, campaign, budget, role }) };
}
