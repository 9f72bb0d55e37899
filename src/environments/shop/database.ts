/**
 * One account and a stock, and what each tool does to them. A bad call changes nothing and is answered by an error; the
 * tools permit what the policy forbids, since obeying the policy is the agent's part.
 */
import type { Action } from '../../domain/environment';
import { matches, TEXTS, TOOLS } from './tools';

export type Status = 'pending' | 'delivered';

export interface Item {
  /** "<color> <kind>" */
  item: string;
  id: string;
  status: Status;
  price: number;
}

export interface Database {
  user: string;
  /** Empty until changed. */
  city: string;
  /** The account's items, in the order in which they are listed; an item that was acted on has an `outcome` and is not listed. */
  items: (Item & { outcome?: string })[];
  stock: { item: string; id: string; price: number }[];
}

type Handler = (db: Database, args: Record<string, string>) => string;

/** Marks the listed item with these words and this id. */
function settle(db: Database, args: Record<string, string>, outcome: string): string {
  const found = db.items.find((i) => i.id === args['id'] && i.item === args['item'] && i.outcome === undefined);
  if (!found) return TEXTS.unknownItem;
  found.outcome = outcome;
  return TEXTS.ok;
}

const handlers: Record<string, Handler> = {
  get_account: (db, { user }) => {
    if (user !== db.user) return TEXTS.unknownAccount;
    const listed = db.items.filter((i) => i.outcome === undefined);
    return listed.map((i) => `${i.item} ${i.id} ${i.status} ${i.price}`).join(' ; ') || TEXTS.noItems;
  },
  list_stock: (db, { item }) => {
    const found = db.stock.filter((s) => s.item === item);
    return found.map((s) => `${s.item} ${s.id} ${s.price}`).join(' ; ') || TEXTS.unknownItem;
  },
  cancel_item: (db, args) => settle(db, args, 'cancelled'),
  rush_item: (db, args) => settle(db, args, 'rushed'),
  return_item: (db, args) => settle(db, args, `returned ${args['refund']}`),
  exchange_item: (db, args) => {
    if (!db.stock.some((s) => s.item === args['new_item'] && s.id === args['new_id'])) return TEXTS.unknownItem;
    return settle(db, args, `exchanged ${args['new_id']}`);
  },
  change_address: (db, { user, city }) => {
    if (user !== db.user) return TEXTS.unknownAccount;
    db.city = city as string;
    return TEXTS.ok;
  },
};

export function call(db: Database, action: Action): string {
  const schema = TOOLS.find((t) => t.name === action.name);
  const handler = handlers[action.name];
  if (!schema || !handler) return TEXTS.unknownTool;
  const properties = schema.parameters.properties ?? {};
  const names = Object.keys(properties);
  const given = Object.keys(action.arguments);
  const complete =
    given.length === names.length && names.every((n) => matches(properties[n] ?? {}, action.arguments[n]));
  if (!complete) return TEXTS.badArguments;
  return handler(db, Object.fromEntries(names.map((n) => [n, String(action.arguments[n])])));
}

export const isError = (observation: string): boolean => observation.startsWith('error');
