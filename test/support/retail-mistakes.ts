/** Mistakes of the scripted retail agent: which can be made at a task, and what becomes of a write. All are functions of the task. */
import type { Payment, RetailDatabase, RetailTask, RetailWrite } from './retail-data';
import type { Variant } from './retail-words';

/** Which skill the agent lacks in a rollout, with how often it is drawn where there is an occasion. */
export const MISTAKES = {
  /** Stops after one of several writes and says that all is done. */
  complete_all: 9,
  /** Picks an option that is not what was asked for, or not the cheapest. */
  match_constraints: 6,
  /** Writes without asking first, and not what the customer would have confirmed. */
  confirm_first: 4,
  /** Hands over to a person although the tools could do it. */
  keep_working: 3,
  /** Makes up an order number in place of looking it up in the account. */
  look_up_identifiers: 0.4,
  /** Another payment method than the one that was asked for. */
  requested_payment: 2,
  /** Tells a wrong sum. */
  calculate_totals: 1,
} as const;
export type Mistake = keyof typeof MISTAKES;
export const mistakes = Object.keys(MISTAKES) as Mistake[];

export interface Retail {
  database: RetailDatabase;
  variants: Map<string, Variant>;
}

/** The write and the item in it whose new option is mistaken. */
function optionAt({ writes, scenario }: RetailTask): [number, number] | undefined {
  if (scenario.option) return scenario.option;
  const write = writes.findIndex(({ arguments: a }) => a.new_item_ids?.some((id, n) => id !== a.item_ids![n]));
  return write < 0 ? undefined : [write, writes[write]!.arguments.new_item_ids!.length - 1];
}

const difference = (a: Variant, b: Variant): number =>
  Object.entries(b.options).filter(([name, value]) => a.options[name] !== value).length;

/** Options in place of the right one: like it where prices are compared, unlike it otherwise, so that what was asked for is not met. */
export function wrongOptions({ task, variants, at }: Retail & { task: RetailTask; at: [number, number] }): Variant[] {
  const { item_ids: old, new_item_ids: news } = task.writes[at[0]]!.arguments;
  const right = variants.get(news![at[1]]!)!;
  const { price } = task.scenario;
  const wanted = new Set([...old!, ...news!]);
  const others = [...variants.values()].filter(
    (one) => one.product === right.product && one.available && !wanted.has(one.id),
  );
  // A gift card may not hold more than the right option needs.
  const affordable = others.filter((one) => price === 'cheapest' || one.price <= right.price);
  const pool = price === 'cheapest' ? others.filter((one) => one.price > right.price) : affordable;
  const unlikeness = (one: Variant) => difference(one, right) * (price === undefined ? -1 : 1);
  return (pool.length > 0 ? pool : others).sort((a, b) => unlikeness(a) - unlikeness(b) || (a.id < b.id ? -1 : 1));
}

export function withWrongOption(
  o: Retail & { task: RetailTask },
): { writes: RetailWrite[]; at: [number, number] } | undefined {
  const at = optionAt(o.task);
  const [wrong] = at ? wrongOptions({ ...o, at }) : [];
  if (!at || !wrong) return undefined;
  const writes = o.task.writes.map((write, n) => {
    if (n !== at[0]) return write;
    const news = write.arguments.new_item_ids!.map((id, item) => (item === at[1] ? wrong.id : id));
    return { ...write, arguments: { ...write.arguments, new_item_ids: news } };
  });
  return { writes, at };
}

/** Refunds of returns go to the original payment method or a gift card. */
export function withWrongPayment({
  task,
  database,
}: {
  task: RetailTask;
  database: RetailDatabase;
}): RetailWrite[] | undefined {
  if (!task.scenario.payment) return undefined;
  const methods: Payment[] = Object.values(task.user.payment_methods);
  const other = ({ name, arguments: { order_id: order, payment_method_id: right } }: RetailWrite) => {
    const paid = database.orders[order ?? '']?.payment_history[0]?.payment_method_id;
    const possible = methods.filter(
      ({ id, source }) => id === paid || source === 'gift_card' || !name.startsWith('return'),
    );
    return possible.find(({ id, source }) => id !== right && source !== 'gift_card');
  };
  const n = task.writes.findIndex((write) => write.arguments.payment_method_id !== undefined && other(write));
  if (n < 0) return undefined;
  return task.writes.map((write, i) =>
    i === n ? { ...write, arguments: { ...write.arguments, payment_method_id: other(write)!.id } } : write,
  );
}

/** The first write as one does it who takes no time to ask: all items of the order, any option, the other reason. */
export function unconfirmed({ task, ...retail }: Retail & { task: RetailTask }): RetailWrite | undefined {
  const [write] = task.writes;
  if (!write) return undefined;
  const { name, arguments: values } = write;
  if (name === 'cancel_pending_order') {
    const reason = values.reason === 'no longer needed' ? 'ordered by mistake' : 'no longer needed';
    return { name, arguments: { ...values, reason } };
  }
  if (name === 'return_delivered_order_items') {
    const all = retail.database.orders[values.order_id!]!.items.map(({ item_id: id }) => id);
    return all.length > values.item_ids!.length ? { name, arguments: { ...values, item_ids: all } } : undefined;
  }
  const wrong = withWrongOption({ ...retail, task });
  return wrong?.at[0] === 0 ? wrong.writes[0] : undefined;
}

/** Mistakes that can be made at a task. */
export function occasions({ task, ...retail }: Retail & { task: RetailTask }): Mistake[] {
  const { asks, mistells } = task.scenario;
  const can: Record<Mistake, boolean> = {
    complete_all: task.writes.length > 1,
    match_constraints: withWrongOption({ ...retail, task }) !== undefined,
    confirm_first: unconfirmed({ ...retail, task }) !== undefined,
    keep_working: true,
    look_up_identifiers: !/#?W\d/.test(asks),
    requested_payment: withWrongPayment({ ...retail, task }) !== undefined,
    calculate_totals: mistells !== undefined,
  };
  return mistakes.filter((one) => can[one]);
}
