/**
 * The ledger in the artifact store. Invariants: a reply is kept once under its question's key and never asked for again; each payment is counted
 * once, for the campaign that paid, also where its process died between keeping and counting; a reply that there is no room for is held until
 * there is; the key of an endpoint is in neither.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { ArtifactStore, Journal } from '../artifacts/store';
import { OutsideFailure } from '../domain/failures';
import {
  costOf,
  modelUsageSchema,
  payingRoleSchema,
  sumOf,
  total,
  type Budget,
  type PayingRole,
  type Spent,
  type Total,
} from '../domain/endpoints';
import { jsonText } from '../domain/messages';
import { canonical } from '../artifacts/hash';
import type { Ledger, Paid, PermitRequest } from './types';

/** One payment, as the journal and the kept reply have it. */
const paymentSchema = z.object({
  id: z.string(),
  /** Absent of what was paid before roles were told apart. */
  role: payingRoleSchema.optional(),
  step: z.string(),
  usage: modelUsageSchema,
  /** Of a rollout all that were made to one role; absent: one. */
  requests: z.number().int().positive().optional(),
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
  /** Who asks. */
  role: PayingRole;
  /** A piece of some reply has come. */
  onText?: (piece: string) => void;
}

const replyKey = (key: string): string => `reply/${key}`;
const spendingKey = (campaign: string): string => `spending/${campaign}`;

/** A reply that was paid for and is not yet written. */
interface Held {
  campaign: string;
  payment: Payment;
  body: string;
}

/** What this process knows of the spending of one campaign. */
interface Spending {
  /** Requests, or rollouts, that were permitted and have not ended: who asks in them. */
  underWay: Map<AbortSignal, PayingRole[]>;
  /** Payments that could not be written, by id: the next one that is counted writes them. */
  uncounted: Map<string, Payment>;
  /** Open as long as anybody counts or is permitted: opening it reads all of it. */
  journal: Promise<Journal> | undefined;
  users: number;
}

/** What this process knows of a store. */
interface Memory {
  spending: Map<string, Spending>;
  /** By key of the question. */
  held: Map<string, Held>;
}
const memories = new WeakMap<ArtifactStore, Memory>();

export function openLedger({ store, campaign, budget, role, onText }: LedgerOptions): Ledger {
  const { held } = memoryOf(store);

  async function write(key: string, reply: Held): Promise<void> {
    const producer = `language model: ${reply.payment.step}`;
    await store.put({ key: replyKey(key), producer, inputs: [], mediaType: 'application/json', body: reply.body });
    await count(store, reply);
    held.delete(key);
  }

  const paymentFor = ({ step, usage, price, requests }: Paid): Payment => ({
    id: randomUUID(),
    role,
    step,
    usage,
    ...(requests !== undefined && { requests }),
    ...costOf(usage, price),
  });

  return {
    ...(onText && { onText }),

    async find(key) {
      const unwritten = held.get(key);
      if (unwritten) await write(key, unwritten);
      const ref = await store.find(replyKey(key));
      if (!ref) return undefined;
      const { reply, paid } = jsonText.pipe(keptSchema).parse((await store.read(ref)).toString('utf8'));
      // Whoever kept it may have died before it was counted.
      if (paid.campaign === campaign && !(await store.records(spendingKey(campaign))).has(paid.payment.id))
        await count(store, paid);
      return reply;
    },

    async permit({ ended, ...request }) {
      const spending = spendingOf(store, campaign);
      if (budget.tokens !== undefined || budget.dollars !== undefined) {
        const payments = await paymentsOf({ store, campaign });
        const counted = await store.records(spendingKey(campaign));
        const uncounted = new Map(spending.uncounted);
        for (const one of held.values()) if (one.campaign === campaign) uncounted.set(one.payment.id, one.payment);
        for (const payment of uncounted.values()) if (!counted.has(payment.id)) payments.push(payment);
        const underWay = [...spending.underWay].flatMap(([other, roles]) => (other === ended ? [] : [roles]));
        holdTo({ budget, payments, underWay, campaign, ...request });
      }
      const known = spending.underWay.get(ended);
      if (known) return void known.push(role);
      spending.underWay.set(ended, [role]);
      const release = use(spending);
      const end = (): void => {
        spending.underWay.delete(ended);
        void release();
      };
      ended.addEventListener('abort', end, { once: true });
    },

    async keep(key, { reply, question, step, price }) {
      const paid = { campaign, payment: paymentFor({ step, usage: reply.usage, price }) };
      const unwritten = { ...paid, body: canonical({ question, reply, paid }) };
      held.set(key, unwritten);
      await write(key, unwritten);
    },

    count: (paid) => count(store, { campaign, payment: paymentFor(paid) }),
  };
}

async function count(store: ArtifactStore, { campaign, payment }: Pick<Held, 'campaign' | 'payment'>): Promise<void> {
  const spending = spendingOf(store, campaign);
  const { uncounted } = spending;
  uncounted.set(payment.id, payment);
  const release = use(spending);
  try {
    const journal = await journalOf(store, campaign);
    const all = [...uncounted.values()];
    await Promise.all(all.map((one) => journal.append(one.id, one)));
    for (const { id } of all) uncounted.delete(id);
  } finally {
    await release();
  }
}

function journalOf(store: ArtifactStore, campaign: string): Promise<Journal> {
  const spending = spendingOf(store, campaign);
  if (spending.journal) return spending.journal;
  const opening = store.journal(spendingKey(campaign));
  spending.journal = opening;
  opening.catch(() => spending.journal === opening && (spending.journal = undefined));
  return opening;
}

/** Keeps the journal open, once it is, until what this returns is called. */
function use(spending: Spending): () => Promise<void> {
  spending.users += 1;
  return async () => {
    spending.users -= 1;
    if (spending.users > 0) return;
    const { journal } = spending;
    spending.journal = undefined;
    await journal?.then((opened) => opened.close()).catch(() => undefined);
  };
}

function memoryOf(store: ArtifactStore): Memory {
  const memory = memories.get(store) ?? { spending: new Map(), held: new Map() };
  memories.set(store, memory);
  return memory;
}

function spendingOf(store: ArtifactStore, campaign: string): Spending {
  const { spending } = memoryOf(store);
  const known = spending.get(campaign) ?? { underWay: new Map(), uncounted: new Map(), journal: undefined, users: 0 };
  spending.set(campaign, known);
  return known;
}

/** What a campaign spent, by role and step, in the order of the names. */
export async function spentOf({ store, campaign }: Pick<LedgerOptions, 'store' | 'campaign'>): Promise<Spent[]> {
  const bySteps = new Map<string, Payment[]>();
  for (const payment of await paymentsOf({ store, campaign })) {
    const name = JSON.stringify([payment.role ?? '', payment.step]);
    bySteps.set(name, bySteps.get(name) ?? []);
    bySteps.get(name)!.push(payment);
  }
  const names = [...bySteps.keys()].sort();
  return names.map((name) => {
    const payments = bySteps.get(name)!;
    const { role, step } = payments[0]!;
    return { ...(role && { role }), step, ...sumOf(payments.map(paidFor)) };
  });
}

const paidFor = ({ usage, requests = 1, dollars }: Payment) => ({
  ...usage,
  requests,
  ...(dollars !== undefined && { dollars }),
});

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

interface Asked extends Omit<PermitRequest, 'ended'> {
  budget: Budget;
  payments: readonly Payment[];
  /** Who asks in what is under way. */
  underWay: readonly PayingRole[][];
  campaign: string;
}

/** What is under way will cost what a payment of its role cost so far: the most that it may cost would stop long before the budget is spent. */
function holdTo({ budget, payments, underWay, campaign, field, price }: Asked): void {
  if (budget.dollars !== undefined && price === undefined)
    throw new OutsideFailure(
      'BadInput',
      `budget.dollars is ${budget.dollars}, and ${field} has no price to count dollars by; set ${field}.price, or budget.tokens instead`,
    );
  const spent = total(payments.map(paidFor));
  const meanOf = (role: PayingRole): Total & { payments: number } => {
    const own = payments.filter((payment) => payment.role === role);
    return { ...total(own.map(paidFor)), payments: own.length };
  };
  const asked = underWay.flat();
  const means = new Map([...new Set(asked)].map((role) => [role, meanOf(role)]));
  for (const unit of ['tokens', 'dollars'] as const) {
    const limit = budget[unit];
    if (limit === undefined) continue;
    const more = asked.reduce((sum, role) => {
      const mean = means.get(role)!;
      return sum + (mean.payments === 0 ? 0 : mean[unit] / mean.payments);
    }, 0);
    if (spent[unit] + more < limit) continue;
    const beside = underWay.length > 0 ? `, and ${underWay.length} more are under way` : '';
    throw new OutsideFailure(
      'BudgetSpent',
      `budget.${unit} is ${limit}: campaign ${campaign} has spent ${shown(spent[unit], unit)} ${unit} on ${spent.requests} requests${beside}; ` +
        `raise budget.${unit} and run the campaign again: what was paid for is kept`,
    );
  }
}

const shown = (amount: number, unit: 'tokens' | 'dollars'): string =>
  unit === 'tokens' ? String(amount) : amount.toFixed(amount < 1 ? 4 : 2);
