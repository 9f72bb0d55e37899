/**
 * The ledger in the artifact store. A reply is kept once under its question's key and never asked for again; each payment is counted for the campaign
 * that paid; a reply that can't be written is held in memory until it can.
 */
import { z } from 'zod';
import { canonical } from '../store/hash';
import { type ArtifactStore, readJson } from '../store/store';
import { badInput } from '../domain/failures';
import { costOf, modelUsageSchema, type Budget, type PayingRole } from '../domain/endpoints';
import { getOrMake } from '../domain/maps';
import type { Ledger, Paid } from './model';
import { spendingOf } from './spending';

const keptSchema = z.object({
  reply: z.object({ text: z.string(), finish: z.string(), usage: modelUsageSchema }),
});

export interface LedgerOptions {
  store: ArtifactStore;
  campaign: string;
  budget: Budget;
  role: PayingRole;
  /** Called for each payment; with 0 where it has no price. */
  onPaid?: (dollars: number) => void;
}

interface HeldReply {
  step: string;
  body: string;
}

/** Replies that could not be written yet, by the question's key. */
const heldReplies = new WeakMap<ArtifactStore, Map<string, HeldReply>>();

const replyKey = (key: string): string => `reply/${key}`;

export function openLedger({ store, campaign, budget, role, onPaid }: LedgerOptions): Ledger {
  const held = getOrMake(heldReplies, store, () => new Map<string, HeldReply>());
  const spending = spendingOf(store, campaign);

  async function write(key: string, { step, body }: HeldReply): Promise<void> {
    const producer = `language model: ${step}`;
    await store.put({ key: replyKey(key), producer, inputs: [], mediaType: 'application/json', body });
    held.delete(key);
  }

  async function count({ step, usage, price, requests = 1 }: Paid): Promise<void> {
    const cost = costOf(usage, price);
    onPaid?.(cost.dollars ?? 0);
    await spending.pay({ role, step, requests, ...usage, ...cost });
  }

  return {
    async find(key) {
      const unwritten = held.get(key);
      if (unwritten) await write(key, unwritten);
      const ref = await store.find(replyKey(key));
      return ref && (await readJson(store, ref, keptSchema)).reply;
    },

    async permit({ ended, field, price }) {
      if (budget.dollars !== undefined && price === undefined)
        throw badInput(
          `budget.dollars is ${budget.dollars}, and ${field} has no price to count dollars by; set ${field}.price, or budget.tokens instead`,
        );
      await spending.permit({ budget, role, ended });
    },

    async keep(key, { reply, question, step, price }) {
      // Counted first: a process that dies in between has paid for a reply that is asked for again.
      await count({ step, usage: reply.usage, price });
      const unwritten = { step, body: canonical({ question, reply }) };
      held.set(key, unwritten);
      await write(key, unwritten);
    },

    count,
  };
}
