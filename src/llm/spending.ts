/**
 * Counts the spending of a campaign in numbered records `budget/CAMPAIGN/1`, `2`, ... that are each created once. A process reserves a slice of the budget with a
 * record before it spends, and its next record settles its payments and returns the rest. Every record carries the totals: the last one is enough.
 * Invariant: payments and slices of all processes fit the budget. The slice of a process that was killed is never returned: it counts as spent.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { ArtifactStore } from '../store/store';
import { OutsideFailure } from '../domain/failures';
import { getOrMake } from '../domain/maps';
import { groupBy } from '../domain/statistics';
import { spentSchema, sumOf, total, type Budget, type PayingRole, type Spent } from '../domain/endpoints';

/** Interval at which payments are recorded during a step, ms. After a kill the report lacks at most the payments of one interval. */
const SETTLE_MS = 5_000;
/** The part of the budget that a process reserves beside the requests under way, and the part of the rest where that is less. */
const SLICE = 0.01;
const SLICE_OF_REST = 0.1;
/** Dollars are sums of fractions. */
const ROUNDING = 1e-9;

const units = ['tokens', 'dollars'] as const;
const amountSchema = z.object({ tokens: z.number(), dollars: z.number() });
type Amount = z.infer<typeof amountSchema>;
const NONE: Amount = { tokens: 0, dollars: 0 };

const add = (amounts: readonly Amount[]): Amount => ({
  tokens: amounts.reduce((sum, { tokens }) => sum + tokens, 0),
  dollars: amounts.reduce((sum, { dollars }) => sum + dollars, 0),
});

const recordSchema = z.object({
  /** Id of the process that wrote it, so that no two processes write the same text. */
  by: z.string(),
  spent: z.array(spentSchema),
  payments: z.record(z.string(), z.number()),
  reserved: z.record(z.string(), amountSchema),
});
type BudgetRecord = z.infer<typeof recordSchema>;
const EMPTY: BudgetRecord = { by: '', spent: [], payments: {}, reserved: {} };

export type Payment = Spent & { role: PayingRole };

interface Attempt {
  number: number;
  text: string;
  payments: number;
}

class Spending {
  private readonly id = randomUUID();
  private number = 0;
  private text: string | undefined;
  private record = EMPTY;
  private isCurrent = false;
  /** A record whose writing failed. It may exist nevertheless, so the same text is written again. */
  private attempt: Attempt | undefined;
  private payments: Payment[] = [];
  private settledMs = -Infinity;
  private underWay = new Map<AbortSignal, PayingRole[]>();
  private turn: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly store: ArtifactStore,
    private readonly campaign: string,
  ) {}

  /** Counts a request as under way until `ended` aborts. Throws BudgetSpent where its expected cost does not fit the budget. */
  permit(o: { budget: Budget; role: PayingRole; ended: AbortSignal }): Promise<void> {
    const { budget, role, ended } = o;
    return this.inTurn(async () => {
      const roles = this.underWay.get(ended) ?? [];
      if (units.some((unit) => budget[unit] !== undefined))
        await this.cover(budget, [...[...this.underWay.values()].flat(), role]);
      if (ended.aborted) return;
      roles.push(role);
      if (roles.length > 1) return;
      this.underWay.set(ended, roles);
      ended.addEventListener('abort', () => this.underWay.delete(ended), { once: true });
    });
  }

  /** Counts a payment. If the store is unavailable, it stays in memory until the next record. */
  async pay(payment: Payment): Promise<void> {
    this.payments.push(payment);
    if (performance.now() - this.settledMs >= SETTLE_MS) await this.settle().catch(() => undefined);
  }

  /** Writes the payments; with no request under way it returns the slice. */
  settle(): Promise<void> {
    return this.inTurn(async () => {
      const isIdle = this.underWay.size === 0;
      if (this.payments.length > 0 || this.attempt || (isIdle && this.id in this.record.reserved))
        await this.write(() => (isIdle ? NONE : this.rest()));
      if (isIdle) this.isCurrent = false;
    });
  }

  /** The settled payments by role and step, and what is reserved beside them. */
  totals(): Promise<Spent[]> {
    return this.inTurn(async () => {
      await this.catchUp();
      const { tokens, dollars } = add(Object.values(this.record.reserved));
      const usage = { requests: 0, promptTokens: tokens, cachedTokens: 0, completionTokens: 0 };
      const reserved = { step: 'reserved, not settled', ...usage, ...(dollars > 0 && { dollars }) };
      return [...this.record.spent, ...(tokens + dollars > 0 ? [reserved] : [])];
    });
  }

  private slicesOfOthers(): Record<string, Amount> {
    return Object.fromEntries(Object.entries(this.record.reserved).filter(([id]) => id !== this.id));
  }

  private rest(): Amount {
    const slice = this.record.reserved[this.id] ?? NONE;
    const used = total(this.payments);
    return {
      tokens: Math.max(0, slice.tokens - used.tokens),
      dollars: Math.max(0, slice.dollars - used.dollars),
    };
  }

  /** A request is expected to cost the average of its role's payments; nothing where there are none yet. */
  private expected(roles: readonly PayingRole[]): Amount {
    const requests = [...groupBy(roles, (role) => role)];
    return add(
      requests.map(([role, { length }]) => {
        const payments = this.payments.filter((payment) => payment.role === role);
        const paid = (this.record.payments[role] ?? 0) + payments.length;
        const cost = total([...this.record.spent.filter((row) => row.role === role), ...payments]);
        const share = paid === 0 ? 0 : length / paid;
        return { tokens: cost.tokens * share, dollars: cost.dollars * share };
      }),
    );
  }

  /** Takes a new slice where the present one does not cover the requests. */
  private async cover(budget: Budget, roles: readonly PayingRole[]): Promise<void> {
    if (!this.isCurrent) await this.catchUp();
    const rest = this.rest();
    const need = this.expected(roles);
    const isCovered = units.every(
      (unit) => budget[unit] === undefined || (rest[unit] > 0 && need[unit] <= rest[unit] + ROUNDING),
    );
    if (!isCovered) await this.write(() => this.slice(budget, roles));
  }

  private slice(budget: Budget, roles: readonly PayingRole[]): Amount {
    const spent = total([...this.record.spent, ...this.payments]);
    const reserved = add(Object.values(this.slicesOfOthers()));
    const need = this.expected(roles);
    const slice = { ...NONE };
    for (const unit of units) {
      const limit = budget[unit];
      if (limit === undefined) continue;
      const room = limit - spent[unit] - reserved[unit];
      if (room <= ROUNDING || need[unit] > room + ROUNDING) {
        const show = (amount: number) =>
          unit === 'tokens' ? String(Math.round(amount)) : amount.toFixed(amount < 1 ? 4 : 2);
        const besides = reserved[unit] + this.expected(roles.slice(0, -1))[unit];
        throw new OutsideFailure(
          'BudgetSpent',
          `budget.${unit} is ${limit}: campaign ${this.campaign} has spent ${show(spent[unit])} ${unit} on ${sumOf(this.settled().spent).requests} requests` +
            `${besides > ROUNDING ? ` and reserved ${show(besides)} for requests under way` : ''}; ` +
            `raise budget.${unit} and run the campaign again: what was paid for is kept`,
        );
      }
      slice[unit] = Math.min(room, need[unit] + Math.min(limit * SLICE, room * SLICE_OF_REST));
    }
    return slice;
  }

  /** Settles the payments and sets the slice. It is computed again for each number that another process took first. */
  private async write(slice: () => Amount): Promise<void> {
    if (this.attempt && !(await this.create(this.attempt))) this.attempt = undefined;
    for (;;) {
      if (!this.isCurrent) await this.catchUp();
      const reserved = this.slicesOfOthers();
      const own = slice();
      if (own.tokens > 0 || own.dollars > 0) reserved[this.id] = own;
      const record: BudgetRecord = { by: this.id, ...this.settled(), reserved };
      this.attempt = { number: this.number + 1, text: JSON.stringify(record), payments: this.payments.length };
      if (await this.create(this.attempt)) return;
      this.attempt = undefined;
      this.isCurrent = false;
    }
  }

  private settled(): Pick<BudgetRecord, 'spent' | 'payments'> {
    const payments = { ...this.record.payments };
    for (const { role } of this.payments) payments[role] = (payments[role] ?? 0) + 1;
    const rows = groupBy([...this.record.spent, ...this.payments], ({ role = '', step }) =>
      JSON.stringify([role, step]),
    );
    const spent = [...rows]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, own]) => {
        const { role, step } = own[0]!;
        return { ...(role && { role }), step, ...sumOf(own) };
      });
    return { spent, payments };
  }

  /** Returns whether the attempt's record is the one of that number. */
  private async create(attempt: Attempt): Promise<boolean> {
    const { number, text, payments } = attempt;
    const path = this.path(number);
    if (!(await this.store.files.create(path, text)) && (await this.store.files.read(path)) !== text) return false;
    this.payments.splice(0, payments);
    this.take(number, text);
    this.settledMs = performance.now();
    this.attempt = undefined;
    return true;
  }

  private take(number: number, text: string | undefined): void {
    this.number = number;
    this.text = text;
    this.record = text === undefined ? EMPTY : recordSchema.parse(JSON.parse(text));
    this.isCurrent = true;
  }

  private path(number: number): string {
    return `budget/${this.campaign}/${number}`;
  }

  /** Reads the last record. Steps are doubled and then halved, so that few of the records between are read. */
  private async catchUp(): Promise<void> {
    const { files } = this.store;
    // A campaign of this name may have been deleted since.
    const isThere = this.number > 0 && (await files.read(this.path(this.number))) === this.text;
    let [number, text] = isThere ? [this.number, this.text] : [0, undefined];
    const advance = async (step: number): Promise<boolean> => {
      const found = await files.read(this.path(number + step));
      if (found !== undefined) [number, text] = [number + step, found];
      return found !== undefined;
    };
    let step = 1;
    while (await advance(step)) step *= 2;
    while (step > 1) await advance((step /= 2));
    this.take(number, text);
  }

  private inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const result = this.turn.then(work);
    this.turn = result.catch(() => undefined);
    return result;
  }
}

const known = new WeakMap<ArtifactStore, Map<string, Spending>>();

const spendingIn = (store: ArtifactStore) => getOrMake(known, store, () => new Map<string, Spending>());

export const spendingOf = (store: ArtifactStore, campaign: string): Spending =>
  getOrMake(spendingIn(store), campaign, () => new Spending(store, campaign));

/** Writes the payments that this process has made; called before the result of a step is returned. */
export async function settleSpending(store: ArtifactStore): Promise<void> {
  for (const spending of spendingIn(store).values()) await spending.settle();
}

/** Returns the spending of a campaign by role and step. Reservations are a row of their own, as tokens of prompts. */
export const spentOf = (o: { store: ArtifactStore; campaign: string }): Promise<Spent[]> =>
  spendingOf(o.store, o.campaign).totals();
