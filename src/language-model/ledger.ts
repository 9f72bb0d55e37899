/**
 * The ledger in the artifact store. A reply is kept once under its question's key and never asked for again; each payment is counted once, for the
 * campaign that paid, also where its process died between keeping and counting; a reply that there is no room for is held until there is.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type ArtifactStore, type Journal, readJson } from '../artifacts/store';
import { OutsideFailure } from '../domain/failures';
import { groupBy } from '../domain/statistics';
import {
  costOf,
  modelUsageSchema,
  payingRoleSchema,
  sumOf,
  total,
  type Budget,
  type PayingRole,
  type Price,
  type Spent,
} from '../domain/endpoints';
import { canonical } from '../artifacts/hash';
import type { Ledger, Paid } from './model';

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

export interface LedgerOptions {
  store: ArtifactStore;
  campaign: string;
  budget: Budget;
  /** Who asks. */
  role: PayingRole;
  /** A piece of some reply has come. */
  onText?: (piece: string) => void;
  /** A payment was made; 0 where it has no price. */
  onPaid?: (dollars: number) => void;
}

/** A reply that was paid for and is not yet written. */
interface Held {
  campaign: string;
  payment: Payment;
  body: string;
}

/** What this process knows of a store: such replies by the question's key, and what campaigns spend. */
interface Memory {
  held: Map<string, Held>;
  spending: Map<string, Spending>;
}
const memories = new WeakMap<ArtifactStore, Memory>();

function memoryOf(store: ArtifactStore): Memory {
  const memory = memories.get(store) ?? { held: new Map(), spending: new Map() };
  memories.set(store, memory);
  return memory;
}

function spendingOf(store: ArtifactStore, campaign: string): Spending {
  const { spending } = memoryOf(store);
  const known = spending.get(campaign) ?? new Spending(store, campaign);
  spending.set(campaign, known);
  return known;
}

/** Records that were read before are the same objects. */
const parsed = new WeakMap<object, Payment>();

/** The spending of one campaign. */
class Spending {
  /** Requests, or rollouts, that were permitted and have not ended: who asks in them. */
  readonly underWay = new Map<AbortSignal, PayingRole[]>();
  /** Payments that could not be written, by id: the next one that is counted writes them. */
  readonly uncounted = new Map<string, Payment>();
  /** Open as long as anybody counts or is permitted: opening it reads all of it. */
  private journal: Promise<Journal> | undefined;
  private users = 0;

  constructor(
    private readonly store: ArtifactStore,
    private readonly campaign: string,
  ) {}

  private get key(): string {
    return `spending/${this.campaign}`;
  }

  async has({ id }: Payment): Promise<boolean> {
    return (await this.store.records(this.key)).has(id);
  }

  async payments(): Promise<Payment[]> {
    return [...(await this.store.records(this.key)).values()].map((record) => {
      const payment = parsed.get(record as object) ?? paymentSchema.parse(record);
      parsed.set(record as object, payment);
      return payment;
    });
  }

  async count(payment: Payment): Promise<void> {
    this.uncounted.set(payment.id, payment);
    const release = this.use();
    try {
      this.journal ??= this.open();
      const journal = await this.journal;
      const all = [...this.uncounted.values()];
      await Promise.all(all.map((one) => journal.append(one.id, one)));
      for (const { id } of all) this.uncounted.delete(id);
    } finally {
      await release();
    }
  }

  private open(): Promise<Journal> {
    const opening = this.store.journal(this.key);
    opening.catch(() => this.journal === opening && (this.journal = undefined));
    return opening;
  }

  /** Keeps the journal open, once it is, until what this returns is called. */
  use(): () => Promise<void> {
    this.users += 1;
    return async () => {
      this.users -= 1;
      if (this.users > 0) return;
      const { journal } = this;
      this.journal = undefined;
      await journal?.then((opened) => opened.close()).catch(() => undefined);
    };
  }
}

const replyKey = (key: string): string => `reply/${key}`;

export function openLedger({ store, campaign, budget, role, onText, onPaid }: LedgerOptions): Ledger {
  const { held } = memoryOf(store);
  const spending = spendingOf(store, campaign);

  async function write(key: string, reply: Held): Promise<void> {
    const producer = `language model: ${reply.payment.step}`;
    await store.put({ key: replyKey(key), producer, inputs: [], mediaType: 'application/json', body: reply.body });
    await spendingOf(store, reply.campaign).count(reply.payment);
    held.delete(key);
  }

  function pay({ id = randomUUID(), step, usage, price, requests }: Paid): Payment {
    const cost = costOf(usage, price);
    if (!spending.uncounted.has(id)) onPaid?.(cost.dollars ?? 0);
    return { id, role, step, usage, ...(requests !== undefined && { requests }), ...cost };
  }

  /** What is written, and what is not yet. */
  async function allPayments(): Promise<Payment[]> {
    const waiting = [...held.values()].flatMap((one) => (one.campaign === campaign ? [one.payment] : []));
    const all = [...spending.uncounted.values(), ...waiting, ...(await spending.payments())];
    return [...new Map(all.map((payment) => [payment.id, payment])).values()];
  }

  return {
    ...(onText && { onText }),

    async find(key) {
      const unwritten = held.get(key);
      if (unwritten) await write(key, unwritten);
      const ref = await store.find(replyKey(key));
      if (!ref) return undefined;
      const { reply, paid } = await readJson(store, ref, keptSchema);
      // Whoever kept it may have died before it was counted.
      if (paid.campaign === campaign && !(await spending.has(paid.payment))) await spending.count(paid.payment);
      return reply;
    },

    async permit({ ended, ...request }) {
      if (budget.tokens !== undefined || budget.dollars !== undefined) {
        const payments = await allPayments();
        // Looked at last: nobody may be permitted between this and what is written below.
        const others = [...spending.underWay].flatMap(([other, roles]) => (other === ended ? [] : [roles]));
        holdTo({ budget, payments, underWay: others, campaign, ...request });
      }
      const known = spending.underWay.get(ended);
      if (known) return void known.push(role);
      spending.underWay.set(ended, [role]);
      const release = spending.use();
      const end = (): void => {
        spending.underWay.delete(ended);
        void release();
      };
      ended.addEventListener('abort', end, { once: true });
    },

    async keep(key, { reply, question, step, price }) {
      const paid = { campaign, payment: pay({ step, usage: reply.usage, price }) };
      const unwritten = { ...paid, body: canonical({ question, reply, paid }) };
      held.set(key, unwritten);
      await write(key, unwritten);
    },

    count: (paid) => spending.count(pay(paid)),
  };
}

/** What a campaign spent, by role and step, in the order of the names. */
export async function spentOf(o: { store: ArtifactStore; campaign: string }): Promise<Spent[]> {
  const payments = await spendingOf(o.store, o.campaign).payments();
  const rows = groupBy(payments, ({ role = '', step }) => JSON.stringify([role, step]));
  return [...rows]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, own]) => {
      const { role, step } = own[0]!;
      return { ...(role && { role }), step, ...sumOf(own.map(costIn)) };
    });
}

const costIn = ({ usage, requests = 1, dollars }: Payment) => ({
  ...usage,
  requests,
  ...(dollars !== undefined && { dollars }),
});

/** What is under way will cost what a payment of its role cost so far: the most that it may cost would stop long before the budget is spent. */
function holdTo(o: {
  budget: Budget;
  payments: readonly Payment[];
  /** Who asks in what is under way. */
  underWay: readonly PayingRole[][];
  campaign: string;
  field: string;
  price?: Price | undefined;
}): void {
  const { budget, payments, underWay, campaign, field, price } = o;
  if (budget.dollars !== undefined && price === undefined)
    throw new OutsideFailure(
      'BadInput',
      `budget.dollars is ${budget.dollars}, and ${field} has no price to count dollars by; set ${field}.price, or budget.tokens instead`,
    );
  const spent = total(payments.map(costIn));
  const asking = underWay.flat();
  for (const unit of ['tokens', 'dollars'] as const) {
    const limit = budget[unit];
    if (limit === undefined) continue;
    const expected = [...new Set(asking)].reduce((sum, role) => {
      const own = payments.filter((payment) => payment.role === role);
      const times = asking.filter((one) => one === role).length;
      return sum + (times * total(own.map(costIn))[unit]) / Math.max(1, own.length);
    }, 0);
    if (spent[unit] + expected < limit) continue;
    const amount = unit === 'tokens' ? String(spent.tokens) : spent.dollars.toFixed(spent.dollars < 1 ? 4 : 2);
    const beside = underWay.length > 0 ? `, and ${underWay.length} more are under way` : '';
    throw new OutsideFailure(
      'BudgetSpent',
      `budget.${unit} is ${limit}: campaign ${campaign} has spent ${amount} ${unit} on ${spent.requests} requests${beside}; ` +
        `raise budget.${unit} and run the campaign again: what was paid for is kept`,
    );
  }
}
