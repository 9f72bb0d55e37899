const targetTools = {"exchange_delivered_order_items":{"name":"exchange_delivered_order_items","description":"Exchange items in a delivered order to new items of the same product type.\n\nFor a delivered order, return or exchange can be only done once by the agent.\nThe agent needs to explain the exchange detail and ask for explicit user confirmation (yes/no) to proceed.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be exchanged, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"new_item_ids":{"description":"The item ids to be exchanged for, each such as '1008292230'.\nThere could be duplicate items in the list. Each new item id should match the item id\nin the same position and be of the same product.","items":{"type":"string"},"title":"New Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference,\nsuch as 'gift_card_0000000' or 'credit_card_0000000'. These can be looked up\nfrom the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","new_item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}},"find_user_id_by_name_zip":{"name":"find_user_id_by_name_zip","description":"Find user id by first name, last name, and zip code. If the user is not found, the function\n\nwill return an error message. By default, find user id by email, and only call this function\nif the user is not found by email or cannot remember email.","parameters":{"properties":{"first_name":{"description":"The first name of the customer, such as 'John'.","title":"First Name","type":"string"},"last_name":{"description":"The last name of the customer, such as 'Doe'.","title":"Last Name","type":"string"},"zip":{"description":"The zip code of the customer, such as '12345'.","title":"Zip","type":"string"}},"required":["first_name","last_name","zip"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_product_details":{"name":"get_product_details","description":"Get the inventory details of a product.","parameters":{"properties":{"product_id":{"description":"The product id, such as '6086499569'. Be careful the product id is different from the item id.","title":"Product Id","type":"string"}},"required":["product_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_user_details":{"name":"get_user_details","description":"Get the details of a user, including their orders.","parameters":{"properties":{"user_id":{"description":"The user id, such as 'sara_doe_496'.","title":"User Id","type":"string"}},"required":["user_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}}};
/*
 * Trains `match_options_to_stated_constraints`: of a list of variants, take the one that meets every stated condition.
 * Even seed (special): the look-alike that comes first contradicts one condition (a stated option, an extreme, a comparison,
 * or it is the preferred one and not available); the fitting variant comes later.
 * Odd seed (twin): same customer, request, order and variant ids, but the first one fits; the later one is the look-alike.
 */
const policy = `# Retail agent policy
As a retail agent, you can help users exchange delivered orders.
At the beginning of the conversation, you have to authenticate the user identity by locating their user id via name + zip code.
Before taking any action that updates the database (exchange), you must list the action details and obtain explicit user confirmation (yes) to proceed.
You should not make up any information not provided by the user or the tools.
You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time.

## Exchange delivered order
An order can only be exchanged if its status is 'delivered'. The exchange tool can only be called once per order.
Each item can be exchanged to an available new item of the same product but of different product option, as the user described it.
The price difference is paid or refunded with the payment method of the order.`;

/* name, option that can be compared, its values from low to high, another option, its values, words for higher and lower */
const PRODUCTS = [
  ['Travel Mug', 'capacity', ['250ml', '350ml', '500ml', '700ml', '900ml'], 'material', ['steel', 'ceramic', 'plastic'], 'bigger', 'smaller'],
  ['Beach Towel', 'length', ['50 inch', '60 inch', '70 inch', '80 inch', '90 inch'], 'material', ['cotton', 'linen', 'microfiber'], 'longer', 'shorter'],
  ['Storage Box', 'capacity', ['10L', '20L', '30L', '45L', '60L'], 'material', ['wood', 'plastic', 'bamboo'], 'bigger', 'smaller'],
  ['Extension Cord', 'length', ['5ft', '10ft', '15ft', '25ft', '40ft'], 'plug type', ['flat', 'angled', 'straight'], 'longer', 'shorter'],
  ['Floor Rug', 'length', ['4ft', '5ft', '6ft', '8ft', '10ft'], 'material', ['wool', 'jute', 'cotton'], 'longer', 'shorter'],
  ['Camping Lantern', 'brightness', ['100 lumens', '200 lumens', '400 lumens', '600 lumens', '800 lumens'], 'power source', ['battery', 'solar', 'USB'], 'brighter', 'less bright'],
  ['Picture Frame', 'width', ['8 inch', '10 inch', '12 inch', '16 inch', '20 inch'], 'material', ['oak', 'metal', 'bamboo'], 'wider', 'narrower'],
  ['Cooking Pot', 'capacity', ['2L', '3L', '4L', '6L', '8L'], 'material', ['steel', 'iron', 'aluminum'], 'bigger', 'smaller'],
  ['Hand Weight', 'weight', ['2 lbs', '4 lbs', '6 lbs', '8 lbs', '10 lbs'], 'material', ['iron', 'rubber', 'vinyl'], 'heavier', 'lighter'],
];
const COLORS = ['black', 'white', 'red', 'blue', 'green', 'grey', 'yellow', 'purple', 'pink'];
const FIRST = ['Nadia', 'Oskar', 'Priya', 'Tomas', 'Leila', 'Hugo', 'Ingrid', 'Kenji', 'Marta', 'Rafael', 'Selin', 'Viktor', 'Bruno', 'Clara'];
const LAST = ['Lindqvist', 'Okafor', 'Marsh', 'Petrov', 'Tanaka', 'Vance', 'Holm', 'Castro', 'Becker', 'Novak', 'Quinn', 'Sato', 'Weber'];
const STREETS = ['Birch Road', 'Harbor Street', 'Quarry Lane', 'Orchard Way', 'Mill Court', 'Meadow Path', 'Chapel Street'];
const CITIES = [['Boise', 'ID', '837'], ['Tulsa', 'OK', '741'], ['Reno', 'NV', '895'], ['Madison', 'WI', '537'], ['Tucson', 'AZ', '857'], ['Albany', 'NY', '122']];
const WORDING = [
  (item, id, wish) => `I want to exchange the ${item} from order ${id} for ${wish}.`,
  (item, id, wish) => `For ${id} I want the ${item} exchanged for ${wish}.`,
  (item, id, wish) => `Please exchange the ${item} from my order ${id} for ${wish}.`,
  (item, id, wish) => `I'd like to exchange my ${item} from order ${id} for ${wish}.`,
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
/* As this target writes JSON: a space after commas and colons, every number a float. */
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (Number.isInteger(value)) return `${value}.0`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};
/* Variants are kept as a list, because an object would sort ids that look like numbers. */
const productJson = ({ name, product_id: id, variants }) =>
  `{"name": ${json(name)}, "product_id": ${json(id)}, "variants": {${variants.map((each) => `${json(each.item_id)}: ${json(each)}`).join(', ')}}}`;
const an = (word) => `${/^(8|[aeio])/.test(word) ? 'an' : 'a'} ${word}`;
const TOOLS = ['find_user_id_by_name_zip', 'get_user_details', 'get_order_details', 'get_product_details', 'exchange_delivered_order_items'];
export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 16 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const digits = (n) => Array.from({ length: n }, (_, i) => (i ? below(10) : 1 + below(9))).join('');
  const shuffle = (list) => list.map((each) => [below(100000), each]).sort(([a], [b]) => a - b).map(([, each]) => each);
  const [title, key, steps, otherKey, types, higher, lower] = pick(PRODUCTS);
  const [up, dir] = below(2) ? [true, 1] : [false, -1];
  const [[c0, c1, c2, c3], [t0, t1, t2]] = [shuffle(COLORS), shuffle(types)];
  const away = (o) => (o + 1 + below(4)) % 5; // any other step
  const [all, o0, top] = [[0, 1, 2, 3, 4], 1 + below(3), up ? 3 + below(2) : 1 - below(2)];
  const [o1, beyond] = [away(o0), all.filter((o) => dir * (o - o0) > 0)];
  /* must: allowed values by option; fit: the wanted variant; misses: variants that look like it. The customer has [o0, t0, c0]. */
  const plans = {
    features: { must: [[o1], [t1], [c1]], fit: [o1, t1, c1], misses: [[away(o1), t1, c1], [o1, t2, c1]], wish: `${an(c1)} one, ${steps[o1]}, ${t1}` },
    keep: { must: [[o0], [t0], [c1]], fit: [o0, t0, c1], misses: [[away(o0), t0, c1], [o0, t1, c1]], wish: `${an(c1)} one, same ${key}, same ${otherKey}` },
    most: { must: [all, types, [c1]], fit: [top, pick(types), c1], misses: [[top - dir, pick(types), c1], [top - 2 * dir, pick(types), c1]], wish: `the ${c1} one with the ${up ? 'maximum' : 'minimum'} ${key} that you have` },
    price: { must: [all, types, [c1]], fit: [o1, t1, c1], misses: [[o0, t2, c1], [away(o0), t0, c1]], wish: `the ${up ? 'most expensive' : 'cheapest'} ${c1} one that you have` },
    compare: { must: [beyond, [t1], COLORS], fit: [pick(beyond), t1, c1], misses: [[o0 - dir, t1, c2], [pick(beyond), t2, c3]], wish: `a ${up ? higher : lower} ${t1} one` },
    fallback: { must: [[o1], [t1], [c1, c2]], fit: [o1, t1, c2], misses: [[o1, t1, c1], [away(o1), t1, c1]], wish: `${an(t1)} one. The ${title.toLowerCase()} should be ${steps[o1]}; if there is none in ${c1}, take ${c2}` },
    either: { must: [[o1], [t1], [c1, c2]], fit: [o1, t1, pick([c1, c2])], misses: [[o1, t0, pick([c1, c2])], [away(o1), t1, pick([c1, c2])]], wish: `${an(steps[o1])} one, ${t1} rather than ${t0}, ${c1} or ${c2}` },
  };
  const kind = pick(Object.keys(plans));
  const { must, fit, misses, wish } = plans[kind];
  const [turn, size] = [kind === 'fallback' ? 0 : below(2), 6 + below(3)];
  const combos = [fit, misses[turn], misses[1 - turn], [o0, t0, c0]];
  while (combos.length < size) {
    const next = [below(5), pick(types), pick([c0, c1, c2, c3])];
    if (must.some((list, n) => !list.includes(next[n])) && !combos.some((each) => each.join() === next.join())) combos.push(next);
  }
  const base = 3000 + below(25000);
  const prices = shuffle(Array.from({ length: size }, (_, n) => (base + n * 400 + below(390)) / 100));
  if (kind === 'price') prices.splice(0, 3, ...prices.slice(0, 3).sort((a, b) => dir * (b - a))); // the wanted one is the extreme
  const optionsOf = ([o, t, color]) => ({ [key]: steps[o], [otherKey]: t, color });
  const [right, near, extra, own, ...strangers] = combos.map((each, n) => ({ options: optionsOf(each), available: below(4) > 0 || n < 4, price: prices[n] }));
  if (kind === 'fallback') near.available = !special; // the preferred one is there, or it is not
  const [early, late] = special || kind === 'fallback' ? [near, right] : [right, near];
  const shelf = shuffle([extra, own, ...strangers]);
  const [at, then] = [below(2), 2 + below(size - 2)];
  [[at, early], [then, late]].forEach(([n, each]) => shelf.splice(n, 0, each));
  const product = { name: title, product_id: digits(10), variants: shelf.map((each) => ({ item_id: digits(10), ...each })) };
  const pair = [at, then].map((n) => product.variants[n].item_id);
  const { item_id: current, price, options } = product.variants[shelf.indexOf(own)];
  const [first, last, [city, region, prefix]] = [pick(FIRST), pick(LAST), pick(CITIES)];
  const zip = prefix + digits(2);
  const address = { address1: `${digits(3)} ${pick(STREETS)}`, address2: `Suite ${digits(3)}`, city, country: 'USA', state: region, zip };
  const [source, number, brand, lastFour] = [pick(['credit_card', 'paypal']), digits(7), pick(['visa', 'mastercard']), digits(4)];
  const pay = `${source}_${number}`;
  const [payName, method] = source === 'paypal' ? ['PayPal account', { source, id: pay }] : ['credit card', { source, id: pay, brand, last_four: lastFour }];
  const [userId, orderId] = [`${first}_${last}_${digits(4)}`.toLowerCase(), `#W${digits(7)}`];
  const user = { user_id: userId, name: { first_name: first, last_name: last }, address, email: `${first}.${last}${digits(4)}@example.com`.toLowerCase(), payment_methods: { [pay]: method }, orders: [orderId] };
  const order = {
    order_id: orderId, user_id: userId, address, items: [{ name: title, product_id: product.product_id, item_id: current, price, options }],
    status: 'delivered', fulfillments: [{ tracking_id: [digits(12)], item_ids: [current] }], payment_history: [{ transaction_type: 'payment', amount: price, payment_method_id: pay }],
    cancel_reason: null, exchange_items: null, exchange_new_items: null, exchange_payment_method_id: null, exchange_price_difference: null, return_items: null, return_payment_method_id: null,
  };
  return {
    special, user, order, product, pair, pay, payName, wish, current, answer: pair[special ? 1 : 0],
    request: pick(WORDING)(title.toLowerCase(), orderId, wish) + (below(2) ? ` Use my ${payName} if I have to pay more.` : ''),
    identity: `I am ${first} ${last}, zip code ${zip}.`, yes: pick(['Yes, please.', 'Yes, go ahead.', 'Yes, that is fine.', 'Yes.']), bye: pick(['No, that is all. Thank you! ###STOP###', 'That was everything, thanks. ###STOP###']),
    introduced: false, found: false, ordered: false, seen: false, agreed: false, written: null, tries: 0, wrong: 0, idle: 0, done: false,
  };
}
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];
const clean = (value) => String(value).replace(/[^\w #.-]/g, '').slice(0, 40);
const isText = (value) => typeof value === 'string';
const wellFormed = ({ parameters: { properties, required } }, given) =>
  required.every((field) => Object.hasOwn(given, field)) &&
  Object.entries(given).every(([field, value]) => Object.hasOwn(properties, field) && (properties[field].type === 'array' ? Array.isArray(value) && value.every(isText) : isText(value)));

function exchange(state, { item_ids: old, new_item_ids: fresh, payment_method_id: pay }) {
  const { order, product, current } = state;
  const variant = product.variants.find((each) => each.item_id === fresh[0]);
  const over = order.status !== 'delivered';
  if (over || (variant && !variant.available)) state.tries += 1; // a second exchange, or one for what is not available
  if (over) return 'Error: Non-delivered order cannot be exchanged';
  const missing = old.find((item, n) => item !== current || n > 0);
  if (missing !== undefined) return `Error: Number of ${clean(missing)} not found.`;
  if (old.length === 0 || old.length !== fresh.length) return 'Error: The number of items to be exchanged should match.';
  if (!variant?.available) return `Error: New item ${clean(fresh[0])} not found or available`;
  if (pay !== state.pay) return 'Error: Payment method not found';
  const difference = Math.round((variant.price - order.items[0].price) * 100) / 100;
  Object.assign(state, { tries: state.tries + 1, written: fresh[0] });
  Object.assign(order, { status: 'exchange requested', exchange_items: old, exchange_new_items: fresh });
  return json(Object.assign(order, { exchange_payment_method_id: pay, exchange_price_difference: difference }));
}
function observe(state, { name, arguments: args }) {
  const tool = describe().tools.find((each) => each.name === name);
  const given = typeof args === 'object' && args !== null ? args : {};
  if (!tool) return `Error: Tool ${clean(name)} not found`;
  if (!wellFormed(tool, given)) return `Error: Invalid arguments for ${name}`;
  const { user, order, product } = state;
  if (name === 'find_user_id_by_name_zip') {
    const asked = [given.first_name, given.last_name, given.zip].map((each) => each.trim().toLowerCase()).join();
    if (asked !== [user.name.first_name, user.name.last_name, user.address.zip].join().toLowerCase()) return 'Error: User not found';
    state.found = true;
    return user.user_id;
  }
  if (name === 'get_user_details') return given.user_id === user.user_id ? json(user) : 'Error: User not found';
  if (name === 'get_product_details') {
    state.seen = state.seen || given.product_id === product.product_id;
    return given.product_id === product.product_id ? productJson(product) : 'Error: Product not found';
  }
  if (given.order_id !== order.order_id) return 'Error: Order not found';
  if (name === 'exchange_delivered_order_items') return exchange(state, given);
  state.ordered = true;
  return json(order);
}
/* Which variants a text names: by item id, by price, or by their options one after the other. */
const plain = (text) => ` ${text.toLowerCase().replace(/[^a-z0-9]+/g, ' ').replace(/(\d) (?=[a-z])/g, '$1').trim()} `;
function named({ product, current }, text) {
  const [numbers, words] = [text.match(/\d+(?:\.\d+)?/g) ?? [], plain(text)];
  const names = ({ item_id: id, price, options }) =>
    numbers.some((each) => each === id || (each.includes('.') && Number(each) === price)) || words.includes(plain(Object.values(options).join(' ')));
  return product.variants.filter((each) => each.item_id !== current && names(each));
}

/* The customer: says who it is, says yes to the right variant and no to a wrong one, and otherwise repeats the wish. */
function reply(state, said) {
  const text = said.slice(0, 8000).toLowerCase();
  state.done = state.written !== null;
  if (state.done) return state.bye;
  const proposed = named(state, text);
  const only = proposed.length === 1 ? proposed[0] : null;
  const [known, agreed, right] = [state.introduced, state.agreed, only?.item_id === state.answer];
  state.introduced = true;
  if (!known) return state.identity;
  state.agreed = agreed || right;
  if (right && !agreed) return state.yes;
  state.idle += 1;
  const [asks, open] = [/\?|confirm|\byes\b|proceed|go ahead/.test(text), /\b(which|what|how)\b/.test(text)];
  const over = proposed.length === 0 && /anything else|transferred/.test(text) && !/confirm|proceed|shall i/.test(text);
  state.done = state.idle > 3 || over;
  if (state.done) return over ? state.bye : 'Never mind. Goodbye. ###STOP###';
  if (right) return state.yes;
  const refused = only !== null && only.available && asks;
  state.wrong += Number(refused);
  if (refused) return `No, that is not what I asked for. I want ${state.wish}.`;
  if (/\bzip\b|e-?mail|full name|last name/.test(text)) return state.identity;
  if (open && /\bpay|\bcard|refund/.test(text)) return `Use my ${state.payName}, please.`;
  return proposed.length === 0 && asks && !open ? state.yes : `I want ${state.wish}.`;
}
export function step(before, { content, toolCalls }) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  if (Array.isArray(toolCalls) && toolCalls.length > 0)
    return { state, done: false, messages: toolCalls.map((each) => ({ role: 'tool', toolCallId: each.id, content: observe(state, each) })) };
  const messages = [{ role: 'user', content: reply(state, isText(content) ? content : '') }];
  return { state, done: state.done, messages, ...(state.done ? { stopReason: 'user_stop' } : {}) };
}
export function reward({ special, product, answer, found, ordered, seen, written, tries, wrong, done }) {
  const [chosen, wanted] = [seen ? written : null, answer].map((id) => product.variants.find((each) => each.item_id === id)?.options ?? {});
  const shared = Object.keys(wanted).filter((key) => chosen[key] === wanted[key]).length / 3;
  const fits = seen && written === answer;
  const right = found && fits && tries === 1 && wrong === 0 && done;
  const partial = (found ? 0.02 : 0) + (ordered ? 0.03 : 0) + (seen ? 0.05 : 0) + 0.1 * shared + (fits ? 0.1 : 0);
  const breakdown = { found: Number(found), seen: Number(seen), shared, fits: Number(fits), writes: tries, wrong_proposals: wrong };
  return { reward: right ? 1 : Math.round(partial * 1000) / 1000, branch: special ? 'first_contradicts' : 'first_fits', breakdown };
}
const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const say = (content) => ({ role: 'assistant', content });
const writeOf = ({ order, current, pay }, id) => ({ order_id: order.order_id, item_ids: [current], new_item_ids: [id], payment_method_id: pay });
export const reference = (state) => ({ actions: [{ name: 'exchange_delivered_order_items', arguments: writeOf(state, state.answer) }], tell: [] });
function script(state, id) {
  const { user, order, product, current, payName } = state;
  const [own, other] = [current, id].map((item) => product.variants.find((each) => each.item_id === item));
  const list = ({ options }) => Object.values(options).join(', ');
  const change = `${product.name} (${list(own)}) for ${list(other)} at $${other.price.toFixed(2)}`;
  return [
    say('I can help you with that. What is your first and last name and your zip code?'),
    call('find_user_id_by_name_zip', { ...user.name, zip: user.address.zip }),
    call('get_user_details', { user_id: user.user_id }),
    call('get_order_details', { order_id: order.order_id }),
    call('get_product_details', { product_id: product.product_id }),
    say(`I would now exchange in order ${order.order_id} the ${change}, with the price difference on your ${payName}. Shall I do so?`),
    call('exchange_delivered_order_items', writeOf(state, id)),
    say('All of that is done. Is there anything else that I can do for you?'),
  ];
}
export const solve = (seed) => script(make(seed), make(seed).answer);
export function shortcuts(seed) {
  const state = make(seed);
  return { 'take the first look-alike': script(state, state.pair[0]), 'pass it over': script(state, state.pair[1]) };
}
export const hint = () =>
  'Hold every candidate in the list against each thing that the customer said, also what should stay the same, and leave out what is not available. One that looks right may differ in a single point. Where a highest, lowest or cheapest one is wanted, compare all that meet the other conditions. Propose only the one that meets everything.';