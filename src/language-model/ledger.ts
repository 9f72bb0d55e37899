/**
 * The ledger in the artifact store. Invariants: a reply is kept once under its question's key and never asked for again; each payment is counted
 * once, for the campaign that paid, also where its process died between keeping and counting; a reply that there is no room for is held until
 * there is; the key of an endpoint is in neither.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { ArtifactStore } from '../artifacts/store';
import { OutsideFailure } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { modelUsageSchema, type Budget, type Spent } from '../domain/endpoints';
import { canonical } from '../artifacts/hash';
import { costOf, sumOf, total, type Total } from './costs';
import type { Ledger, PermitRequest } from './types';

/** One payment, as the journal and the kept reply have it. */
const paymentSchema = z.object({
  id: z.string(),
  step: z.string(),
  usage: modelUsageSchema,
  dollars: z.number().optional(),
});
type Payment = z.infer<typeof paymentSchema>;

const keptSchema = z.object({
  reply: z.object({ text: z.string(), finish: z.string(), usage: modelUsageSchema }),
  paid: z.object({ campaign: z.string(), payment: paymentSchema }),
});

interface LedgerOptions {
  store: ArtifactStore;
  campaign: string;
  budget: Budget;
  /** A piece of some reply has come. */
  heard?: (piece: string) => void;
}

const replyKey = (key: string): string => `reply/${key}`;
const spendingKey = (campaign: string): string => `spending/${campaign}`;

/** A reply that was paid for and is not yet written. */
interface Held {
  campaign: string;
  payment: Payment;
  body: string;
}

/** What this process knows of a store. */
interface Memory {
  /** Requests that were permitted and have not ended, by campaign. */
  asked: Map<string, Set<AbortSignal>>;
  /** By key of the question. */
  held: Map<string, Held>;
}
const memories = new WeakMap<ArtifactStore, Memory>();

export function openLedger({ store, campaign, budget, heard }: LedgerOptions): Ledger {
  const { held, ...memory } = memoryOf(store);
  const asked = memory.asked.get(campaign) ?? new Set<AbortSignal>();
  memory.asked.set(campaign, asked);

  async function count({ campaign, payment }: Pick<Held, 'campaign' | 'payment'>): Promise<void> {
    const journal = await store.journal(spendingKey(campaign));
    try {
      await journal.append(payment.id, payment);
    } finally {
      await journal.close();
    }
  }

  async function write(key: string, reply: Held): Promise<void> {
    const producer = `language model: ${reply.payment.step}`;
    await store.put({ key: replyKey(key), producer, inputs: [], mediaType: 'application/json', body: reply.body });
    await count(reply);
    held.delete(key);
  }

  return {
    ...(heard && { heard }),

    async find(key) {
      const unwritten = held.get(key);
      if (unwritten) await write(key, unwritten);
      const ref = await store.find(replyKey(key));
      if (!ref) return undefined;
      const { reply, paid } = jsonText.pipe(keptSchema).parse((await store.read(ref)).toString('utf8'));
      // Whoever kept it may have died before it was counted.
      if (paid.campaign === campaign && !(await store.records(spendingKey(campaign))).has(paid.payment.id))
        await count(paid);
      return reply;
    },

    async permit({ ended, ...request }) {
      if (budget.tokens !== undefined || budget.dollars !== undefined) {
        const payments = await paymentsOf({ store, campaign });
        const counted = new Set(payments.map(({ id }) => id));
        const uncounted = [...held.values()]
          .filter((one) => one.campaign === campaign && !counted.has(one.payment.id))
          .map(({ payment }) => payment);
        const spent = total([...payments, ...uncounted].map(paidFor));
        holdTo({ budget, spent, asked: asked.size, campaign, ...request });
      }
      asked.add(ended);
      ended.addEventListener('abort', () => asked.delete(ended), { once: true });
    },

    async keep(key, { reply, question, step, price }) {
      const paid = { campaign, payment: paymentFor({ step, usage: reply.usage, price }) };
      const unwritten = { ...paid, body: canonical({ question, reply, paid }) };
      held.set(key, unwritten);
      await write(key, unwritten);
    },

    countLost: (lost) => count({ campaign, payment: paymentFor(lost) }),
  };
}

const paymentFor = ({ step, usage, price }: Parameters<Ledger['countLost']>[0]): Payment => ({
  ...{ id: randomUUID(), step, usage },
  ...costOf(usage, price),
});

function memoryOf(store: ArtifactStore): Memory {
  const memory = memories.get(store) ?? { asked: new Map(), held: new Map() };
  memories.set(store, memory);
  return memory;
}

/** What a campaign spent, by step, in the order of the names. */
export async function spentOf({ store, campaign }: Pick<LedgerOptions, 'store' | 'campaign'>): Promise<Spent[]> {
  const payments = await paymentsOf({ store, campaign });
  const steps = [...new Set(payments.map(({ step }) => step))].sort();
  return steps.map((step) => ({ step, ...sumOf(payments.filter((one) => one.step === step).map(paidFor)) }));
}

const paidFor = ({ usage, dollars }: Payment) => ({ ...usage, requests: 1, ...(dollars !== undefined && { dollars }) });

/** Records that were read before are the same objects. */
const parsed = new WeakMap<object, Payment>();

async function paymentsOf({ store, campaign }: Pick<LedgerOptions, 'store' | 'campaign'>): Promise<Payment[]> {
  return [...(await store.records(spendingKey(campaign))).values()].map((record) => {
    const known = parsed.get(record as object);
    if (known) return known;
    const payment = paymentSchema.parse(record);
    parsed.set(record as object, payment);
    return payment;
  });
}

/** What is being asked will cost what a request cost so far: the most that it may cost would stop long before the budget is spent. */
function holdTo(
  o: { budget: Budget; spent: Total; asked: number; campaign: string } & Omit<PermitRequest, 'ended'>,
): void {
  const { budget, spent, asked, campaign, field, price } = o;
  if (budget.dollars !== undefined && price === undefined)
    throw new OutsideFailure(
      'BadInput',
      `budget.dollars is ${budget.dollars}, and ${field} has no price to count dollars by; set ${field}.price, or budget.tokens instead`,
    );
  const expected = (sum: number) => sum + (spent.requests === 0 ? 0 : (asked * sum) / spent.requests);
  for (const unit of ['tokens', 'dollars'] as const) {
    const limit = budget[unit];
    if (limit === undefined || expected(spent[unit]) < limit) continue;
    const beside = asked > 0 ? `, and ${asked} more are being asked` : '';
    throw new OutsideFailure(
      'BudgetSpent',
      `budget.${unit} is ${limit}: campaign ${campaign} has spent ${shown(spent[unit], unit)} ${unit} on ${spent.requests} requests${beside}; ` +
        `raise budget.${unit} and run the campaign again: what was paid for is kept`,
    );
  }
}

const shown = (amount: number, unit: 'tokens' | 'dollars'): string =>
  unit === 'tokens' ? String(amount) : amount.toFixed(amount < 1 ? 4 : 2);
