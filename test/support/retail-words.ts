/** How the scripted retail agent words what it is about to do. Invariant: what is decisive (options, prices, payment) is said. */
import type { Payment, RetailDatabase, RetailTask, RetailWrite } from './retail-data';

export interface Variant {
  id: string;
  name: string;
  product: string;
  options: Record<string, string>;
  price: number;
  available: boolean;
}

export function variantsOf(database: RetailDatabase): Map<string, Variant> {
  const variants = new Map<string, Variant>();
  for (const { name, product_id: product, variants: all } of Object.values(database.products))
    for (const { item_id: id, ...variant } of Object.values(all)) variants.set(id, { id, name, product, ...variant });
  return variants;
}

const dollars = (amount: number): string => `$${amount.toFixed(2)}`;
const optionsOf = ({ options }: Variant): string => Object.values(options).join(', ');
export const offer = (variant: Variant): string => `${optionsOf(variant)} at ${dollars(variant.price)}`;
const listed = (parts: string[]): string =>
  parts.length < 2 ? parts.join('') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;

function paymentWords({ source, brand, last_four: digits }: Payment): string {
  if (source === 'paypal') return 'your PayPal account';
  return source === 'gift_card' ? 'your gift card' : `your ${brand} card ending in ${digits}`;
}

/** "the Water Bottle (1000ml, steel, blue)". */
const itemWords = (id: string, variants: Map<string, Variant>): string => {
  const variant = variants.get(id)!;
  return `the ${variant.name} (${optionsOf(variant)})`;
};

interface Context {
  task: RetailTask;
  variants: Map<string, Variant>;
}

/** "exchange the Desk Lamp (...) for black, low, USB at $1.00". Not a sentence. */
export function describeWrite({ name, arguments: values }: RetailWrite, { task, variants }: Context): string {
  const { order_id: order, item_ids: items = [], new_item_ids: news = [], payment_method_id: method } = values;
  const payment = method === undefined ? '' : paymentWords(task.user.payment_methods[method]!);
  const swaps = listed(
    items.map((id, n) => `${itemWords(id, variants)} for ${offer(variants.get(news[n]!) ?? variants.get(id)!)}`),
  );
  const address = ['address1', 'address2', 'city', 'state', 'zip'].flatMap((field) => values[field] || []).join(', ');
  switch (name) {
    case 'return_delivered_order_items':
      return `return ${listed(items.map((id) => itemWords(id, variants)))} of order ${order}, with the refund to ${payment}`;
    case 'exchange_delivered_order_items':
      return `exchange in order ${order} ${swaps}, with the price difference on ${payment}`;
    case 'modify_pending_order_items':
      return `change in the pending order ${order} ${swaps}, with the price difference on ${payment}`;
    case 'cancel_pending_order':
      return `cancel order ${order}, for the reason "${values.reason}"`;
    case 'modify_pending_order_address':
      return `set the address of order ${order} to ${address}`;
    case 'modify_user_address':
      return `set your default address to ${address}`;
    default:
      throw new Error(`no words for ${name}: add them to retail-words.ts`);
  }
}
