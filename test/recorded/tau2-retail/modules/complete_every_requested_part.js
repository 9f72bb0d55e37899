const targetTools = {"cancel_pending_order":{"name":"cancel_pending_order","description":"Cancel a pending order. If the order is already processed or delivered,\n\nit cannot be cancelled. The agent needs to explain the cancellation detail\nand ask for explicit user confirmation (yes/no) to proceed. If the user confirms,\nthe order status will be changed to 'cancelled' and the payment will be refunded.\nThe refund will be added to the user's gift card balance immediately if the payment\nwas made using a gift card, otherwise the refund would take 5-7 business days to process.\nThe function returns the order details after the cancellation.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"reason":{"description":"The reason for cancellation, which should be either 'no longer needed' or 'ordered by mistake'.","title":"Reason","type":"string"}},"required":["order_id","reason"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}},"find_user_id_by_email":{"name":"find_user_id_by_email","description":"Find user id by email. If the user is not found, the function will return an error message.","parameters":{"properties":{"email":{"description":"The email of the user, such as 'something@example.com'.","title":"Email","type":"string"}},"required":["email"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_user_details":{"name":"get_user_details","description":"Get the details of a user, including their orders.","parameters":{"properties":{"user_id":{"description":"The user id, such as 'sara_doe_496'.","title":"User Id","type":"string"}},"required":["user_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"return_delivered_order_items":{"name":"return_delivered_order_items","description":"Return some items of a delivered order.\n\nThe order status will be changed to 'return requested'.\nThe agent needs to explain the return detail and ask for explicit user confirmation (yes/no) to proceed.\nThe user will receive follow-up email for how and where to return the item.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be returned, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'.\nThese can be looked up from the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `complete_every_requested_part`: after one part is done, go on to the next, and close only when none is open.
 * Even seed: all two or three parts of the request are open. Odd seed: the same request about the same orders,
 * but by the status of the orders only one part is open; to do the others anyway is wrong.
 */
const policy = [
  '# Retail agent policy',
  'As a retail agent, you can help users cancel pending orders, return delivered orders, and provide information about their own orders.',
  'At the beginning of the conversation, you have to authenticate the user identity by locating their user id via email.',
  'You can only help one user per conversation (but you can handle multiple requests from the same user).',
  'Before taking any action that updates the database (cancel, return), you must list the action details and obtain explicit user confirmation (yes) to proceed.',
  'You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time.',
  "An order can only be cancelled if its status is 'pending', and you should check its status before taking the action. The reason is either 'no longer needed' or 'ordered by mistake'.",
  "An order can only be returned if its status is 'delivered', and you should check its status before taking the action. The refund must go to the original payment method.",
].join('\n\n');
const TOOLS = ['find_user_id_by_email', 'get_user_details', 'get_order_details', 'cancel_pending_order', 'return_delivered_order_items'];
const FIRST = ['Nora', 'Tomas', 'Ingrid', 'Pablo', 'Leila', 'Marco', 'Hanna', 'Victor', 'Zara', 'Oscar', 'Petra', 'Jonas'];
const LAST = ['Lindqvist', 'Okafor', 'Bauer', 'Moreau', 'Novak', 'Reyes', 'Fischer', 'Haddad', 'Costa', 'Petrov', 'Quinn', 'Dahl'];
const CITIES = [
  ['Boise', 'ID', '837'], ['Tulsa', 'OK', '741'], ['Omaha', 'NE', '681'], ['Reno', 'NV', '895'], ['Spokane', 'WA', '992'],
  ['Dayton', 'OH', '454'], ['Fresno', 'CA', '937'], ['Macon', 'GA', '312'], ['Albany', 'NY', '122'], ['Laredo', 'TX', '780'],
];
const STREETS = ['Harbor Road', 'Birch Court', 'Mill Lane', 'Quarry Street', 'Orchard Way', 'Station Road', 'Meadow Street'];
const [COLORS, SIZES] = [['white', 'black', 'silver', 'red', 'green', 'navy'], ['small', 'medium', 'large']];
const PRODUCTS = [
  ['Rice Cooker', { capacity: ['1L', '2L', '3L'], color: COLORS }], ['Umbrella', { size: SIZES, color: COLORS }],
  ['Alarm Clock', { display: ['digital', 'analog'], color: COLORS }], ['Camping Tent', { size: SIZES, color: COLORS }],
  ['Picture Frame', { size: SIZES, material: ['wood', 'metal'] }], ['Bath Towel', { size: SIZES, color: COLORS }],
  ['Sewing Machine', { type: ['mechanical', 'computerized'], color: COLORS }], ['Winter Coat', { size: ['S', 'M', 'L'], color: COLORS }],
  ['Waffle Iron', { shape: ['round', 'square'], color: COLORS }], ['Bike Pump', { type: ['floor', 'hand'], color: COLORS }],
];
const WHY = {
  'no longer needed': ['it is no longer needed', 'no longer needed', 'I no longer need it'],
  'ordered by mistake': ['I ordered it by mistake', 'ordered by mistake', 'it was ordered by mistake'],
};
const CLAUSES = {
  cancel: ['cancel order ID if it is still pending, WHY', 'cancel ID, WHY, but only if it is still pending', 'cancel my order ID, WHY, if that is still pending'],
  return: ['return the ITEM from order ID if that one has been delivered', 'return my ITEM from ID, if it was delivered', 'return the ITEM of ID, but only if it is delivered'],
  ask: ['If order ID has been delivered, what city was it sent to? If not, I do not need to know.',
    'Where was ID sent, which city? I only need to know it if it has been delivered.', 'To which city was order ID sent? Tell me only if it is delivered.'],
};
const WORDING = [
  (parts) => `Please ${parts.join(', and ')}.`,
  ([one, ...more]) => `${one[0].toUpperCase()}${one.slice(1)}.${more.map((each) => ` Then ${each}.`).join('')}`,
  (parts) => `I want to ${parts.join('. I also want to ')}.`,
  (parts) => `${['', 'One thing', 'Two things', 'Three things'][parts.length]}: ${parts.join('; ')}.`,
  (parts) => `I'd like to ${parts.join(', and also ')}.`,
];
const OPEN = { cancel: 'pending', return: 'delivered', ask: 'delivered' };
const CLOSED = { cancel: ['processed', 'delivered', 'cancelled'], return: ['pending', 'processed'], ask: ['pending', 'processed'] };
function randomOf(seed) {
  let a = Math.imul(seed + 1, 0x9e3779b1);
  return (limit) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}
/* As this target writes JSON: a space after commas and colons; all its numbers are amounts, with a decimal point. */
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (typeof value === 'number') return Number.isInteger(value) ? `${value}.0` : String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};
export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 24 });
export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const draw = (from) => from.splice(below(from.length), 1)[0];
  const digits = (n) => `${1 + below(9)}${Array.from({ length: n - 1 }, () => below(10)).join('')}`;
  const [cities, products, orders] = [[...CITIES], [...PRODUCTS], []];
  const place = () => {
    const [city, state, zip] = draw(cities);
    const address1 = `${100 + below(800)} ${pick(STREETS)}`;
    return { address1, address2: `Suite ${100 + below(900)}`, city, country: 'USA', state, zip: `${zip}${digits(2)}` };
  };
  const [first_name, last_name, home, away] = [pick(FIRST), pick(LAST), place(), place()];
  const [source, brand, last_four] = [pick(['paypal', 'credit_card']), pick(['visa', 'mastercard']), digits(4)];
  const paid = `${source}_${digits(7)}`;
  const method = source === 'paypal' ? { source, id: paid } : { source, id: paid, brand, last_four };
  const user_id = `${first_name}_${last_name}_${digits(4)}`.toLowerCase();
  const email = `${first_name}.${last_name}${digits(4)}@example.com`.toLowerCase();
  const [reason, tone] = [pick(Object.keys(WHY)), below(3)];
  const orderOf = (status, address, length) => {
    const [order_id, tracking] = [`#W${digits(7)}`, digits(12)];
    const items = Array.from({ length }, () => {
      const [name, choices] = draw(products);
      const options = Object.fromEntries(Object.entries(choices).map(([key, values]) => [key, pick(values)]));
      const price = ((20 + below(500)) * 100 + 1 + below(98)) / 100;
      return { name, product_id: digits(10), item_id: digits(10), price, options };
    });
    const amount = Math.round(items.reduce((sum, { price }) => sum + price * 100, 0)) / 100;
    const payment = { transaction_type: 'payment', amount, payment_method_id: paid };
    const [gone, sent] = [status === 'cancelled', status === 'processed' || status === 'delivered'];
    return {
      order_id, user_id, address, items, status,
      fulfillments: sent ? [{ tracking_id: [tracking], item_ids: items.map(({ item_id }) => item_id) }] : [],
      payment_history: gone ? [payment, { ...payment, transaction_type: 'refund' }] : [payment],
      cancel_reason: gone ? reason : null, exchange_items: null, exchange_new_items: null, exchange_payment_method_id: null,
      exchange_price_difference: null, return_items: null, return_payment_method_id: null,
    };
  };
  const kinds = Array.from({ length: 2 + below(2) }, () => pick(['cancel', 'return']));
  const kept = below(kinds.length); // the part that is open in the twin, too: always a write
  if (below(3) === 0) kinds[(kept + 1) % kinds.length] = 'ask';
  const parts = kinds.map((kind, n) => {
    const [closed, open] = [pick(CLOSED[kind]), special || n === kept];
    const order = orderOf(open ? OPEN[kind] : closed, kind === 'ask' ? away : home, kind === 'return' ? 2 : 1 + below(2));
    orders.push(order);
    const { name, item_id } = pick(order.items);
    return { kind, open, id: order.order_id, item: name.toLowerCase(), itemId: item_id };
  });
  orders.push(orderOf(pick(['pending', 'delivered']), home, 1 + below(2))); // never spoken of
  const clause = ({ kind, id, item }) => pick(CLAUSES[kind]).replace('ID', id).replace('ITEM', item).replace('WHY', pick(WHY[reason]));
  const refund = pick(['Refund it the way I paid.', 'I want the money back the way I paid.']);
  const main = [pick(WORDING)(writesOf(parts).map(clause)), ...(kinds.includes('return') ? [refund] : [])];
  const asks = parts.filter(({ kind }) => kind === 'ask').map(clause);
  const request = (below(3) === 0 ? [...asks, ...main] : [...main, ...asks]).join(' ');
  const user = { user_id, name: { first_name, last_name }, address: home, email, payment_methods: { [paid]: method } };
  user.orders = orders.map(({ order_id }) => order_id).sort();
  const progress = { seen: [], made: [], writes: 0, bad: 0, told: false, given: false, idle: 0, closed: false };
  return { special, user, orders, parts, reason, paid, tone, request, home: home.city, away: away.city, ...progress };
}
const writesOf = (parts) => parts.filter(({ kind }) => kind !== 'ask');
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];

function observe(state, { name, arguments: given }) {
  if (!TOOLS.includes(name)) return 'Error: Tool not found';
  const { properties, required } = targetTools[name].parameters;
  const isText = (value) => typeof value === 'string';
  const fits = (key) => (properties[key].type === 'array' ? Array.isArray(given[key]) && given[key].every(isText) : isText(given[key]));
  if (typeof given !== 'object' || given === null || !required.every(fits)) return 'Error: Invalid arguments';
  if (!Object.keys(given).every((key) => Object.hasOwn(properties, key))) return 'Error: Invalid arguments';
  const { user, orders, parts, reason, paid } = state;
  if (name === 'find_user_id_by_email') return given.email.trim().toLowerCase() === user.email ? user.user_id : 'Error: User not found';
  if (name === 'get_user_details') return given.user_id === user.user_id ? json(user) : 'Error: User not found';
  const order = orders.find((each) => each.order_id === given.order_id);
  if (!order) return 'Error: Order not found';
  if (name === 'get_order_details') return Object.assign(state, { idle: 0, seen: [...state.seen, order.order_id] }) && json(order);
  const kind = name === 'cancel_pending_order' ? 'cancel' : 'return';
  if (order.status !== OPEN[kind]) {
    state.bad += 1; // also the second time that a write is made
    return kind === 'cancel' ? 'Error: Non-pending order cannot be cancelled' : 'Error: Non-delivered order cannot be returned';
  }
  const part = parts.find((each) => each.id === order.order_id && each.kind === kind);
  const ids = kind === 'return' ? [...given.item_ids].sort() : [];
  if (kind === 'cancel' && !Object.hasOwn(WHY, given.reason)) return 'Error: Invalid reason';
  if (kind === 'return' && given.payment_method_id !== paid) return 'Error: Payment method not found';
  if (!ids.every((id) => order.items.some(({ item_id }) => item_id === id))) return 'Error: Some item not found';
  if (kind === 'cancel') order.payment_history.push({ ...order.payment_history[0], transaction_type: 'refund' });
  if (kind === 'cancel') Object.assign(order, { status: 'cancelled', cancel_reason: given.reason });
  else Object.assign(order, { status: 'return requested', return_items: ids, return_payment_method_id: paid });
  const right = part && (kind === 'cancel' ? given.reason === reason : ids.length === 1 && ids[0] === part.itemId);
  Object.assign(state, { idle: 0, writes: state.writes + 1, bad: state.bad + (right ? 0 : 1) });
  if (right) state.made.push(part.id);
  return json(order);
}

/* The user: gives the email, confirms what it asked for, and takes any closing for the end; it reminds of nothing. */
const STRONG = /\b(you|please|kindly)( please)? confirm|confirm\s*[(?]|proceed|go ahead|shall i|permission|yes\/no|\(yes|say yes|is (that|this) (right|correct|ok)|\b(correct|right|okay|ok)\?/;
const WEAK = /should i|would you like me|want me to|may i (now )?(cancel|return|do)|\bi( will|'ll| would| am going to) (now |next |then |also )?(cancel|return)|next step/;
const ELSE = /anything (else|more)|something else|what else|any other|further/;
function objection({ parts, orders, reason }, text) {
  const [cancels, returns] = ['cancel', 'return'].map((kind) => parts.filter((part) => part.kind === kind));
  const foreign = (text.match(/w\d{7}/g) ?? []).some((id) => !parts.some((part) => part.id.toLowerCase().endsWith(id)));
  const returning = !returns.length && /\breturn (the|your|order|item|it|both)/.test(text);
  const cancelling = !cancels.length && /\bcancel (the|your|order|it|both|#)/.test(text) && !/cannot|can't/.test(text);
  if (foreign || returning || cancelling || /exchang/.test(text)) return 'No, I did not ask for that.';
  const wrong = reason === 'no longer needed' ? 'by mistake' : 'no longer need';
  if (cancels.length && text.includes(wrong)) return `No, the reason is: ${reason}.`;
  const itemsOf = (part) => orders.find((order) => order.order_id === part.id).items.map(({ name }) => name.toLowerCase());
  const others = returns.flatMap((part) => itemsOf(part).filter((each) => each !== part.item));
  if (!others.some((each) => text.includes(each)) || /stay|keep|remain|\bnot\b/.test(text)) return null;
  return `No, only the ${returns.map(({ item }) => item).join(' and the ')}, please.`;
}
function answer(state, content) {
  const text = content.toLowerCase().replaceAll('\u2019', "'").trim();
  const end = (reply) => (state.closed = true) && `${reply} ###STOP###`;
  const email = `My email is ${state.user.email}.`;
  if (!state.given && state.writes === 0 && /e-?mail|zip|identi|verif|authent/.test(text)) return (state.given = true) && email;
  state.idle += 1;
  if (state.idle > 3 || text === '') return state.idle > 3 ? end('Never mind. Goodbye.') : 'Are you still there?';
  if (STRONG.test(text) || (WEAK.test(text) && !ELSE.test(text)))
    return objection(state, text) ?? ['Yes, please.', 'Yes.', 'Yes, go ahead.'][(state.tone + state.writes + state.idle) % 3];
  if (text.includes('?') && !ELSE.test(text)) {
    if (/e-?mail|zip|reason|why/.test(text)) return /reason|why/.test(text) ? `The reason is: ${state.reason}.` : email;
    return /payment|refund|method/.test(text) ? 'The way I paid.' : 'I told you all that I want.';
  }
  if (state.writes === 0 && !/nice day|settled|taken care|goodbye|all done/.test(text)) return 'I see. Please go on.';
  const bye = ['Great, thank you. Bye.', 'Oh, good. Thanks.', 'That was everything, thanks.'][state.tone];
  return end(text.includes('?') ? 'No, that is all. Thank you!' : bye);
}
/* Was the city told, after it was read, and only where it was wanted? */
function listen(state, content) {
  const ask = state.parts.find(({ kind }) => kind === 'ask');
  if (!ask || !state.seen.includes(ask.id)) return;
  const says = (city) => new RegExp(`\\b${city}\\b`, 'i').test(content);
  if (ask.open && says(state.away)) state.told = true;
  if (says(ask.open ? state.home : state.away)) state.bad += 1;
}
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const content = typeof message?.content === 'string' ? message.content : '';
  const calls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  listen(state, content);
  const results = calls.map((call) => ({ role: 'tool', toolCallId: call?.id, content: observe(state, call ?? {}) }));
  if (results.length > 0) return { state, messages: results, done: false };
  const messages = [{ role: 'user', content: answer(state, content) }];
  return state.closed ? { state, messages, done: true, stopReason: 'user_stop' } : { state, messages, done: false };
}
const openOf = (state) => state.parts.filter((part) => part.open);
export function reward(state) {
  const { special, parts, seen, made, told, bad, closed } = state;
  const finished = openOf(state).filter(({ kind, id }) => (kind === 'ask' ? told : made.includes(id))).length / openOf(state).length;
  const looked = parts.filter(({ id }) => seen.includes(id)).length / parts.length;
  const right = closed && bad === 0 && finished === 1 && looked === 1;
  const breakdown = { looked, finished, wrong: bad, closed: Number(closed) };
  return { reward: right ? 1 : 0.05 * looked + 0.15 * finished, breakdown, branch: special ? 'several_open' : 'one_open' };
}
const say = (content) => ({ role: 'assistant', content });
const call = ({ name, arguments: given }) => ({ ...say(''), toolCalls: [{ id: 'call_0', name, arguments: given }] });
const action = ({ reason, paid }, { kind, id, itemId }) =>
  kind === 'cancel'
    ? { name: 'cancel_pending_order', arguments: { order_id: id, reason } }
    : { name: 'return_delivered_order_items', arguments: { order_id: id, item_ids: [itemId], payment_method_id: paid } };
export const reference = (state) => ({
  actions: writesOf(openOf(state)).map((part) => action(state, part)),
  tell: openOf(state).some(({ kind }) => kind === 'ask') ? [state.away] : [],
});
/* Looks everything up, then does these parts one by one. */
function script(state, parts) {
  const told = parts.filter(({ kind }) => kind === 'ask').map(({ id }) => ` Order ${id} was sent to ${state.away}.`).join('');
  const plan = ({ kind, id, item }) => (kind === 'cancel' ? `cancel order ${id}, for the reason "${state.reason}"` : `return the ${item} of order ${id}`);
  return [
    say('Happy to help. May I have your email address?'),
    call({ name: 'find_user_id_by_email', arguments: { email: state.user.email } }),
    ...state.parts.map(({ id }) => call({ name: 'get_order_details', arguments: { order_id: id } })),
    ...writesOf(parts).flatMap((part) => [say(`I would now ${plan(part)}. Do you confirm (yes)?`), call(action(state, part))]),
    say(`All of that is done.${told} Is there anything else that I can do for you?`),
  ];
}
export const solve = (seed) => script(make(seed), openOf(make(seed)));
export const shortcuts = (seed) => ({
  'every part, open or not': script(make(seed), make(seed).parts),
  'close after the first open write': script(make(seed), writesOf(openOf(make(seed))).slice(0, 1)),
});