const targetTools = {"exchange_delivered_order_items":{"name":"exchange_delivered_order_items","description":"Exchange items in a delivered order to new items of the same product type.\n\nFor a delivered order, return or exchange can be only done once by the agent.\nThe agent needs to explain the exchange detail and ask for explicit user confirmation (yes/no) to proceed.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be exchanged, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"new_item_ids":{"description":"The item ids to be exchanged for, each such as '1008292230'.\nThere could be duplicate items in the list. Each new item id should match the item id\nin the same position and be of the same product.","items":{"type":"string"},"title":"New Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference,\nsuch as 'gift_card_0000000' or 'credit_card_0000000'. These can be looked up\nfrom the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","new_item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}},"find_user_id_by_name_zip":{"name":"find_user_id_by_name_zip","description":"Find user id by first name, last name, and zip code. If the user is not found, the function\n\nwill return an error message. By default, find user id by email, and only call this function\nif the user is not found by email or cannot remember email.","parameters":{"properties":{"first_name":{"description":"The first name of the customer, such as 'John'.","title":"First Name","type":"string"},"last_name":{"description":"The last name of the customer, such as 'Doe'.","title":"Last Name","type":"string"},"zip":{"description":"The zip code of the customer, such as '12345'.","title":"Zip","type":"string"}},"required":["first_name","last_name","zip"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_product_details":{"name":"get_product_details","description":"Get the inventory details of a product.","parameters":{"properties":{"product_id":{"description":"The product id, such as '6086499569'. Be careful the product id is different from the item id.","title":"Product Id","type":"string"}},"required":["product_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"return_delivered_order_items":{"name":"return_delivered_order_items","description":"Return some items of a delivered order.\n\nThe order status will be changed to 'return requested'.\nThe agent needs to explain the return detail and ask for explicit user confirmation (yes/no) to proceed.\nThe user will receive follow-up email for how and where to return the item.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be returned, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'.\nThese can be looked up from the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `match_options_to_stated_constraints`: a delivered item is to be exchanged for one that is described by features,
 * by a comparison with the old one or by a superlative; the user also says what to do if there is none: return it.
 * Even seed (special): one available variant meets every condition (and is the extreme one, if asked); it has to be picked
 * out of near misses. Odd seed (twin): the same user, order, request and list, but what fitted is not available or has
 * another option; exchanging the item for something near is wrong, it is to be returned.
 */
const policy = `# Retail agent policy
As a retail agent, you can help users return or exchange delivered orders.
At the beginning of the conversation, you have to authenticate the user identity by locating their user id via name + zip code.
Before taking any action that updates the database (return, exchange), you must list the action details and obtain explicit user confirmation (yes) to proceed.
You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time.
Each product has variant items of different options, each with a unique item id, availability and price. Product ID and Item ID have no relations and should not be confused!
## Exchange delivered order
Each item can be exchanged to an available new item of the same product but of different product option. The price difference goes to the payment method that the order was paid with, which stands in the order.
## Return delivered order
The refund must go to the original payment method.`;
/* Options: [name, values, how users say it]; the first one is a scale, from the least on, with its words. */
const COLORS = ['black', 'white', 'silver', 'blue', 'red'];
const PRODUCTS = [
  ['Floor Lamp', 140, ['less bright', 'brighter', 'least bright', 'brightest'], [['brightness', ['low', 'medium', 'high'], 'with # brightness'], ['power source', ['AC adapter', 'battery', 'USB'], 'with # as power source'], ['color', COLORS, '#']]],
  ['Snowboard', 310, ['shorter', 'longer', 'shortest', 'longest'], [['length', ['54 inch', '57 inch', '60 inch', '63 inch'], '#'], ['material', ['maple', 'bamboo', 'plastic'], '#'], ['design', ['plain', 'graphic', 'custom'], '#']]],
  ['Extension Cord', 120, ['shorter', 'longer', 'shortest', 'longest'], [['length', ['10ft', '25ft', '50ft', '100ft'], '#'], ['material', ['rubber', 'vinyl', 'nylon'], '#'], ['color', ['black', 'green', 'blue', 'white'], '#']]],
  ['Travel Mug', 105, ['smaller', 'bigger', 'smallest', 'biggest'], [['capacity', ['250ml', '350ml', '450ml', '600ml'], '#'], ['material', ['glass', 'plastic', 'stainless steel'], '#'], ['color', COLORS, '#']]],
  ['Rain Jacket', 185, ['smaller', 'bigger', 'smallest', 'biggest'], [['size', ['S', 'M', 'L', 'XL'], 'in size #'], ['material', ['polyester', 'nylon', 'cotton'], '#'], ['color', ['purple', 'red', 'black', 'green'], '#']]],
  ['Spotting Scope', 640, ['with less zoom', 'with more zoom', 'with the minimum zoom', 'with the maximum zoom'], [['zoom', ['6x', '8x', '10x', '12x'], 'with # zoom'], ['body material', ['rubber', 'metal', 'plastic'], 'with a # body'], ['color', ['black', 'silver', 'green', 'grey'], '#']]],
  ['Duffel Bag', 230, ['smaller', 'bigger', 'smallest', 'biggest'], [['size', ['small', 'medium', 'large'], '#'], ['material', ['leather', 'canvas', 'nylon'], '#'], ['color', ['grey', 'green', 'black', 'red'], '#']]],
  ['Power Bank', 115, ['smaller', 'bigger', 'smallest', 'biggest'], [['capacity', ['4000mAh', '8000mAh', '12000mAh', '16000mAh'], '#'], ['output', ['USB-A', 'USB-C', 'Wireless'], 'with # output'], ['color', COLORS, '#']]],
  ['Wall Clock', 160, ['smaller', 'bigger', 'smallest', 'biggest'], [['diameter', ['10-inch', '12-inch', '15-inch', '20-inch'], '#'], ['dial color', ['black', 'white', 'blue'], 'with a # dial'], ['frame material', ['wood', 'metal', 'plastic'], '#']]],
];
const FIRST = ['Nadia', 'Tomas', 'Leila', 'Hugo', 'Priya', 'Oskar', 'Ines', 'Malik', 'Greta', 'Rafael', 'Noor', 'Elias', 'Tessa', 'Bruno'];
const LAST = ['Keller', 'Okafor', 'Brandt', 'Moreau', 'Tanaka', 'Lindqvist', 'Petrov', 'Aydin', 'Romano', 'Schultz', 'Farouk', 'Novak', 'Byrne'];
const PLACES = [['Portland', 'OR', '972'], ['Tucson', 'AZ', '857'], ['Omaha', 'NE', '681'], ['Boise', 'ID', '837'], ['Madison', 'WI', '537'], ['Tampa', 'FL', '336']];
const WORDING = [
  (noun, id, wish) => `I want to exchange the ${noun} from order ${id} for ${wish}. If there is none, return it.`,
  (noun, id, wish) => `Exchange my ${noun} from order ${id} for ${wish}; if there is none, I want to return it.`,
  (noun, id, wish) => `Please exchange the ${noun} from my order ${id} for ${wish}. If none is available, return it, please.`,
  (noun, id, wish) => `My ${noun} from order ${id} should become ${wish}; if there is none, return it.`,
];
const PAYING = [(pay) => `Use my ${pay}.`, (pay) => `Use my ${pay} for the difference or the refund.`, (pay) => `Use the ${pay} that I paid with.`];
const YES = ['Yes.', 'Yes, please.', 'Yes, go ahead.', 'Yes, that is fine.'];
const [BYE, NO_MORE] = [['No, that is all. Thank you! ###STOP###', 'That was everything, thanks. ###STOP###'], 'Never mind, then. Goodbye. ###STOP###'];
const LATER = { cancel_reason: null, exchange_items: null, exchange_new_items: null, exchange_payment_method_id: null, exchange_price_difference: null, return_items: null, return_payment_method_id: null };
function randomOf(seed) {
  let a = Math.imul(seed + 1, 0x9e3779b1);
  return (limit) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}
/* As this target writes JSON: a space after commas and colons, and every number a float. */
const json = (value) => {
  if (typeof value === 'number') return Number.isInteger(value) ? `${value}.0` : String(value);
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};
const cents = (amount) => Math.round(amount * 100) / 100;
const NAMES = ['find_user_id_by_name_zip', 'get_order_details', 'get_product_details', 'exchange_delivered_order_items', 'return_delivered_order_items'];
const [FIND, ORDER, PRODUCT, EXCHANGE, RETURN] = NAMES;
export const describe = () => ({ policy, tools: NAMES.map((name) => targetTools[name]), maxSteps: 16 });
const combosOf = (options) => options.reduce((rows, [key, values]) => rows.flatMap((row) => values.map((value) => ({ ...row, [key]: value }))), [{}]);
const missed = (conds, options) => conds.filter(({ key, values }) => !values.includes(options[key])).length;
/* What the user wants: conditions (an option and the values that are right), maybe an extreme among them, and the words. */
function wishOf([, , words, options], current, shape, below) {
  const [scale, one, two] = below(2) && shape !== 5 ? [options[0], options[2], options[1]] : options;
  const draw = (list) => list[below(list.length)];
  const [o, a, b] = [scale, one, two].map(([key, values]) => draw(values.filter((value) => value !== current[key])));
  const [spare, coin, at] = [draw(two[1].filter((value) => value !== b)), below(2), scale[1].indexOf(current[scale[0]])];
  const up = at === 0 ? 1 : at === scale[1].length - 1 ? 0 : coin;
  const is = ([key], ...values) => ({ key, values });
  const than = is(scale, ...scale[1].filter((_, n) => (up ? n > at : n < at)));
  const [so, sa, sb] = [[scale, o], [one, a], [two, b]].map(([option, value]) => option[2].replace('#', value));
  const parts = [[so, sa, sb], [so], [words[up], sa], [words[2 + coin], sa], [coin ? 'most expensive' : 'cheapest', sa], [sa], [so, sa]][shape];
  const [tails, before] = [true, false].map((wanted) => parts.filter((part) => /^(with|in) /.test(part) === wanted));
  const [article, after] = [shape === 3 || shape === 4 ? 'the' : before.length > 0 ? 'a' : '', tails.join(' and ').replace(' and with ', ' and ')];
  const extra = ['', `, same ${one[0]}`, '', ' that you have', ' that you have', `, ${b} or ${spare}, same ${scale[0]}`, ''][shape];
  const [O, A, sameO, sameA] = [is(scale, o), is(one, a), is(scale, current[scale[0]]), is(one, current[one[0]])];
  const conds = [[O, A, is(two, b)], [O, sameA], [than, A], [A], [A], [A, is(two, b, spare), sameO], [O, A]][shape];
  const said = [article, before.join(before.length > 2 ? ', ' : ' '), 'one', after].filter(Boolean).join(' ') + extra;
  const care = [1, 2, 6].includes(shape) ? `I do not care about the ${two[0]}. ` : '';
  return { conds, extreme: [null, null, null, scale[0], 'price', null, null][shape], top: coin === 1, words: said, care };
}
function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same; what differs is chosen below
  const pick = (list) => list[below(list.length)];
  const shuffled = (list) => list.map((each) => [below(1000000), each]).sort(([x], [y]) => x - y).map(([, each]) => each);
  const digits = (count) => `${1 + below(9)}${Array.from({ length: count - 1 }, () => below(10)).join('')}`;
  const row = (options, available, good = false) => ({ item_id: digits(10), options, available, good });
  const catalogOf = ([name, base], list) => {
    const dollars = shuffled(list.map((_, n) => Math.round(base * (0.85 + (0.3 * n) / list.length)) + n)); // all different
    const made = list.map(({ item_id, options, available }, n) => [item_id, { item_id, options, available, price: cents(dollars[n] + (1 + below(99)) / 100) }]);
    return { name, product_id: digits(10), variants: Object.fromEntries(made) };
  };
  const [product, ...others] = shuffled(PRODUCTS);
  const [[scale], combos] = [product[3], combosOf(product[3])];
  const current = pick(combos);
  const wish = wishOf(product, current, fewer ? 6 : below(6), below);
  const rest = shuffled(combos.filter((each) => each !== current));
  const [fit, near, far] = [0, 1, 2].map((count) => rest.filter((each) => Math.min(2, missed(wish.conds, each)) === count));
  const untied = fit.filter((each, n) => wish.extreme !== scale[0] || fit.findIndex((other) => other[scale[0]] === each[scale[0]]) === n);
  const good = untied.slice(0, fewer ? 1 : wish.extreme ? 4 : 2);
  const [open, decoys] = [wish.extreme ? good.length - 1 : 1, fewer ? 2 : 4]; // open: so many of the fitting ones are available
  const rows = shuffled([
    ...[row(current, true), ...good.map((options, n) => row(options, n < open, true))],
    ...near.slice(0, decoys).map((options, n) => row(options, n < 2 || below(4) > 0)),
    ...far.slice(0, fewer ? 0 : 2).map((options) => row(options, below(4) > 0)),
  ]);
  const [spares, altered, fitting] = [near.slice(decoys), below(2) === 1, rows.filter((each) => each.good && each.available)];
  const catalogs = [catalogOf(product, rows)];
  const more = (other) => catalogOf(other, shuffled(combosOf(other[3])).slice(0, 4).map((options) => row(options, below(3) > 0)));
  catalogs.push(...others.slice(0, fewer ? 1 : 1 + below(3)).map(more));
  const [{ variants }] = catalogs;
  const rank = ({ item_id, options }) => (wish.extreme === 'price' ? variants[item_id].price : scale[1].indexOf(options[scale[0]]));
  const best = fitting.sort((x, y) => (wish.top ? rank(y) - rank(x) : rank(x) - rank(y)))[0].item_id;
  if (!special) // nothing that fits is left: it is not available, or it has another option
    for (const { item_id } of fitting) Object.assign(variants[item_id], altered && spares.length > 0 ? { options: spares.pop() } : { available: false });
  const item = rows.find((each) => each.options === current).item_id;
  const bought = ({ name, product_id, variants: own }, id) => ({ name, product_id, item_id: id, price: own[id].price, options: own[id].options });
  const items = shuffled(catalogs.map((each, n) => bought(each, n === 0 ? item : Object.keys(each.variants)[0])));
  const [first, last, [city, region, prefix], [pay, source]] = [pick(FIRST), pick(LAST), pick(PLACES), pick([['credit card', 'credit_card'], ['PayPal account', 'paypal']])];
  const [zip, payment, order_id] = [prefix + digits(2), `${source}_${digits(7)}`, `#W${digits(7)}`];
  const address = { address1: `${100 + below(800)} ${pick(['Harbor Road', 'Orchard Street', 'Juniper Court', 'Mill Lane', 'Canal Street'])}`, address2: `Suite ${11 + below(80)}`, city, country: 'USA', state: region, zip };
  const fulfillments = [{ tracking_id: [digits(12)], item_ids: items.map((each) => each.item_id) }];
  const payment_history = [{ transaction_type: 'payment', amount: cents(items.reduce((sum, each) => sum + each.price, 0)), payment_method_id: payment }];
  const order = { order_id, user_id: `${first}_${last}_${digits(4)}`.toLowerCase(), address, items, status: 'delivered', fulfillments, payment_history, ...LATER };
  const asks = `${pick(WORDING)(product[0].toLowerCase(), order_id, wish.words)} ${wish.care}${pick(PAYING)(pay)}`;
  const who = `I am ${first} ${last}, zip code ${zip}.`;
  const said = { who, again: `As I said: ${wish.words}. If there is none, return it.`, yes: pick(YES), bye: pick(BYE), request: fewer ? `${who} ${asks}` : asks };
  const facts = { special, first, last, zip, pay, payment, order, catalogs, item, conds: wish.conds, wanted: special ? best : null };
  const progress = { introduced: fewer, identified: false, seen: false, proposed: false, agreed: 0, wrong: 0, turns: 0, idle: 0, writes: 0, written: null, done: false };
  return { ...facts, ...said, ...progress };
}
export const make = (seed) => instance(seed, false);
export const easier = (seed) => instance(seed, true); // the user says at once who it is, asks for two features, and the list is short
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];
const fits = ({ type }, value) => (type === 'array' ? Array.isArray(value) && value.every((each) => typeof each === 'string') : typeof value === 'string');
function observe(state, { name, arguments: raw }) {
  if (!NAMES.includes(name)) return `Error: Tool '${String(name).replace(/[^\w.-]/g, '').slice(0, 60)}' not found.`;
  const [given, { properties, required }] = [raw && typeof raw === 'object' ? raw : {}, targetTools[name].parameters];
  const bad = required.find((key) => !fits(properties[key], given[key]));
  if (bad) return `Error: ${given[bad] === undefined ? 'missing' : 'invalid'} argument '${bad}'`;
  const { order, catalogs, first, last, zip } = state;
  if (name === FIND) {
    const right = `${given.first_name} ${given.last_name} ${given.zip}`.toLowerCase() === `${first} ${last} ${zip}`.toLowerCase();
    state.identified = state.identified || right;
    return right ? order.user_id : 'Error: User not found';
  }
  if (name === PRODUCT) {
    const at = catalogs.findIndex((each) => each.product_id === given.product_id);
    state.seen = state.seen || at === 0;
    return at < 0 ? 'Error: Product not found' : json(catalogs[at]);
  }
  if (given.order_id !== order.order_id) return 'Error: Order not found';
  if (name === ORDER) return json(order);
  const [exchange, ids, payment_method_id] = [name === EXCHANGE, given.item_ids, given.payment_method_id];
  const [fresh, old] = [exchange ? given.new_item_ids : [], ids.map((id) => order.items.find((each) => each.item_id === id))];
  if (ids.length === 0 || old.includes(undefined) || new Set(ids).size < ids.length) return 'Error: Some item not found';
  if (exchange && fresh.length !== ids.length) return 'Error: The number of items to be exchanged should match.';
  if (payment_method_id !== state.payment) return 'Error: Payment method not found';
  state.writes += 1; // a slip of form above is no choice; what comes now is one
  if (order.status !== 'delivered') return `Error: Non-delivered order cannot be ${exchange ? 'exchanged' : 'returned'}`;
  const next = fresh.map((id, n) => catalogs.find((each) => each.product_id === old[n].product_id).variants[id]);
  if (!next.every((each) => each?.available)) return 'Error: New item not found or available';
  const difference = cents(next.reduce((sum, each, n) => sum + each.price - old[n].price, 0));
  const after = { exchange_items: [...ids].sort(), exchange_new_items: [...fresh].sort(), exchange_payment_method_id: payment_method_id, exchange_price_difference: difference };
  Object.assign(order, { status: `${exchange ? 'exchange' : 'return'} requested` }, exchange ? after : { return_items: [...ids].sort(), return_payment_method_id: payment_method_id });
  state.written = { name, ids, fresh };
  return json(order);
}
const plain = (text) => ` ${text.toLowerCase().replace(/[^a-z0-9]+/g, ' ').trim()} `;
/* The variants that a text puts forward: by identifier or price, or else by all their options. */
function named({ catalogs, item, wanted }, text) {
  const { [item]: old, ...others } = catalogs[0].variants;
  const amounts = (text.match(/\d[\d,]*\.\d{1,2}/g) ?? []).map((each) => Number(each.replaceAll(',', '')));
  const marked = Object.values(others).filter((each) => text.includes(each.item_id) || amounts.includes(each.price));
  const parts = text.split(/ for | to /i).map(plain);
  const holds = ({ options }) => parts.some((part) => Object.values(options).every((value) => part.includes(plain(value))));
  const found = Object.values(others).filter(holds);
  const right = found.filter((each) => each.item_id === wanted && holds(old)); // old and new in one breath
  return [marked, right, found].find((list) => list.length > 0) ?? [];
}
/* What the agent proposes: 'right', 'wrong' or 'unclear'. Sentences that only say what cannot be had do not count. */
function judge(state, content) {
  const sentences = content.replace(/yes\s*(\/|or)\s*no/gi, 'yes').split(/[.!?](?=\s|$)|\n/);
  const lacks = /\b(no|not|none|nothing|neither|cannot|unavailable|unfortunately)\b|n['’]t\b|out of stock|sold out/i;
  const variants = named(state, sentences.filter((each) => !lacks.test(each)).join('. '));
  if (variants.length === 1) return variants[0].item_id === state.wanted ? 'right' : 'wrong';
  const returns = sentences.some((each) => /(?<!how to )\breturn(?! instruction)/i.test(each) && !/\b(if|or|whether|otherwise|help)\b/i.test(each));
  return !returns ? 'unclear' : state.wanted ? 'wrong' : 'right';
}
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const say = (text, done = false) => ({ state: { ...state, done }, done, messages: [{ role: 'user', content: text }] });
  const answers = (message.toolCalls ?? []).map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) }));
  if (answers.length > 0) return { state, done: false, messages: answers };
  const content = String(message.content ?? '').slice(0, 6000);
  Object.assign(state, { turns: state.turns + 1, introduced: true });
  if (state.written) return say(state.bye, true);
  if (!before.introduced) return say(state.who);
  const verdict = judge(state, content);
  state.proposed = state.proposed || (verdict === 'right' && state.seen);
  state[{ right: 'agreed', wrong: 'wrong', unclear: 'idle' }[verdict]] += 1;
  if (state.turns > 7 || state.wrong > 1 || state.idle > 3) return say(NO_MORE, true);
  if (verdict !== 'unclear') return say(verdict === 'right' ? state.yes : 'No, that is not what I asked for.');
  if (/e-?mail|zip|your name/i.test(content)) return say(state.who);
  return say(/payment|paypal|card/i.test(content) ? `My ${state.pay}, please.` : state.again);
}
export function reward({ special, identified, seen, proposed, wrong, writes, written, item, wanted, conds, catalogs, done }) {
  const own = written?.ids.length === 1 && written.ids[0] === item && written.name === (special ? EXCHANGE : RETURN);
  const met = own && special ? 1 - missed(conds, catalogs[0].variants[written.fresh[0]].options) / conds.length : 0;
  const match = own && (!special || written.fresh[0] === wanted);
  const right = identified && seen && match && writes === 1 && wrong === 0 && done;
  const partial = (identified && seen ? 0.05 + (match ? 0.15 : 0.1 * met) : 0) + (proposed ? 0.1 : 0);
  const breakdown = { identified: Number(identified), seen: Number(seen), proposed: Number(proposed), wrong, writes, met, match: Number(match) };
  return { reward: right ? 1 : partial, branch: special ? 'one_fits' : 'none_fits', breakdown };
}
const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const say = (content) => ({ role: 'assistant', content });
const write = ({ order, item, payment }, fresh) => {
  return { name: fresh ? EXCHANGE : RETURN, arguments: { order_id: order.order_id, item_ids: [item], ...(fresh && { new_item_ids: [fresh] }), payment_method_id: payment } };
};
export const reference = (state) => ({ actions: [write(state, state.wanted)], tell: [] });
function script(state, fresh, proposes) {
  const { first, last, zip, order, item, pay, catalogs: [{ variants, name, product_id }] } = state;
  const listed = (id) => Object.values(variants[id].options).join(', ');
  const [id, given] = [order.order_id, write(state, fresh)];
  const offer = fresh
    ? `I would now exchange in order ${id} the ${name} (${listed(item)}) for ${listed(fresh)} at $${variants[fresh].price.toFixed(2)}, with the price difference on your ${pay}.`
    : `There is no such ${name} available. I would now return the ${name} (${listed(item)}) of order ${id}, with the refund to your ${pay}.`;
  return [
    ...(state.introduced ? [] : [say('Of course. First I have to find your account: please tell me your full name with your zip code.')]),
    ...[[FIND, { first_name: first, last_name: last, zip }], [ORDER, { order_id: id }], [PRODUCT, { product_id }]].map((each) => call(...each)),
    ...(proposes ? [say(`${offer} Shall I do so?`)] : []),
    ...[call(given.name, given.arguments), say('All of that is done. Is there anything else that I can do for you?')],
  ];
}
export const solve = (seed, state = make(seed)) => script(state, state.wanted, true);
export function shortcuts(seed, state = make(seed)) {
  const open = Object.values(state.catalogs[0].variants).filter((each) => each.available && each.item_id !== state.item);
  const nearest = [...open].sort((x, y) => missed(state.conds, x.options) - missed(state.conds, y.options))[0];
  const partly = open.find(({ options }) => missed(state.conds.slice(0, 1), options) === 0) ?? open[0];
  const [exchange, first] = [script(state, state.wanted ?? nearest.item_id, false), script(state, open[0].item_id, false)];
  return { 'always exchange': exchange, 'always return': script(state, null, true), 'first available': first, 'first condition only': script(state, partly.item_id, true) };
}
export const hint = () => 'Hold each option of the list against everything that the user said, one condition after the other: the values, the comparison with the old item, the extreme, and whether it is available. If one meets them all, take that one and no other. If not a single one does, nothing near will do: follow what the user said for that case.';