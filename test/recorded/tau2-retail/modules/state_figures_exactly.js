const targetTools = {"calculate":{"name":"calculate","description":"Calculate the result of a mathematical expression.","parameters":{"properties":{"expression":{"description":"The mathematical expression to calculate, such as '2 + 2'. The expression can contain numbers, operators (+, -, *, /), parentheses, and spaces.","title":"Expression","type":"string"}},"required":["expression"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"cancel_pending_order":{"name":"cancel_pending_order","description":"Cancel a pending order. If the order is already processed or delivered,\n\nit cannot be cancelled. The agent needs to explain the cancellation detail\nand ask for explicit user confirmation (yes/no) to proceed. If the user confirms,\nthe order status will be changed to 'cancelled' and the payment will be refunded.\nThe refund will be added to the user's gift card balance immediately if the payment\nwas made using a gift card, otherwise the refund would take 5-7 business days to process.\nThe function returns the order details after the cancellation.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"reason":{"description":"The reason for cancellation, which should be either 'no longer needed' or 'ordered by mistake'.","title":"Reason","type":"string"}},"required":["order_id","reason"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}},"find_user_id_by_name_zip":{"name":"find_user_id_by_name_zip","description":"Find user id by first name, last name, and zip code. If the user is not found, the function\n\nwill return an error message. By default, find user id by email, and only call this function\nif the user is not found by email or cannot remember email.","parameters":{"properties":{"first_name":{"description":"The first name of the customer, such as 'John'.","title":"First Name","type":"string"},"last_name":{"description":"The last name of the customer, such as 'Doe'.","title":"Last Name","type":"string"},"zip":{"description":"The zip code of the customer, such as '12345'.","title":"Zip","type":"string"}},"required":["first_name","last_name","zip"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_user_details":{"name":"get_user_details","description":"Get the details of a user, including their orders.","parameters":{"properties":{"user_id":{"description":"The user id, such as 'sara_doe_496'.","title":"User Id","type":"string"}},"required":["user_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}}};
/*
 * Trains `state_figures_exactly`: an amount is read digit by digit from a record, and worked out where it has to be.
 * The user has an order cancelled and asks what some items cost. Even seed (worked_out): two to four items are meant,
 * their prices have to be added up. Odd seed (read_off): same message, same prices, but one item is meant; its price
 * has to be read off beside one that differs by swapped digits, and adding anything up gives a wrong figure. */
const policy = [
  '# Retail agent policy\n\nAs a retail agent, you can help users:\n\n- **cancel pending orders**\n- **provide information about their own profile and orders**',
  'At the beginning of the conversation, you have to authenticate the user identity by locating their user id via name + zip code.',
  'Once the user has been authenticated, you can provide the user with information about order and profile information.',
  'Before taking any action that updates the database (cancel), you must list the action details and obtain explicit user confirmation (yes) to proceed.',
  'You should not make up any information or knowledge or procedures not provided by the user or the tools.',
  'You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time.',
  "## Cancel pending order\n\nAn order can only be cancelled if its status is 'pending', and you should check its status before taking the action.",
  "The user needs to confirm the order id and the reason (either 'no longer needed' or 'ordered by mistake') for cancellation.",
  "After user confirmation, the order status will be changed to 'cancelled', and the total will be refunded via the original payment method.",
].join('\n\n');
const OFFERED = ['find_user_id_by_name_zip', 'get_user_details', 'get_order_details', 'calculate', 'cancel_pending_order'];
const FIRST = ['Nora', 'Tomas', 'Leila', 'Oskar', 'Priya', 'Felix', 'Amara', 'Jonas', 'Selin', 'Marek', 'Ines', 'Kenji'];
const LAST = ['Bauer', 'Okafor', 'Lindqvist', 'Moreau', 'Haddad', 'Walsh', 'Reyes', 'Tanaka', 'Fischer', 'Costa', 'Dubois'];
const PLACES = [['Portland', 'OR', '972'], ['Tucson', 'AZ', '857'], ['Omaha', 'NE', '681'], ['Boise', 'ID', '837'], ['Madison', 'WI', '537']];
const STREETS = ['Birch Road', 'Willow Court', 'Harbor Street', 'Chestnut Way', 'Meadow Lane', 'Orchard Road'];
const PLURAL = ['Rain Boots', 'Ski Goggles', 'Knee Pads', 'Binoculars', 'Garden Gloves', 'Swim Fins', 'Oven Mitts', 'Walking Sticks', 'Bath Towels', 'Curtains', 'Bookends', 'Slippers'];
const OTHERS = ['Camping Stove', 'Wall Clock', 'Rice Cooker', 'Picnic Basket', 'Tool Box', 'Paper Shredder', 'Sleeping Bag', 'Fruit Bowl', 'Door Mat', 'Piggy Bank', 'Ukulele', 'Toaster', 'Bird Feeder', 'Card Game'];
const OPTIONS = { color: ['black', 'white', 'green', 'blue', 'red'], size: ['small', 'medium', 'large'], material: ['cotton', 'rubber', 'plastic', 'steel'] };
const KEYS = [['color', 'size'], ['color', 'material'], ['size', 'material', 'color']];
const WHY = [['no longer needed', 'it is no longer needed', 'I no longer need it'], ['ordered by mistake', 'I ordered it by mistake']];
const REASONS = WHY.map(([reason]) => reason);
const YES = ['Yes.', 'Yes, please.', 'Yes, that is fine.', 'Yes, go ahead.'];
const BYE = ['No, that is all. Thank you! ###STOP###', 'That was everything, thanks. ###STOP###'];
const direct = (kind, x, place) => kind === 'sum' ? `what did the ${x} in ${place} cost in total?` : `what did I pay for everything in ${place} except the ${x}?`;
const indirect = (kind, x, place) => kind === 'sum' ? `what the ${x} in ${place} cost in total` : `what I paid for everything in ${place} except the ${x}`;
const WORDING = [
  (id, why, ...what) => `Cancel order ${id}, ${why}. And ${direct(...what)}`,
  (id, why, ...what) => `Two things: cancel order ${id}, ${why}, and tell me ${indirect(...what)}.`,
  (id, why, ...what) => `Please cancel order ${id}, ${why}. W${direct(...what).slice(1)}`,
  (id, why, ...what) => `I'd like to know ${indirect(...what)}. Then cancel order ${id}, ${why}.`,
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
const draw = (below, from) => from.splice(below(from.length), 1)[0];
const sum = (list) => list.reduce((a, b) => a + b, 0);
const dollars = (cents) => `$${(cents / 100).toFixed(2)}`;
const float = (value) => (Number.isInteger(value) ? `${value}.0` : String(value));
/* As this target writes JSON: a space after commas and colons, numbers as floats. */
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (typeof value === 'number') return float(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};
export const describe = () => ({ policy, tools: OFFERED.map((name) => targetTools[name]), maxSteps: 18 });
export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (from) => from[below(from.length)];
  const digits = (n) => Array.from({ length: n }, (_, i) => (i ? below(10) : 1 + below(9))).join('');
  const [first, last, [city, region, zone], source] = [pick(FIRST), pick(LAST), pick(PLACES), pick(['paypal', 'credit_card'])];
  const address = { address1: `${100 + below(800)} ${pick(STREETS)}`, address2: `Suite ${100 + below(800)}`, city, country: 'USA', state: region, zip: zone + digits(2) };
  const low = `${first}_${last}`.toLowerCase();
  const [userId, email] = [`${low}_${digits(4)}`, `${low.replace('_', '.')}${digits(4)}@example.com`];
  const [method, card] = [`${source}_${digits(7)}`, { brand: pick(['visa', 'mastercard']), last_four: digits(4) }];
  const payment_methods = { [method]: { source, id: method, ...(source === 'paypal' ? {} : card) } };
  const [kind, same, x, xId] = [pick(['sum', 'rest']), below(3) === 0, pick(PLURAL), digits(10)];
  const several = 2 + below(3); // so many items are meant if special, otherwise one of them
  const spots = Array.from({ length: several + 2 }, (_, i) => i);
  const group = Array.from({ length: several }, () => draw(below, spots)).sort((a, b) => a - b);
  const single = pick(group);
  const cost = () => (below(4) === 0 ? 1000 + below(2000) : 40 + below(900)) * 100 + 10 * below(10) + 1 + below(9);
  const prices = Array.from({ length: several + 2 }, cost);
  const [tens, ones] = [Math.floor((prices[single] % 100) / 10), prices[single] % 10];
  prices[spots[0]] = prices[single] + (tens === ones ? 9 : 9 * (ones - tens)); // the last two digits swapped
  const asked = special ? group : [single];
  const pool = [...OTHERS];
  const item = (price, isX) => {
    const [other, otherId, item_id] = [draw(below, pool), digits(10), digits(10)];
    const values = Object.fromEntries(Object.entries(OPTIONS).map(([key, from]) => [key, pick(from)]));
    const name = isX ? x : other;
    const options = Object.fromEntries(KEYS[name.length % 3].map((key) => [key, values[key]]));
    return { name, product_id: isX ? xId : otherId, item_id, price: price / 100, options };
  };
  const order = (id, items, total, status, tracking) => ({
    order_id: id, user_id: userId, address, items, status,
    fulfillments: status === 'pending' ? [] : [{ tracking_id: [tracking], item_ids: items.map((each) => each.item_id) }],
    payment_history: [{ transaction_type: 'payment', amount: total / 100, payment_method_id: method }],
    cancel_reason: null, exchange_items: null, exchange_new_items: null, exchange_payment_method_id: null,
    exchange_price_difference: null, return_items: null, return_payment_method_id: null,
  });
  const [big, small] = [`#W${digits(7)}`, `#W${digits(7)}`]; // the question is about the big one
  const bigItems = prices.map((price, i) => item(price, asked.includes(i) === (kind === 'sum')));
  const few = Array.from({ length: 1 + below(2) }, cost);
  const smallItems = few.map((price) => item(price, false));
  const [one, two] = same ? ['pending', 'delivered'] : ['delivered', 'pending'];
  const orders = { [big]: order(big, bigItems, sum(prices), one, digits(12)), [small]: order(small, smallItems, sum(few), two, digits(12)) };
  const user = { user_id: userId, name: { first_name: first, last_name: last }, address, email, payment_methods, orders: below(2) ? [big, small] : [small, big] };
  const [code, wording, cancel] = [below(2), below(WORDING.length), same ? big : small];
  const why = pick(WHY[code]);
  const request = WORDING[wording](cancel, why, kind, x.toLowerCase(), same && wording < 3 ? 'that order' : `order ${big}`);
  return {
    special, kind, user, orders, big, small, cancel, reason: REASONS[code], why, x: x.toLowerCase(), prices, group, single, asked,
    figure: sum(asked.map((i) => prices[i])), refund: sum(same ? prices : few), request, yes: pick(YES), bye: pick(BYE),
    seen: [], writes: [], extra: 0, known: false, confirms: 0, stray: 0, worked: '', told: '', done: false,
  };
}
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];
/* The value of an expression with + - * / and parentheses, or NaN; level 0 is sums, 1 products, 2 single values. */
const WORK = { '+': (a, b) => a + b, '-': (a, b) => a - b, '*': (a, b) => a * b, '/': (a, b) => a / b };
function valueOf(tokens, level = 0) {
  if (level < 2) {
    let value = valueOf(tokens, level + 1);
    while (['+-', '*/'][level].includes(tokens[0] ?? ' ')) value = WORK[tokens.shift()](value, valueOf(tokens, level + 1));
    return value;
  }
  const token = tokens.shift();
  if (token === '-') return -valueOf(tokens, 2);
  if (token !== '(') return Number(token);
  const inner = valueOf(tokens);
  return tokens.shift() === ')' ? inner : NaN;
}
function observe(state, { name, arguments: given }) {
  const { user, orders } = state;
  if (!OFFERED.includes(name)) return 'Error: Unknown tool';
  const fields = targetTools[name].parameters.required;
  if (Object.keys(given ?? {}).length !== fields.length || !fields.every((field) => typeof given[field] === 'string')) return 'Error: Invalid arguments';
  if (name === 'calculate') {
    const expression = given.expression.slice(0, 300);
    if (!/^[0-9+\-*/(). ]+$/.test(expression)) return 'Error: Invalid characters in expression';
    const tokens = expression.match(/\d+(?:\.\d+)?|[+\-*/()]/g) ?? [];
    const whole = tokens.join('') === expression.replace(/ /g, '');
    const value = valueOf(tokens);
    if (!whole || tokens.length > 0 || !Number.isFinite(value)) return 'Error: invalid syntax';
    state.worked = `${state.worked} ${expression}`.slice(-2000);
    return float(Math.round(value * 100) / 100);
  }
  if (name === 'find_user_id_by_name_zip') {
    const wanted = [user.name.first_name, user.name.last_name, user.address.zip].join().toLowerCase();
    const named = [given.first_name, given.last_name, given.zip].map((each) => each.trim()).join().toLowerCase();
    return named === wanted ? user.user_id : 'Error: User not found';
  }
  if (name === 'get_user_details') return given.user_id === user.user_id ? json(user) : 'Error: User not found';
  if (!Object.hasOwn(orders, given.order_id)) return 'Error: Order not found';
  const order = orders[given.order_id];
  if (name === 'cancel_pending_order') {
    if (order.status !== 'pending') return (state.extra += 1), 'Error: Non-pending order cannot be cancelled';
    if (!REASONS.includes(given.reason)) return 'Error: Invalid reason';
    Object.assign(order, { status: 'cancelled', cancel_reason: given.reason });
    order.payment_history.push({ ...order.payment_history[0], transaction_type: 'refund' });
    state.writes.push([given.order_id, given.reason]);
  }
  state.seen.push(given.order_id);
  return json(order);
}
const AMOUNT = '\\$?\\s?\\d[\\d,]*\\.\\d+';
const CHAIN = `${AMOUNT}(?:\\s*(?:\\([^)]*\\))?\\s*[+\u2212\u2013-]\\s*${AMOUNT})+`;
const amounts = (text) => (text.match(/\$\s?\d[\d,]*(?:\.\d+)?|\d[\d,]*\.\d+/g) ?? []).map((each) => Math.round(Number(each.replace(/[$,\s]/g, '')) * 100));
/* The amounts that a text tells: operands of a written-out sum or difference are working, and the refund is no answer. */
function answers({ refund }, text) {
  const all = amounts(text.replace(new RegExp(CHAIN, 'g'), ' '));
  const others = all.filter((each) => each !== refund);
  return others.length > 0 || /refund/i.test(text) ? others : all;
}
/* The user: says who it is, confirms the right cancellation, asks again for a missing amount, says goodbye. */
function reply(state, text) {
  const { user, cancel, big, small, reason, why, kind, x } = state;
  const low = text.toLowerCase();
  const cancelled = state.writes.length > 0;
  if (cancelled && answers(state, text).length > 0) return Object.assign(state, { told: text, done: true }).bye;
  const greets = !state.known && /mail|zip|name|identi|verif|authent/.test(low);
  state.known ||= greets;
  if (greets) return `I am ${user.name.first_name} ${user.name.last_name}, zip code ${user.address.zip}.`;
  const refuses = /(cannot|can't|can not|unable to|not able to|won't) (cancel|help|do|confirm)/.test(low);
  if (!cancelled && !refuses && /cancel/.test(low) && /\?|confirm|yes\/no|shall i|proceed/.test(low) && state.confirms < 3) {
    state.confirms += 1;
    const names = (id) => low.includes(id.slice(1).toLowerCase());
    if (names(cancel === big ? small : big) && !names(cancel)) return `No. Only order ${cancel}, please.`;
    return REASONS.some((each) => each !== reason && low.includes(each)) ? `Order ${cancel}, ${why}.` : state.yes;
  }
  state.stray += 1;
  if ((state.done = state.stray > 2)) return 'Never mind. Goodbye. ###STOP###';
  const question = `And ${direct(kind, x, `order ${big}`)}`;
  return cancelled ? question : `Please cancel order ${cancel}, ${why}. ${question}`;
}
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  const answered = calls.map((each) => ({ role: 'tool', toolCallId: each.id, content: observe(state, each) }));
  if (calls.length > 0) return { state, done: false, messages: answered };
  const text = typeof message?.content === 'string' ? message.content.slice(0, 4000) : '';
  const messages = [{ role: 'user', content: reply(state, text) }];
  return { state, done: state.done, messages, ...(state.done ? { stopReason: 'user_stop' } : {}) };
}
/* The right amount stands first or last; beside it only what leads to it. On a read-off nothing leads to it. */
function tellsRight(state) {
  const { special, kind, prices, asked, figure, told } = state;
  const said = answers(state, told);
  const running = (from, list, sign) => list.map((_, n) => from + sign * sum(list.slice(0, n + 1)));
  const [meant, left] = [true, false].map((is) => prices.filter((_, i) => asked.includes(i) === is));
  const steps = [...meant, ...running(0, meant, 1)];
  if (kind === 'rest') steps.push(...left, sum(prices), ...running(0, left, 1), ...running(sum(prices), left, -1));
  return said.every((each) => each === figure || (special && steps.includes(each))) && (said[0] === figure || said.at(-1) === figure);
}
export function reward(state) {
  const { special, big, cancel, reason, prices, asked, seen, writes, extra, worked, told, done } = state;
  const looked = seen.includes(big);
  const wrote = writes.length === 1 && writes[0][0] === cancel && writes[0][1] === reason;
  const used = amounts(`${worked} ${told}`);
  const sources = looked && asked.every((i) => used.includes(prices[i]));
  const exact = tellsRight(state);
  return {
    reward: looked && wrote && extra === 0 && exact && done ? 1 : (looked ? 0.05 : 0) + (wrote ? 0.1 : 0) + (sources ? 0.1 : 0),
    branch: special ? 'worked_out' : 'read_off',
    breakdown: { looked: Number(looked), wrote: Number(wrote), extra, sources: Number(sources), exact: Number(exact) },
  };
}
export const reference = ({ cancel, reason, figure }) => ({ actions: [{ name: 'cancel_pending_order', arguments: { order_id: cancel, reason } }], tell: [(figure / 100).toFixed(2)] });
const say = (content) => ({ role: 'assistant', content });
const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
function script({ user, big, cancel, reason, kind, x }, parts, told) {
  const adds = parts.length > 1;
  const amount = told ?? `${adds ? `${parts.map(dollars).join(' + ')} = ` : ''}${dollars(sum(parts))}`;
  return [
    say('Happy to help. May I have your email address, or your first and last name and your zip code?'),
    call('find_user_id_by_name_zip', { ...user.name, zip: user.address.zip }),
    call('get_order_details', { order_id: big }),
    ...(cancel === big ? [] : [call('get_order_details', { order_id: cancel })]),
    say(`The next step: I cancel order ${cancel}, for the reason "${reason}". Shall I do so?`),
    call('cancel_pending_order', { order_id: cancel, reason }),
    ...(adds ? [call('calculate', { expression: parts.map((each) => (each / 100).toFixed(2)).join(' + ') })] : []),
    say(`All of that is done. ${kind === 'sum' ? 'The' : 'Everything except the'} ${x} cost ${amount} in total. Is there anything else that I can do for you?`),
  ];
}
const priced = ({ prices }, places) => places.map((i) => prices[i]);
export const solve = (seed) => script(make(seed), priced(make(seed), make(seed).asked));
export function shortcuts(seed) {
  const state = make(seed);
  return {
    'always add up': script(state, priced(state, state.group)),
    'never add up': script(state, priced(state, [state.single])),
    'total of the order': script(state, [sum(state.prices)]),
    'all prices': script(state, [state.prices[0]], state.prices.map(dollars).join(', ')),
  };
}
export const hint = () => 'What the user asks about may stand in the record once or several times: look at every line before you tell an amount. Carry each figure over digit by digit, write a sum out instead of guessing it, and compare what you tell with its source. Tell only the amount that was asked for.';