const targetTools = {"calculate":{"name":"calculate","description":"Calculate the result of a mathematical expression.","parameters":{"properties":{"expression":{"description":"The mathematical expression to calculate, such as '2 + 2'. The expression can contain numbers, operators (+, -, *, /), parentheses, and spaces.","title":"Expression","type":"string"}},"required":["expression"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"cancel_pending_order":{"name":"cancel_pending_order","description":"Cancel a pending order. If the order is already processed or delivered,\n\nit cannot be cancelled. The agent needs to explain the cancellation detail\nand ask for explicit user confirmation (yes/no) to proceed. If the user confirms,\nthe order status will be changed to 'cancelled' and the payment will be refunded.\nThe refund will be added to the user's gift card balance immediately if the payment\nwas made using a gift card, otherwise the refund would take 5-7 business days to process.\nThe function returns the order details after the cancellation.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"reason":{"description":"The reason for cancellation, which should be either 'no longer needed' or 'ordered by mistake'.","title":"Reason","type":"string"}},"required":["order_id","reason"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}},"find_user_id_by_email":{"name":"find_user_id_by_email","description":"Find user id by email. If the user is not found, the function will return an error message.","parameters":{"properties":{"email":{"description":"The email of the user, such as 'something@example.com'.","title":"Email","type":"string"}},"required":["email"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"return_delivered_order_items":{"name":"return_delivered_order_items","description":"Return some items of a delivered order.\n\nThe order status will be changed to 'return requested'.\nThe agent needs to explain the return detail and ask for explicit user confirmation (yes/no) to proceed.\nThe user will receive follow-up email for how and where to return the item.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be returned, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'.\nThese can be looked up from the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `state_figures_exactly`: an amount is carried over digit by digit, or worked out visibly, before it is told.
 * Even seed (special, 'worked_out'): the order is delivered and a part of it is returned; the refund and what stays
 * spent stand nowhere and are worked out from the items' prices. Odd seed (twin, 'read_off'): the same request and
 * records, but the order is pending and cancelled as a whole; the amount stands in the payment history, a sum is false.
 */
const policy = `# Retail agent policy
As a retail agent, you can help users **cancel pending orders**, **return delivered orders**, and provide information about their own orders.
- At the beginning of the conversation, you have to authenticate the user identity by locating their user id via email.
- Before taking any action that updates the database (cancel, return), you must list the action details and obtain explicit user confirmation (yes) to proceed.
- You should not make up any information or knowledge not provided by the user or the tools.
- You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time.

## Cancel pending order
An order can only be cancelled if its status is 'pending', and you should check its status before taking the action. The reason is either 'no longer needed' or 'ordered by mistake'. After user confirmation, the order status will be changed to 'cancelled', and the total will be refunded via the original payment method.

## Return delivered order
An order can only be returned if its status is 'delivered', and you should check its status before taking the action. Some or all of its items can be returned; their prices are refunded to the original payment method. After user confirmation, the order status will be changed to 'return requested'.`;
const TOOLS = ['find_user_id_by_email', 'get_order_details', 'calculate', 'cancel_pending_order', 'return_delivered_order_items'].map((name) => targetTools[name]);
const FIRST = ['Tomasz', 'Ingrid', 'Kwame', 'Leonie', 'Bashir', 'Nadia', 'Soren', 'Paloma', 'Ruben', 'Hanneke', 'Idris', 'Yara'];
const LAST = ['Lindqvist', 'Okafor', 'Brandt', 'Moreau', 'Petrov', 'Haddad', 'Whitlock', 'Nakagawa', 'Ferreira', 'Dunmore', 'Osei'];
const STREETS = ['Juniper Road', 'Harbor Street', 'Willow Court', 'Mill Row', 'Quarry Avenue', 'Lantern Way', 'Orchard Hill'];
const CITIES = [['Portland', 'OR', '972'], ['Boise', 'ID', '837'], ['Tulsa', 'OK', '741'], ['Madison', 'WI', '537'], ['Omaha', 'NE', '681']];
const KINDS = [
  ['Camping Stove', { fuel: ['propane', 'butane'], burners: ['one', 'two'] }], ['Rain Jacket', { size: ['S', 'M', 'L'], color: ['navy', 'olive'] }],
  ['Wall Clock', { shape: ['round', 'square'], frame: ['oak', 'steel'] }], ['Rice Cooker', { capacity: ['1L', '2L', '3L'], color: ['cream', 'black'] }],
  ['Sleeping Bag', { season: ['summer', 'winter'], filling: ['down', 'fleece'] }], ['Bread Maker', { programs: ['12', '18'], finish: ['matte', 'brushed'] }],
  ['Ceiling Fan', { blades: ['3', '4', '5'], light: ['yes', 'no'] }], ['Picnic Basket', { persons: ['2', '4', '6'], weave: ['willow', 'bamboo'] }],
  ['Ski Goggles', { lens: ['mirrored', 'clear'], strap: ['grey', 'teal'] }], ['Sewing Machine', { type: ['mechanical', 'computerized'], stitches: ['20', '60'] }],
  ['Door Mat', { size: ['small', 'large'], fibre: ['coir', 'rubber'] }], ['Fruit Press', { drive: ['manual', 'electric'], color: ['red', 'silver'] }],
];
const WORDING = [
  (who, email, id, kept) => `Hi, I am ${who}, email ${email}. From my order ${id} I only want to keep ${kept} and send everything else back, money to where I paid from. If it has not been delivered yet, cancel the whole order instead, it is no longer needed. Tell me to the cent what I get back and what I have then spent on that order.`,
  (who, email, id, kept) => `Everything in order ${id} except ${kept} should be returned, with the refund to the original payment. In case it is still pending, just cancel all of it (no longer needed). How much exactly do I get back, and how much have I then spent on the order? My email is ${email}.`,
  (who, email, id, kept) => `I'm ${who} (${email}). Order ${id}: return it all, apart from ${kept}, refund the way I paid. Not delivered yet? Then cancel it completely, no longer needed. I also need two exact amounts for my bookkeeping: what comes back, and what the order costs me in the end.`,
  (who, email, id, kept) => `My email is ${email}. I bought too much in order ${id}. If it was delivered, I return the lot but for ${kept}; if it is pending, cancel the entire order because it is no longer needed. The money goes back where it came from. What do I get back, and what will I have spent on it then? To the cent, please.`,
];
const YES = ['Yes, please do that.', 'Yes, do it.', 'Yes, correct.'];
const BYE = ['Good, that was all I wanted. Bye! ###STOP###', 'Noted, thanks. Goodbye. ###STOP###', 'Thanks for the help, bye. ###STOP###'];

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
const cents = (amount) => Math.round(amount * 100);
const sum = (items) => items.reduce((all, item) => all + cents(item.price), 0);
const money = (amount) => `$${(amount / 100).toFixed(2)}`;
const idsOf = (items) => items.map((item) => item.item_id);
const listed = (items) => items.map((item) => `the ${item.name.toLowerCase()}`).join(', ').replace(/, ([^,]+)$/, ' and $1');
/* As the target writes JSON: a space after commas and colons, every number with a decimal point. */
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (typeof value === 'number') return Number.isInteger(value) ? `${value}.0` : `${value}`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};

export const describe = () => ({ policy, tools: TOOLS, maxSteps: 14 });
export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (from) => from[below(from.length)];
  const long = () => String(1000000000 + below(3000000000));
  const [first, last] = [pick(FIRST), pick(LAST)];
  const userId = `${first}_${last}_${1000 + below(9000)}`.toLowerCase();
  const email = `${first}.${last}${1000 + below(9000)}@example.com`.toLowerCase();
  const id = `#W${1000000 + below(9000000)}`;
  const pay = `${pick(['credit_card', 'paypal'])}_${1000000 + below(9000000)}`;
  const [address1, address2] = [`${100 + below(900)} ${pick(STREETS)}`, `Suite ${100 + below(900)}`];
  const [city, region, zip] = pick(CITIES);
  const kinds = [...KINDS];
  const items = Array.from({ length: 7 + below(2) }, () => {
    const [name, options] = draw(below, kinds);
    const chosen = Object.fromEntries(Object.entries(options).map(([key, values]) => [key, pick(values)]));
    return { name, product_id: long(), item_id: long(), price: (2000 + below(78000)) / 100, options: chosen };
  });
  const back = [...items];
  const kept = Array.from({ length: items.length - 5 }, () => draw(below, back)); // five items go back
  const shipped = [{ tracking_id: [String(100000000000 + below(4000000000))], item_ids: idsOf(items) }];
  const order = {
    order_id: id, user_id: userId, address: { address1, address2, city, country: 'USA', state: region, zip: `${zip}${10 + below(90)}` },
    items, status: special ? 'delivered' : 'pending', fulfillments: special ? shipped : [],
    payment_history: [{ transaction_type: 'payment', amount: sum(items) / 100, payment_method_id: pay }],
    cancel_reason: null, exchange_items: null, exchange_new_items: null, exchange_payment_method_id: null,
    exchange_price_difference: null, return_items: null, return_payment_method_id: null,
  };
  const request = pick(WORDING)(`${first} ${last}`, email, id, listed(kept));
  const world = { special, email, userId, pay, order, back, kept, request, yes: pick(YES), bye: pick(BYE) };
  const amounts = { total: sum(items), refund: sum(back), spent: sum(kept), prices: items.map((item) => cents(item.price)) };
  const course = { seen: false, written: false, right: false, faults: 0, told: [], wrong: 0, turns: 0, asked: false, done: false };
  return { ...world, ...amounts, ...course };
}
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];
const APPLY = { '+': (a, b) => a + b, '-': (a, b) => a - b, '*': (a, b) => a * b, '/': (a, b) => a / b };
function calculate(text) {
  if (!/^[0-9+\-*/(). ]{1,300}$/.test(text)) return 'Error: Invalid characters in expression';
  const tokens = text.match(/\d+\.?\d*|\.\d+|[-+*/()]/g) ?? [];
  let at = 0;
  const atom = () => {
    const token = tokens[at++];
    if (token === '-') return -atom();
    if (token !== '(') return Number(token); // NaN for an operator, a bracket, or nothing
    const inner = terms();
    return tokens[at++] === ')' ? inner : NaN;
  };
  const chain = (next, signs) => {
    let value = next();
    while (signs.includes(tokens[at])) value = APPLY[tokens[at++]](value, next());
    return value;
  };
  const factors = () => chain(atom, ['*', '/']);
  const terms = () => chain(factors, ['+', '-']);
  const value = Math.round(terms() * 100) / 100;
  return at < tokens.length || !Number.isFinite(value) ? 'Error: invalid syntax' : json(value);
}
function observe(state, call) {
  const tool = TOOLS.find((each) => each.name === call.name);
  if (!tool) return 'Error: Tool not found';
  const given = call.arguments && typeof call.arguments === 'object' ? call.arguments : {};
  const { properties, required } = tool.parameters;
  const texts = (value) => Array.isArray(value) && value.every((one) => typeof one === 'string');
  const bad = required.find((field) => !(properties[field].type === 'array' ? texts(given[field]) : typeof given[field] === 'string'));
  if (bad) return `Error: ${tool.name}() missing or invalid argument: '${bad}'`;
  if (Object.keys(given).some((field) => !required.includes(field))) return `Error: ${tool.name}() got an unexpected keyword argument`;
  if (tool.name === 'calculate') return calculate(given.expression);
  if (tool.name === 'find_user_id_by_email') return given.email.toLowerCase() === state.email ? state.userId : 'Error: User not found';
  const { order, pay } = state;
  if (given.order_id !== order.order_id) return 'Error: Order not found';
  state.seen ||= tool.name === 'get_order_details';
  if (tool.name === 'get_order_details') return json(order);
  const cancels = tool.name === 'cancel_pending_order';
  if (order.status !== (cancels ? 'pending' : 'delivered')) {
    state.faults += 1; // a write that the status forbids, or a second one
    return cancels ? 'Error: Non-pending order cannot be cancelled' : 'Error: Non-delivered order cannot be returned';
  }
  if (cancels) {
    if (given.reason !== 'no longer needed' && given.reason !== 'ordered by mistake') return 'Error: Invalid reason';
    Object.assign(order, { status: 'cancelled', cancel_reason: given.reason });
    order.payment_history.push({ transaction_type: 'refund', amount: state.total / 100, payment_method_id: pay });
    state.right = state.seen && given.reason === 'no longer needed';
  } else {
    const ids = [...given.item_ids].sort();
    if (given.payment_method_id !== pay) return 'Error: Payment method not found';
    const known = ids.every((id, n) => id !== ids[n - 1] && idsOf(order.items).includes(id));
    if (!known || ids.length === 0) return 'Error: Some item not found';
    Object.assign(order, { status: 'return requested', return_items: ids, return_payment_method_id: pay });
    state.right = state.seen && ids.join() === idsOf(state.back).sort().join();
  }
  state.written = true;
  return json(order);
}
const figures = (state) => (state.special ? [state.refund, state.spent] : [state.total]);
const sums = (state) => state.told.filter((each) => figures(state).includes(each) || !state.prices.includes(each)); // no single prices
/* Notes the amounts in a text. Workings, single prices, zero, and 'you paid ...' are no false claims. */
function listen(state, text) {
  const plain = text.slice(0, 20000).replace(/[*`\\]/g, '');
  for (const match of plain.matchAll(/\$\s?\d[\d,]{0,11}(?:\.\d{1,6})?|\d[\d,]{0,11}\.\d{1,6}/g)) {
    const [amount, end] = [cents(Number(match[0].replace(/[^\d.]/g, ''))), match.index + match[0].length];
    const [before, after] = [plain.slice(Math.max(0, match.index - 80), match.index), plain.slice(end, end + 30)];
    const clause = before.split(/[.!?;,]\s|\n/).pop().toLowerCase();
    const working = /[+−–-]\s*$|\d\)?\s*=\s*$/.test(before) || /^[\s,;)]*[+=]|^[ \t]*[−–-]/.test(after);
    const named = /paid|payment|charged|order (?:total|value|amount)|out of|original/.test(clause) && !/refund|back/.test(clause);
    const paid = amount === state.total && (named || /^ (?:that )?you paid/.test(after));
    const known = [0, ...state.prices, ...figures(state)].includes(amount);
    if (!working && !paid && !known) state.wrong += 1;
    if (!state.told.includes(amount) && state.told.length < 60) state.told.push(amount);
  }
}
/* The user: answers, confirms what it wants, asks once for the amounts if they were not told, says goodbye. */
function reply(state, text) {
  const low = text.slice(0, 20000).toLowerCase();
  const wish = `If ${state.order.order_id} was delivered, everything but ${listed(state.kept)} goes back, money to where I paid from. If it was not, the whole order is to be cancelled, no longer needed.`;
  state.turns += 1;
  if (state.written && !state.asked && sums(state).length < 2 && !/nothing|zero/.test(low)) {
    state.asked = true;
    return 'And the two amounts, to the cent: what do I get back, and what have I then spent on the order?';
  }
  state.done = state.written || state.turns > 4;
  if (state.done) return state.bye;
  if (!/\?|please confirm|yes\/no|let me know/.test(low)) return 'All right, please take care of it.';
  if (!state.seen && /e-?mail|zip|verif|authenticat|identity/.test(low)) return `My email is ${state.email}.`;
  if (!/confirm|yes|proceed|go ahead|shall i|should i|would you like|do you want|correct|right|okay/.test(low)) return wish;
  const other = state.special ? /cancel/.test(low) && !/return|send/.test(low) : /return/.test(low) && !/cancel/.test(low);
  return other ? `No. ${wish}` : state.yes;
}

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  if (calls.length > 0)
    return { messages: calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })), state, done: false };
  const text = typeof message.content === 'string' ? message.content : '';
  listen(state, text);
  const messages = [{ role: 'user', content: reply(state, text) }];
  return state.done ? { state, done: true, messages, stopReason: 'user_stop' } : { state, done: false, messages };
}
export function reward(state) {
  const { special, seen, right, faults, told, wrong, done } = state;
  const hits = figures(state).filter((each) => told.includes(each)).length / figures(state).length;
  const honest = wrong === 0 && sums(state).length <= 12; // telling many amounts does not pay
  const partial = (seen ? 0.05 + 0.15 * hits : 0) + (right ? 0.1 : 0);
  return {
    reward: done && right && faults === 0 && hits === 1 && honest ? 1 : partial,
    branch: special ? 'worked_out' : 'read_off',
    breakdown: { seen: Number(seen), written: Number(right), faults, figures: hits, wrong },
  };
}

const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const say = (content) => ({ role: 'assistant', content });
const tell = (refund, spent) => say(`That is done. You get ${money(refund)} back, and you have spent ${money(spent)} on the order.`);
const added = (items) => call('calculate', { expression: items.map((item) => item.price.toFixed(2)).join(' + ') });
const writeOf = ({ special, order: { order_id }, back, pay }) =>
  special ? { name: 'return_delivered_order_items', arguments: { order_id, item_ids: idsOf(back), payment_method_id: pay } }
  : { name: 'cancel_pending_order', arguments: { order_id, reason: 'no longer needed' } };

export const reference = (state) => ({ actions: [writeOf(state)], tell: figures(state).map(money) });
/* The look-ups, the confirmation and the write that are right for this state; then what is handed in. */
function script(state, ...rest) {
  const { special, order: { order_id }, email, back, pay } = state;
  const plan = special
    ? `Order ${order_id} was delivered. I would return ${listed(back)}, with the refund to ${pay}.`
    : `Order ${order_id} is still pending, so I would cancel the whole of it, for the reason "no longer needed".`;
  const write = writeOf(state);
  const look = [call('find_user_id_by_email', { email }), call('get_order_details', { order_id })];
  return [...look, say(`${plan} Do you confirm this (yes/no)?`), call(write.name, write.arguments), ...rest];
}
export function solve(seed) {
  const state = make(seed);
  if (!state.special) return script(state, tell(state.total, 0));
  return script(state, added(state.back), added(state.kept), tell(state.refund, state.spent));
}
export function shortcuts(seed) {
  const [state, { total, refund, spent }] = [make(seed), make(seed)];
  return {
    'always add up': script(state, added(state.back), tell(refund, spent)),
    'always tell the printed total': script(state, tell(total, 0)),
    'tell every candidate': script(state, say(`You get ${money(total)} or ${money(refund)} back and have spent ${money(spent)}.`)),
    'always cancel': script({ ...state, special: false }, tell(total, 0)),
  };
}
export const hint = () => 'The amount that the user asks for does not always stand in the record, and which amount it is depends on what is really done in the end. If it stands there, carry it over digit by digit. If not, work it out from the single prices in a step that can be seen, never in your head, and hold the result against its source before you tell it.';