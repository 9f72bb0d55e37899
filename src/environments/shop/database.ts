/**
 * One account and a stock, and what each tool does to them. A bad call changes nothing and is answered by an error; the
 * tools permit what the policy forbids, since obeying the policy is the agent's part.
 */
import type { Action } from '../../domain/environment';
import { valueProblem } from '../json-schema';
import { TEXTS, TOOLS } from './tools';

export type Status = 'pending' | 'delivered';

interface Article {
  /** "<color> <kind>" */
  item: string;
  id: string;
  price: number;
}

export interface Item extends Article {
  status: Status;
}

export interface Database {
  user: string;
  /** Empty until changed. */
  city: string;
  /** The account's items, in the order in which they are listed; an item that was acted on has an `outcome` and is not listed. */
  items: (Item & { outcome?: string })[];
  stock: Article[];
}

type Arguments = Record<string, unknown>;

/** Marks the listed item with these words and this id. */
function settle(db: Database, { item, id }: Arguments, outcome: string): string {
  const found = db.items.find((one) => one.id === id && one.item === item && one.outcome === undefined);
  if (!found) return TEXTS.unknownItem;
  found.outcome = outcome;
  return TEXTS.ok;
}

const handlers: Record<string, (db: Database, args: Arguments) => string> = {
  get_account(db, { user }) {
    if (user !== db.user) return TEXTS.unknownAccount;
    const listed = db.items.filter(({ outcome }) => outcome === undefined);
    return listed.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ') || TEXTS.noItems;
  },
  list_stock(db, { item: wanted }) {
    const found = db.stock.filter(({ item }) => item === wanted);
    return found.map(({ item, id, price }) => `${item} ${id} ${price}`).join(' ; ') || TEXTS.unknownItem;
  },
  cancel_item: (db, args) => settle(db, args, 'cancelled'),
  rush_item: (db, args) => settle(db, args, 'rushed'),
  return_item: (db, args) => settle(db, args, `returned ${args.refund}`),
  exchange_item(db, args) {
    const isInStock = db.stock.some(({ item, id }) => item === args.new_item && id === args.new_id);
    return isInStock ? settle(db, args, `exchanged ${args.new_id}`) : TEXTS.unknownItem;
  },
  change_address(db, { user, city }) {
    if (user !== db.user) return TEXTS.unknownAccount;
    db.city = String(city);
    return TEXTS.ok;
  },
};

export function call(db: Database, { name, arguments: args }: Action): string {
  const tool = TOOLS.find((one) => one.name === name);
  if (!tool) return TEXTS.unknownTool;
  return valueProblem(tool.parameters, args) === undefined ? handlers[name]!(db, args) : TEXTS.badArguments;
}

export const isError = (observation: string): boolean => observation.startsWith('error');
