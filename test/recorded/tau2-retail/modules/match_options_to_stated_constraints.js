const targetTools = {"exchange_delivered_order_items":{"name":"exchange_delivered_order_items","description":"Exchange items in a delivered order to new items of the same product type.\n\nFor a delivered order, return or exchange can be only done once by the agent.\nThe agent needs to explain the exchange detail and ask for explicit user confirmation (yes/no) to proceed.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be exchanged, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"new_item_ids":{"description":"The item ids to be exchanged for, each such as '1008292230'.\nThere could be duplicate items in the list. Each new item id should match the item id\nin the same position and be of the same product.","items":{"type":"string"},"title":"New Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference,\nsuch as 'gift_card_0000000' or 'credit_card_0000000'. These can be looked up\nfrom the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","new_item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}},"find_user_id_by_email":{"name":"find_user_id_by_email","description":"Find user id by email. If the user is not found, the function will return an error message.","parameters":{"properties":{"email":{"description":"The email of the user, such as 'something@example.com'.","title":"Email","type":"string"}},"required":["email"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_product_details":{"name":"get_product_details","description":"Get the inventory details of a product.","parameters":{"properties":{"product_id":{"description":"The product id, such as '6086499569'. Be careful the product id is different from the item id.","title":"Product Id","type":"string"}},"required":["product_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"modify_pending_order_items":{"name":"modify_pending_order_items","description":"Modify items in a pending order to new items of the same product type. For a pending order, this function can only be called once. The agent needs to explain the exchange detail and ask for explicit user confirmation (yes/no) to proceed.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be modified, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"new_item_ids":{"description":"The item ids to be modified for, each such as '1008292230'. There could be duplicate items in the list. Each new item id should match the item id in the same position and be of the same product.","items":{"type":"string"},"title":"New Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'. These can be looked up from the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","new_item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `match_options_to_stated_constraints`: of a list of variants, propose the one that meets every stated condition.
 * A request has three: a new value of one option, another option as it is now, and an extreme, comparison or preference.
 * Even seed (special): the front-runner by the extreme is sold out or contradicts the kept option, so the next one is right.
 * Odd seed (twin): same request, same list, but the front-runner meets everything, and passing over it is wrong.
 * In both, variants that are better still by the extreme fail on one condition each (one sold out, others contradict).
 */
const policy = [
  '# Retail agent policy',
  'As a retail agent, you can help users modify items of pending orders and exchange items of delivered orders.',
  'At the beginning of the conversation, you have to authenticate the user identity by locating their user id via email. This has to be done even when the user already provides the order id.',
  'Before taking any action that updates the database (modify, exchange), you must list the action details and obtain explicit user confirmation (yes) to proceed.',
  'You should not make up any information or knowledge or procedures not provided by the user or the tools, or give subjective recommendations or comments.',
  'You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time. If you respond to the user, you should not make a tool call at the same time.',
  'Each variant item of a product has a unique item id, information about the value of the product options, availability and price. Note: Product ID and Item ID have no relations and should not be confused!',
  'Exchange or modify order tools can only be called once per order. For a pending order, each item can be modified, and for a delivered order, each item can be exchanged, to an available new item of the same product but of different product option. The user must provide a payment method to pay or receive refund of the price difference.',
].join('\n\n');
const TOOLS = ['find_user_id_by_email', 'get_order_details', 'get_product_details', 'modify_pending_order_items', 'exchange_delivered_order_items'];
const [BIG, LONG, HIGH] = [['biggest', 'smallest', 'bigger'], ['longest', 'shortest', 'longer'], ['highest', 'lowest', 'higher']];
const PRODUCTS = [ // name, price, option with an order, its words, its values; two more options and their values
  ['Slow Cooker', 118, 'capacity', BIG, '2L|3L|4L|5L|6L|8L', 'finish', 'matte|glossy|brushed', 'lid', 'glass|metal|ceramic'],
  ['Camping Tent', 264, 'capacity', BIG, '1-person|2-person|3-person|4-person|5-person|6-person', 'color', 'orange|olive|navy', 'season rating', '3-season|4-season|summer'],
  ['Desk Fan', 74, 'blade size', BIG, '8 inch|10 inch|12 inch|14 inch|16 inch|18 inch', 'control', 'remote|dial|touch', 'color', 'ivory|charcoal|teal'],
  ['Extension Cord', 46, 'cord length', LONG, '3ft|6ft|9ft|12ft|15ft|25ft', 'plug', 'flat|angled|straight', 'color', 'brown|beige|yellow'],
  ['Binoculars', 207, 'magnification', HIGH, '6x|8x|10x|12x|15x|18x', 'body', 'rubber|aluminum|polymer', 'color', 'forest|sand|graphite'],
  ['Air Mattress', 92, 'height', HIGH, '12cm|18cm|25cm|33cm|40cm|46cm', 'cover', 'flocked|cotton|vinyl', 'pump', 'built-in|manual|battery'],
  ['Cordless Drill', 139, 'voltage', HIGH, '8V|12V|14V|18V|20V|24V', 'chuck', 'keyless|keyed|hex', 'packaging', 'hard case|tool bag|carton'],
  ['External Drive', 156, 'storage', BIG, '250GB|500GB|750GB|1TB|2TB|4TB', 'connector', 'USB-A|USB-C|Thunderbolt', 'color', 'silver|copper|violet'],
  ['Baby Monitor', 183, 'range', LONG, '150m|200m|300m|400m|600m|1km', 'mount', 'clip|wall|tabletop', 'color', 'white|mint|lilac'],
  ['Bike Light', 58, 'brightness', HIGH, '100 lumens|200 lumens|400 lumens|600 lumens|800 lumens|1000 lumens', 'mount', 'strap|bracket|magnetic', 'charging', 'USB|solar|dynamo'],
  ['Aquarium', 231, 'volume', BIG, '20L|35L|54L|80L|112L|160L', 'shape', 'cube|round|rectangular', 'lighting', 'LED|halogen|neon'],
].map(([name, base, rank, words, values, a, as, c, cs]) => ({ name, base, rank, words, a, c, values: values.split('|'), as: as.split('|'), cs: cs.split('|') }));
const FIRST = ['Nils', 'Oona', 'Priya', 'Rafael', 'Tamsin', 'Ugo', 'Vera', 'Wanda', 'Xenia', 'Zoltan', 'Brigid', 'Caleb'];
const LAST = ['Abbott', 'Brandt', 'Castell', 'Dunmore', 'Ekberg', 'Farrow', 'Grady', 'Holt', 'Ibarra', 'Jessup'];
const STREETS = ['Quarry Road', 'Heron Court', 'Mill Race', 'Tannery Row', 'Orchard Bend', 'Kiln Street'];
const CITIES = [['Tucson', 'AZ', '857'], ['Boise', 'ID', '837'], ['Omaha', 'NE', '681'], ['Madison', 'WI', '537'], ['Spokane', 'WA', '992']];
const WISHES = {
  max: (p) => `the one with the ${p.words[0]} ${p.rank}`,
  min: (p) => `the one with the ${p.words[1]} ${p.rank}`,
  next: (p) => `the one whose ${p.rank} is ${p.words[2]} than mine but closest to it`,
  fallback: (p, o) => `the one with ${p.rank} ${o[0]}, or if there is none ${o[1]}, or failing that ${o[2]}`,
  cheapest: () => 'the cheapest one',
  dearest: () => 'the most expensive one',
};
const PAY = 'Settle any price difference with the payment method of the order.';
const REQUESTS = [
  (r) => `Hi, my email is ${r.email}. Please ${r.verb} the ${r.noun} in order ${r.id}: the ${r.a} has to be ${r.a1}, the ${r.c} the same as mine, and of those in stock I want ${r.wish}. ${PAY}`,
  (r) => `I am not happy with my ${r.noun} (order ${r.id}) and want to ${r.verb} it. The new one must keep the ${r.c} that I have, and its ${r.a} must be ${r.a1}. From what is left and available, take ${r.wish}. ${PAY} My email: ${r.email}.`,
  (r) => `Can you ${r.verb} my ${r.noun} for me? I would like ${r.wish}, but only among those available with the same ${r.c} as now and ${r.a1} as ${r.a}. It is in order ${r.id}, and my email is ${r.email}. ${PAY}`,
  (r) => `${r.email} is my email, the order is ${r.id}. I want to ${r.verb} the ${r.noun} in it: ${r.a} ${r.a1}, no change of the ${r.c}, and ${r.wish} among those that are in stock. ${PAY}`,
];

function randomOf(seed) {
  let a = Math.imul(seed + 1, 0x9e3779b1);
  return (limit) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}
/* As the target writes JSON: a space after commas and colons, and every number is a float. */
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (Number.isInteger(value)) return `${value}.0`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};
export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 12 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const digits = (n) => Array.from({ length: n }, () => below(10)).join('');
  const id = () => `${5 + below(5)}${digits(9)}`;
  const shuffle = (list) => list.map((each) => [below(1000000), each]).sort(([a], [b]) => a - b).map(([, each]) => each);
  const [p, ...others] = shuffle(PRODUCTS).slice(0, 3);
  const kind = pick(Object.keys(WISHES));
  const [[a0, a1, a2], [c0, c1, c2], mixed, contradicts] = [shuffle(p.as), shuffle(p.cs), shuffle(p.values), below(2) === 1];
  const orders = { max: [...p.values].reverse(), min: p.values, next: [...p.values.slice(1), p.values[0]] };
  const ranked = orders[kind] ?? mixed; // what is wanted most comes first; the user's own item has the last value
  const used = [];
  const priceOf = (base, rank) => {
    const jitter = below(1000) / 1000;
    const shares = { cheapest: 0.8 + 0.07 * rank + 0.03 * jitter, dearest: 1.2 - 0.07 * rank - 0.03 * jitter };
    let cents = Math.round(base * 100 * (shares[kind] ?? 0.8 + 0.4 * jitter));
    while (cents % 10 === 0 || used.includes(cents)) cents += 1;
    used.push(cents);
    return cents / 100;
  };
  const variantOf = (q, rank, value, a, c, available) => ({ item_id: id(), options: { [q.rank]: value, [q.a]: a, [q.c]: c }, available, price: priceOf(q.base, rank) });
  const variants = [
    [5, a0, c0, below(2) === 1], // the user's own
    [1, a1, special && contradicts ? c1 : c0, !special || contradicts], // the front-runner, the only one that differs in a pair
    [2, a1, c0, true], // the next one
    [3, a1, c0, true], // meets the rest, but is further from what is wanted
    [0, a1, c0, false], // best of all, but never in stock
    [0, a0, c0, true], [1, a2, c0, true], [0, a1, c2, true], [1, a1, c2, true], // better, but each contradicts something
    [2, a2, c1, below(2) === 1], [4, a1, c1, true],
  ].map(([rank, a, c, available]) => variantOf(p, rank, ranked[rank], a, c, available));
  const products = {};
  const add = (q, list) => {
    const [product_id, { item_id, price, options }] = [id(), list[0]];
    products[product_id] = { name: q.name, product_id, variants: Object.fromEntries(shuffle(list).map((each) => [each.item_id, each])) };
    return { name: q.name, product_id, item_id, price, options };
  };
  const item = add(p, variants);
  const more = others.map((q) => add(q, [0, 1, 2, 3].map((n) => variantOf(q, n, q.values[n], pick(q.as), pick(q.cs), below(3) > 0))));
  const items = shuffle([item, ...more]);
  const [first, last, [city, region, zip], pending] = [pick(FIRST), pick(LAST), pick(CITIES), below(2) === 0];
  const user_id = `${first}_${last}_${digits(4)}`.toLowerCase();
  const email = `${first}.${last}${digits(4)}@example.com`.toLowerCase();
  const payment = `${pick(['credit_card', 'paypal'])}_${digits(7)}`;
  const address = { address1: `${100 + below(900)} ${pick(STREETS)}`, address2: `Suite ${100 + below(900)}`, city, country: 'USA', state: region, zip: zip + digits(2) };
  const sent = { tracking_id: [digits(12)], item_ids: items.map((each) => each.item_id) };
  const amount = Math.round(items.reduce((sum, each) => sum + each.price, 0) * 100) / 100;
  const order = {
    order_id: `#W${digits(7)}`, user_id, address, items, status: pending ? 'pending' : 'delivered', fulfillments: pending ? [] : [sent],
    payment_history: [{ transaction_type: 'payment', amount, payment_method_id: payment }], cancel_reason: null,
    exchange_items: null, exchange_new_items: null, exchange_payment_method_id: null, exchange_price_difference: null,
    return_items: null, return_payment_method_id: null,
  };
  const [wish, verb] = [WISHES[kind](p, ranked), pending ? 'change' : 'exchange'];
  const [front, second] = [variants[1].item_id, variants[2].item_id];
  return {
    special, email, user_id, payment, order, products, item: { ...item }, verb, front, second, right: special ? second : front,
    tool: pending ? 'modify_pending_order_items' : 'exchange_delivered_order_items',
    request: pick(REQUESTS)({ email, verb, noun: p.name.toLowerCase(), id: order.order_id, a: p.a, a1, c: p.c, wish }),
    again: `What I want is still the same: the ${p.a} has to be ${a1}, the ${p.c} as it is now, and of those in stock ${wish}. ${PAY}`,
    yes: pick(['Yes, go ahead.', 'Yes, please.', 'Yes, that is fine.']),
    bye: pick(['No, that is all. Thank you! ###STOP###', 'That was everything, thanks. ###STOP###']),
    seen: { user: false, order: false, product: false }, confirmed: false, wrong: 0, idle: 0, writes: [], done: false,
  };
}
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];

function write(state, modify, { order_id, item_ids, new_item_ids, payment_method_id }) {
  const { order } = state;
  const note = { made: false, right: false, confirmed: state.confirmed };
  state.writes.push(note);
  if (order_id !== order.order_id) return 'Error: Order not found';
  if (modify && order.status !== 'pending') return 'Error: Non-pending order cannot be modified';
  if (!modify && order.status !== 'delivered') return 'Error: Non-delivered order cannot be exchanged';
  const items = item_ids.map((id) => order.items.find((each) => each.item_id === id));
  if (items.length === 0 || items.includes(undefined) || new Set(items).size < items.length) return 'Error: Some item not found';
  if (items.length !== new_item_ids.length) return 'Error: The number of items to be exchanged should match.';
  const fresh = items.map(({ product_id }, n) => Object.values(state.products[product_id].variants).find((each) => each.item_id === new_item_ids[n]));
  if (fresh.includes(undefined)) return 'Error: Variant not found';
  const gone = fresh.find((each) => !each.available);
  if (gone) return `Error: New item ${gone.item_id} not found or available`;
  if (payment_method_id !== state.payment) return 'Error: Payment method not found';
  const difference = fresh.reduce((sum, each, n) => sum + each.price - items[n].price, 0);
  note.made = true;
  note.right = items.length === 1 && item_ids[0] === state.item.item_id && new_item_ids[0] === state.right;
  if (modify) {
    fresh.forEach(({ item_id, price, options }, n) => Object.assign(items[n], { item_id, price, options }));
    order.status = 'pending (item modified)';
    order.payment_history.push({ transaction_type: difference > 0 ? 'payment' : 'refund', amount: Math.abs(difference), payment_method_id });
    return json(order);
  }
  const [exchange_items, exchange_new_items, cents] = [[...item_ids].sort(), [...new_item_ids].sort(), Math.round(difference * 100)];
  Object.assign(order, { status: 'exchange requested', exchange_items, exchange_new_items });
  return json(Object.assign(order, { exchange_payment_method_id: payment_method_id, exchange_price_difference: cents / 100 }));
}

function observe(state, { name, arguments: given }) {
  if (!TOOLS.includes(name)) return 'Error: Tool not found';
  const { properties, required } = targetTools[name].parameters;
  const fits = (value, type) => (type === 'array' ? Array.isArray(value) && value.every((each) => typeof each === 'string') : typeof value === type);
  if (!given || typeof given !== 'object' || !required.every((field) => fits(given[field], properties[field].type))) return 'Error: Invalid arguments';
  if (Object.keys(given).some((field) => !required.includes(field))) return 'Error: Invalid arguments';
  const { seen, order, products, item } = state;
  if (name === 'find_user_id_by_email') {
    if (given.email.trim().toLowerCase() !== state.email) return 'Error: User not found';
    seen.user = true;
    return state.user_id;
  }
  if (name === 'get_order_details') {
    if (given.order_id !== order.order_id) return 'Error: Order not found';
    seen.order = true;
    return json(order);
  }
  if (name !== 'get_product_details') return write(state, name === 'modify_pending_order_items', given);
  if (!Object.hasOwn(products, given.product_id)) return 'Error: Product not found';
  seen.product ||= given.product_id === item.product_id;
  return json(products[given.product_id]);
}

/* What the agent's words propose: right, wrong, several or none. Known by item id or price, or else by all option values. */
function proposed(state, content) {
  if (!state.seen.product) return 'none';
  const variants = Object.values(variantsOf(state)).filter((each) => each.item_id !== state.item.item_id);
  const isRight = (each) => each.item_id === state.right;
  const numbers = content.replace(/(\d),(?=\d{3})/g, '$1').match(/\d+(?:\.\d+)?/g) ?? [];
  let named = variants.filter((each) => numbers.includes(each.item_id) || numbers.includes(each.price.toFixed(2)));
  if (named.length === 0) {
    const text = content.toLowerCase().replace(/[^a-z0-9]+/g, ' ');
    const says = (value) => new RegExp(`\\b${value.toLowerCase().match(/[a-z]+|\d+/g).join(' ?')}\\b`).test(text);
    named = variants.filter((each) => Object.values(each.options).every(says));
    if (named.some(isRight)) return 'right'; // the other values may be those of the old item
  }
  if (named.some(isRight)) return named.some((each) => each.available && !isRight(each)) ? 'several' : 'right';
  const turnedDown = /unavailable|out of stock|sold out|(not|n't)\b.{0,25}(available|in stock)/i.test(content);
  return named.length === 0 || (turnedDown && !named.some((each) => each.available)) ? 'none' : 'wrong';
}

export function step(before, { content: said, toolCalls }) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const content = typeof said === 'string' ? said : '';
  if (toolCalls?.length > 0) return { state, done: false, messages: toolCalls.map((each) => ({ role: 'tool', toolCallId: each.id, content: observe(state, each) })) };
  const answer = (text) => ({ state, done: false, messages: [{ role: 'user', content: text }] });
  const leave = (text) => ({ ...answer(text), state: { ...state, done: true }, done: true, stopReason: 'user_stop' });
  if (state.writes.some((each) => each.made)) return leave(state.bye);
  const verdict = proposed(state, content);
  state[verdict === 'wrong' ? 'wrong' : 'idle'] += verdict === 'right' && !state.confirmed ? 0 : 1;
  if (state.wrong > 1 || state.idle > 2) return leave('Never mind then, I will leave it as it is. ###STOP###');
  if (verdict === 'wrong') return answer('No, that is not what I asked for.');
  if (verdict === 'several') return answer('I cannot choose among these for you. Tell me the one that fits what I said, and I will say yes or no.');
  state.confirmed ||= verdict === 'right';
  if (state.confirmed) return answer(state.yes);
  const identity = !state.seen.user && /e-?mail|zip|identity|verif|authentic/i.test(content);
  return answer(identity ? `My email is ${state.email}.` : state.again);
}

export function reward({ special, seen, wrong, confirmed, writes, done }) {
  const looked = seen.user && seen.order && seen.product;
  const written = writes.some((each) => each.right && each.confirmed);
  const success = looked && wrong === 0 && writes.length === 1 && written && done;
  const partial = looked ? 0.05 + (confirmed ? 0.1 : 0) + (written ? 0.1 : 0) : 0;
  const breakdown = { looked: Number(looked), wrong, confirmed: Number(confirmed), written: Number(written), writes: writes.length };
  return { reward: success ? 1 : partial, branch: special ? 'front_runner_fails' : 'front_runner_fits', breakdown };
}

const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const say = (content) => ({ role: 'assistant', content });
const variantsOf = ({ products, item }) => products[item.product_id].variants;
const writing = ({ order, item, payment }, id) => ({ order_id: order.order_id, item_ids: [item.item_id], new_item_ids: [id], payment_method_id: payment });
export const reference = (state) => ({
  actions: [{ name: state.tool, arguments: writing(state, state.right) }],
  tell: Object.values(variantsOf(state)[state.right].options),
});
function script(state, id, asks = true) {
  const { order, item, email, tool, verb } = state;
  const [{ options, price }, list] = [variantsOf(state)[id], (each) => Object.values(each).join(', ')];
  const proposal = `I would now ${verb} in order ${order.order_id} the ${item.name} (${list(item.options)}) for ${list(options)} at $${price.toFixed(2)}, with the price difference on the payment method of the order. Do you confirm (yes)?`;
  const looks = [call(TOOLS[0], { email }), call(TOOLS[1], { order_id: order.order_id }), call(TOOLS[2], { product_id: item.product_id })];
  return [...looks, ...(asks ? [say(proposal)] : []), call(tool, writing(state, id)), say('All of that is done. Is there anything else that I can do for you?')];
}
export const solve = (seed) => script(make(seed), make(seed).right);
export function shortcuts(seed) {
  const state = make(seed);
  const open = Object.values(variantsOf(state)).filter((each) => each.available && each.item_id !== state.item.item_id);
  return {
    'always pass over the front-runner': script(state, state.second),
    'always the front-runner': script(state, state.front),
    'first available one': script(state, open[0].item_id),
    'right one without asking': script(state, state.right, false),
  };
}
export const hint = () => 'Go through the whole list before you propose anything: strike out what is not available, then whatever contradicts even one stated condition, also the one about what the customer has now. Only then compare what is left for the extreme or the order of preference. Propose exactly one, with its options and its price.';