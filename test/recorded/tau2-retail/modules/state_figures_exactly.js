const targetTools = {"calculate":{"name":"calculate","description":"Calculate the result of a mathematical expression.","parameters":{"properties":{"expression":{"description":"The mathematical expression to calculate, such as '2 + 2'. The expression can contain numbers, operators (+, -, *, /), parentheses, and spaces.","title":"Expression","type":"string"}},"required":["expression"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"find_user_id_by_name_zip":{"name":"find_user_id_by_name_zip","description":"Find user id by first name, last name, and zip code. If the user is not found, the function\n\nwill return an error message. By default, find user id by email, and only call this function\nif the user is not found by email or cannot remember email.","parameters":{"properties":{"first_name":{"description":"The first name of the customer, such as 'John'.","title":"First Name","type":"string"},"last_name":{"description":"The last name of the customer, such as 'Doe'.","title":"Last Name","type":"string"},"zip":{"description":"The zip code of the customer, such as '12345'.","title":"Zip","type":"string"}},"required":["first_name","last_name","zip"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_user_details":{"name":"get_user_details","description":"Get the details of a user, including their orders.","parameters":{"properties":{"user_id":{"description":"The user id, such as 'sara_doe_496'.","title":"User Id","type":"string"}},"required":["user_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"return_delivered_order_items":{"name":"return_delivered_order_items","description":"Return some items of a delivered order.\n\nThe order status will be changed to 'return requested'.\nThe agent needs to explain the return detail and ask for explicit user confirmation (yes/no) to proceed.\nThe user will receive follow-up email for how and where to return the item.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be returned, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'.\nThese can be looked up from the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `state_figures_exactly`: the user returns items, refunded the way it paid, and asks what is on the gift card afterwards.
 * Even seed (worked_out): the order was paid with the gift card, so the figure is balance + prices of the returned items.
 * Odd seed (read_off): same request, same records, but it was paid otherwise: the figure is the balance as it stands, adding is wrong.
 */
const policy = `# Retail agent policy

As a retail agent, you can help users return delivered orders and provide information about their own profile and orders.

At the beginning of the conversation, you have to authenticate the user identity by locating their user id via name + zip code.

Before taking any action that updates the database, you must list the action details and obtain explicit user confirmation (yes) to proceed.

You should not make up any information not provided by the user or the tools.

You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time.

## Return delivered order

An order can only be returned if its status is 'delivered'. The refund of the returned items' prices must either go to the original payment method, or an existing gift card. A refund to a gift card is added to its balance; a refund to another payment method leaves the gift card as it is.

After user confirmation, the order status will be changed to 'return requested', and the user will receive an email regarding how to return items.`;
const TOOLS = ['find_user_id_by_name_zip', 'get_user_details', 'get_order_details', 'calculate', 'return_delivered_order_items'];
const FIRST = ['Nora', 'Tobias', 'Priya', 'Hugo', 'Leila', 'Marcus', 'Ingrid', 'Oscar', 'Selma', 'Dmitri', 'Clara', 'Jonas'];
const LAST = ['Bergman', 'Okafor', 'Lindqvist', 'Moreau', 'Tanaka', 'Novak', 'Castillo', 'Fischer', 'Haddad', 'Petrov', 'Walsh', 'Romano'];
const CITIES = [['Portland', 'OR', '972'], ['Boise', 'ID', '837'], ['Tucson', 'AZ', '857'], ['Omaha', 'NE', '681'], ['Raleigh', 'NC', '276'], ['Madison', 'WI', '537']];
const STREETS = ['Birch Street', 'Harbor Road', 'Mill Lane', 'Orchard Avenue', 'Quarry Drive', 'Station Road'];
const PRODUCTS = [
  ['Rice Cooker', 4000], ['Wall Clock', 2500], ['Camping Tent', 17000], ['Coffee Grinder', 6000], ['Photo Frame', 1800],
  ['Hand Mixer', 5200], ['Bike Pump', 2900], ['Table Fan', 7400], ['Toaster Oven', 12500], ['Travel Pillow', 2200],
  ['Sleeping Bag', 13800], ['Bread Maker', 15600], ['Shower Radio', 4700], ['Knife Block', 9100],
];
const COLORS = ['black', 'white', 'silver', 'green', 'red', 'blue'];
const MATERIALS = ['plastic', 'metal', 'wood', 'fabric'];
const WORDING = [
  (what, order) => `I want to return ${what} from order ${order}. Refund it the way I paid for it. And tell me what is on the gift card afterwards.`,
  (what, order) => `Please return ${what} from order ${order}. I want to get the money back the way I paid. What is on my gift card afterwards?`,
  (what, order) => `I'd like to return ${what} of order ${order}, refund it the way I paid for it. How much is on my gift card afterwards?`,
  (what, order) => `For ${order} I want to return ${what} and get the money back the way I paid. And what is on the gift card after that?`,
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

/* As this target writes JSON; every number in it is an amount. */
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (typeof value === 'number') return Number.isInteger(value) ? `${value}.0` : String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};
const cents = (amount) => Math.round(amount * 100);
const money = (amount) => `$${(amount / 100).toFixed(2)}`;
const sum = (list) => list.reduce((a, b) => a + b, 0);
const list = (names) => (names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}`);
export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 18 });

function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const digits = (n) => Array.from({ length: n }, (_, at) => (at ? below(10) : 1 + below(9))).join('');
  const [first, last] = [FIRST[below(FIRST.length)], LAST[below(LAST.length)]];
  const [city, region, start3] = CITIES[below(CITIES.length)];
  const zip = `${start3}${10 + below(90)}`;
  const userId = `${first}_${last}_${digits(4)}`.toLowerCase();
  const address = { address1: `${digits(3)} ${STREETS[below(STREETS.length)]}`, address2: `Suite ${digits(3)}`, city, country: 'USA', state: region, zip };
  const email = `${first}.${last}${digits(4)}@example.com`.toLowerCase();
  const [gift, card, paypal] = [`gift_card_${digits(7)}`, `credit_card_${digits(7)}`, `paypal_${digits(7)}`];
  const [brand, lastFour, byCard, giftFirst] = [below(2) ? 'visa' : 'mastercard', digits(4), below(2) === 0, below(2) === 0];
  const balance = 1300 + below(180) * 100 + 1 + below(99);
  const names = [...PRODUCTS];
  const all = Array.from({ length: 5 }, () => {
    const [name, base] = draw(below, names);
    const price = base + below(30) * 100 + 1 + below(99);
    const options = { color: COLORS[below(COLORS.length)], material: MATERIALS[below(MATERIALS.length)] };
    return { name, product_id: digits(10), item_id: digits(10), price: price / 100, options };
  });
  const [more, size, wording, orderId, tracking] = [2 + below(2), 4 + below(2), below(WORDING.length), `#W${digits(7)}`, digits(12)];
  const turn = below(5);
  const wanted = all.slice(0, fewer ? 1 : more);
  const inOrder = all.slice(0, fewer ? 2 : size);
  const items = inOrder.map((_, at) => inOrder[(at + turn) % inOrder.length]);
  const other = byCard ? { source: 'credit_card', id: card, brand, last_four: lastFour } : { source: 'paypal', id: paypal };
  const giftCard = { source: 'gift_card', id: gift, balance: balance / 100 };
  const methods = Object.fromEntries((giftFirst ? [giftCard, other] : [other, giftCard]).map((each) => [each.id, each]));
  const paid = special ? gift : other.id;
  const order = {
    order_id: orderId, user_id: userId, address, items, status: 'delivered',
    fulfillments: [{ tracking_id: [tracking], item_ids: items.map((each) => each.item_id) }],
    payment_history: [{ transaction_type: 'payment', amount: sum(items.map((each) => cents(each.price))) / 100, payment_method_id: paid }],
    cancel_reason: null, exchange_items: null, exchange_new_items: null, exchange_payment_method_id: null,
    exchange_price_difference: null, return_items: null, return_payment_method_id: null,
  };
  const user = { user_id: userId, name: { first_name: first, last_name: last }, address, email, payment_methods: methods, orders: [orderId] };
  const what = list(wanted.map((each) => `the ${each.name.toLowerCase()}`));
  return {
    special, user, order, what, paid, balance, byCard, other: other.id, request: WORDING[wording](what, orderId),
    names: wanted.map((each) => each.name), ids: wanted.map((each) => each.item_id).sort(), prices: wanted.map((each) => cents(each.price)),
    seenUser: false, seenOrder: false, writes: [], claim: null, introduced: false, asked: 0, turns: 0, done: false,
  };
}
export const make = (seed) => instance(seed, false);
/* One item of two is returned. */
export const easier = (seed) => instance(seed, true);
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];

/* Sums, differences, products, quotients and parentheses; NaN for what is no expression. */
function resultOf(text) {
  const tokens = text.match(/\d+(?:\.\d+)?|\.\d+|[-+*/()]/g) ?? [];
  if (tokens.join('') !== text.replace(/\s+/g, '') || tokens.length > 200) return NaN;
  let at = 0;
  const atom = () => {
    const token = tokens[at++];
    if (token === '-') return -atom();
    if (token !== '(') return token === undefined ? NaN : Number(token);
    const inner = chain('+', '-', factor);
    return tokens[at++] === ')' ? inner : NaN;
  };
  const chain = (more, less, part) => {
    let value = part();
    while (tokens[at] === more || tokens[at] === less) {
      const [sign, next] = [tokens[at++], part()];
      value = { '+': value + next, '-': value - next, '*': value * next, '/': value / next }[sign];
    }
    return value;
  };
  const factor = () => chain('*', '/', atom);
  const value = chain('+', '-', factor);
  return at === tokens.length ? value : NaN;
}

function observe(state, call) {
  const { user, order } = state;
  const given = call.arguments && typeof call.arguments === 'object' ? call.arguments : {};
  if (!TOOLS.includes(call.name)) return `Error: Unknown tool ${call.name}`;
  const { properties, required } = targetTools[call.name].parameters;
  const fits = (key) => (properties[key].type === 'array' ? Array.isArray(given[key]) && given[key].every((each) => typeof each === 'string') : typeof given[key] === 'string');
  if (!required.every(fits) || !Object.keys(given).every((key) => Object.hasOwn(properties, key))) return 'Error: Invalid arguments';
  if (call.name === 'find_user_id_by_name_zip') {
    const same = (a, b) => a.trim().toLowerCase() === b.toLowerCase();
    const found = same(given.first_name, user.name.first_name) && same(given.last_name, user.name.last_name) && given.zip.trim() === user.address.zip;
    return found ? user.user_id : 'Error: User not found';
  }
  if (call.name === 'calculate') {
    const value = resultOf(given.expression);
    return Number.isFinite(value) ? json(Math.round(value * 100) / 100) : 'Error: Invalid expression';
  }
  if (call.name === 'get_user_details') {
    if (given.user_id !== user.user_id) return 'Error: User not found';
    state.seenUser = true;
    return json(user);
  }
  if (given.order_id !== order.order_id) return 'Error: Order not found';
  if (call.name === 'get_order_details') state.seenOrder = true;
  if (call.name === 'get_order_details') return json(order);
  if (order.status !== 'delivered') state.writes.push(null); // one write too many
  if (order.status !== 'delivered') return 'Error: Non-delivered order cannot be returned';
  const method = given.payment_method_id;
  if (!Object.hasOwn(user.payment_methods, method)) return 'Error: Payment method not found';
  if (method !== state.paid && !method.startsWith('gift_card')) return 'Error: Payment method should be the original payment method';
  const ids = [...given.item_ids].sort();
  if (ids.length === 0 || new Set(ids).size < ids.length || !ids.every((id) => order.items.some((each) => each.item_id === id))) return 'Error: Some item not found';
  Object.assign(order, { status: 'return requested', return_items: ids, return_payment_method_id: method });
  state.writes.push({ ids, method });
  return json(order);
}
const sumsOf = (amounts) => amounts.reduce((sums, each) => [...sums, ...sums.map((so) => so + each)], [0]);
const amountsIn = (text) => (text.match(/\$\s?\d[\d,]*(?:\.\d+)?|\d[\d,]*\.\d{1,2}(?![\d])/g) ?? []).map((each) => cents(Number(each.replace(/[$,\s]/g, ''))));

/* The user: says who it is, confirms what it wants, asks once more for the figure, says goodbye. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const toolCalls = message.toolCalls ?? [];
  if (toolCalls.length > 0)
    return { state, done: false, messages: toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })) };
  const content = String(message.content ?? '');
  const text = content.toLowerCase();
  const amounts = amountsIn(content);
  const refunds = sumsOf(state.prices);
  const stated = amounts.some((each) => !refunds.includes(each));
  if (stated) state.claim = [...new Set(amounts)].slice(0, 60); // what it says of the card; the last time counts
  const answer = (reply, done = false) => ({ state: { ...state, done }, done, messages: [{ role: 'user', content: reply }], ...(done ? { stopReason: 'user_stop' } : {}) });
  state.turns += 1;
  if (state.writes.length > 0) {
    if (state.claim && (stated || state.asked > 0)) return answer(state.turns % 2 ? 'No, that is all. Thank you! ###STOP###' : 'That was everything, thanks. ###STOP###', true);
    state.asked += 1;
    return state.asked < 3 ? answer('And what is on the gift card afterwards?') : answer('Never mind. Goodbye. ###STOP###', true);
  }
  if (state.turns > 6 || (state.turns > 2 && text.trim() === '')) return answer('Never mind. Goodbye. ###STOP###', true);
  const { name, address } = state.user;
  const unknown = !state.introduced && !(state.seenUser && state.seenOrder);
  if (unknown || /zip|your (full |first |last )?name|your email/.test(text)) {
    state.introduced = true;
    return answer(`I am ${name.first_name} ${name.last_name}, zip code ${address.zip}.`);
  }
  if (/which order|order (id|number)\?/.test(text)) return answer(`Order ${state.order.order_id}.`);
  if (/(which|what|where|how would you)[^.]*(payment|refund|method)[^.]*\?/.test(text)) return answer('Refund it the way I paid for it.');
  const strange = state.order.items.some((each) => !state.names.includes(each.name) && text.includes(each.name.toLowerCase()));
  if (strange && !/keep|rest|remain|stay|not |only|includ|contain/.test(text)) return answer(`No, only ${state.what}, please.`);
  const otherWay = state.special
    ? /credit card|paypal/.test(text) && !/gift/.test(text)
    : /refund/.test(text) && /gift/.test(text) && !/credit|paypal|visa|mastercard|original|you paid/.test(text);
  if (otherWay) return answer('No, refund it the way I paid for it.');
  if (/cannot|can't|unable|not able|anything else|all of that is done/.test(text) && !/shall i|confirm|yes|proceed|go ahead/.test(text)) return answer(`But I want to return ${state.what}, please.`);
  return answer(['Yes.', 'Yes, please.', 'Yes, that is fine.'][state.turns % 3]);
}
const figureOf = ({ special, balance, prices }) => (special ? balance + sum(prices) : balance);

export function reward(state) {
  const { special, balance, prices, ids, paid, writes, claim, seenUser, seenOrder, done } = state;
  const looked = seenUser && seenOrder;
  const allowed = special ? sumsOf([balance, ...prices]) : [balance, ...sumsOf(prices)]; // the steps of the sum may be shown, other figures not
  const figure = looked && claim !== null && claim.includes(figureOf(state)) && claim.every((each) => allowed.includes(each));
  const fits = writes.length > 0 && writes[0] !== null && writes[0].method === paid && writes[0].ids.join() === ids.join();
  const right = figure && fits && writes.length === 1 && done;
  const partial = (looked ? 0.05 : 0) + (looked && fits ? 0.1 : 0) + (figure ? 0.1 : 0);
  return {
    reward: right ? 1 : partial,
    branch: special ? 'worked_out' : 'read_off',
    breakdown: { looked: Number(looked), returned: Number(fits), writes: writes.length, figure: Number(figure), ended: Number(done) },
  };
}
const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const say = (content) => ({ role: 'assistant', content });
const giveBack = ({ order, ids, paid }) => ({ name: 'return_delivered_order_items', arguments: { order_id: order.order_id, item_ids: ids, payment_method_id: paid } });
export const reference = (state) => ({ actions: [giveBack(state)], tell: [(figureOf(state) / 100).toFixed(2)] });

function script(state, amounts) {
  const { user, order, special, byCard, what } = state;
  const terms = amounts.map(money).join(' + ');
  const told = amounts.length > 1 ? `${terms} = ${money(sum(amounts))}` : terms;
  const expression = amounts.map((each) => (each / 100).toFixed(2)).join(' + ');
  return [
    say('Happy to help. May I have your first and last name and your zip code?'),
    call('find_user_id_by_name_zip', { first_name: user.name.first_name, last_name: user.name.last_name, zip: user.address.zip }),
    call('get_user_details', { user_id: user.user_id }),
    call('get_order_details', { order_id: order.order_id }),
    say(`I would now return ${what} of order ${order.order_id}, with the refund to your ${special ? 'gift card' : byCard ? 'credit card' : 'paypal account'}. Shall I do so?`),
    call('return_delivered_order_items', giveBack(state).arguments),
    ...(amounts.length > 1 ? [call('calculate', { expression })] : []),
    say(`All of that is done. Your gift card then holds ${told}. Is there anything else that I can do for you?`),
  ];
}
export const solve = (seed, state = make(seed)) => script(state, state.special ? [state.balance, ...state.prices] : [state.balance]);
export const shortcuts = (seed, state = make(seed)) => ({
  'always add the refund': script(state, [state.balance, ...state.prices]),
  'always tell the balance as it stands': script(state, [state.balance]),
  'always add the whole order': script(state, [state.balance, cents(state.order.payment_history[0].amount)]),
});
export const hint = () =>
  'See which way the order was paid before you say what is on the gift card: only money that goes to it changes it. If it does change, write every amount down as it stands in the records, add them up step by step, and compare the result with its parts before you tell it.';