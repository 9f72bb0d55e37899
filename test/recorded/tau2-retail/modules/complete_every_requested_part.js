const targetTools = {"cancel_pending_order":{"name":"cancel_pending_order","description":"Cancel a pending order. If the order is already processed or delivered,\n\nit cannot be cancelled. The agent needs to explain the cancellation detail\nand ask for explicit user confirmation (yes/no) to proceed. If the user confirms,\nthe order status will be changed to 'cancelled' and the payment will be refunded.\nThe refund will be added to the user's gift card balance immediately if the payment\nwas made using a gift card, otherwise the refund would take 5-7 business days to process.\nThe function returns the order details after the cancellation.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"reason":{"description":"The reason for cancellation, which should be either 'no longer needed' or 'ordered by mistake'.","title":"Reason","type":"string"}},"required":["order_id","reason"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}},"find_user_id_by_email":{"name":"find_user_id_by_email","description":"Find user id by email. If the user is not found, the function will return an error message.","parameters":{"properties":{"email":{"description":"The email of the user, such as 'something@example.com'.","title":"Email","type":"string"}},"required":["email"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_user_details":{"name":"get_user_details","description":"Get the details of a user, including their orders.","parameters":{"properties":{"user_id":{"description":"The user id, such as 'sara_doe_496'.","title":"User Id","type":"string"}},"required":["user_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"return_delivered_order_items":{"name":"return_delivered_order_items","description":"Return some items of a delivered order.\n\nThe order status will be changed to 'return requested'.\nThe agent needs to explain the return detail and ask for explicit user confirmation (yes/no) to proceed.\nThe user will receive follow-up email for how and where to return the item.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be returned, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'.\nThese can be looked up from the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `complete_every_requested_part`: the agent closes only when every part of the request is carried out or answered.
 * Even seed (special): the conditions of the request's other two parts hold, so after the first part both are still open.
 * Odd seed (twin): same user, orders and words, but the records say that the conditions do not hold: after the first part
 * nothing of the request is open, and going on is a wrong write or a wrong number. In both, the user asks a small question
 * together with the first yes; it stands between the first write and whatever is left.
 */
const policy = `# Retail agent policy
As a retail agent, you can help users:
- **cancel pending orders**
- **return delivered orders**
- **provide information about their own profile, orders, and related products**

- At the beginning of the conversation, you have to authenticate the user identity by locating their user id via email.
- Before taking any action that updates the database (cancel, return), you must list the action details and obtain explicit user confirmation (yes) to proceed.
- You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time. If you respond to the user, you should not make a tool call at the same time.
- The status of an order can be: **pending**, **processed**, **delivered**, or **cancelled**.
- An order can only be cancelled if its status is 'pending', and you should check its status before taking the action. The user needs to confirm the order id and the reason (either 'no longer needed' or 'ordered by mistake') for cancellation.
- An order can only be returned if its status is 'delivered', and you should check its status before taking the action. The user needs to confirm the order id and the list of items to be returned. The refund must go to the original payment method.`;
const TOOLS = 'find_user_id_by_email get_user_details get_order_details cancel_pending_order return_delivered_order_items'.split(' ');
const REASONS = ['no longer needed', 'ordered by mistake'];
const FIRST = 'Nadia Tobias Ingrid Marcus Priya Hugo Selma Dmitri Carmen Oscar Leila Bruno Amara Felix Noor Stefan'.split(' ');
const LAST = 'Okafor Lindgren Bianchi Novak Hughes Tanaka Petrov Weber Larsen Quinn Duarte Fischer Mendoza Abara'.split(' ');
const STREETS = ['Quarry Road', 'Juniper Way', 'Harbor Street', 'Mill Court', 'Orchard Row', 'Granite Drive', 'Ferry Lane'];
const CITIES = ['Boise ID 837', 'Tulsa OK 741', 'Omaha NE 681', 'Madison WI 537', 'Reno NV 895', 'Albany NY 122'];
const PRODUCTS = [
  'Rice Cooker|capacity|3 cups,6 cups,10 cups|finish|matte,chrome', 'Camping Tent|capacity|2-person,4-person,6-person|color|orange,olive',
  'Wall Clock|diameter|10 inch,12 inch,16 inch|frame|walnut,aluminum', 'Concert Ukulele|wood|koa,mahogany,spruce|strings|nylon,steel',
  'Fountain Pen|nib|fine,medium,broad|ink|cartridge,piston', 'Stand Mixer|bowl size|4 quart,5 quart,7 quart|color|cream,graphite',
  'Picture Frame|size|5x7,8x10,11x14|material|metal,acrylic', 'Snow Goggles|lens|amber,mirror,clear|fit|regular,wide',
  'Bird Feeder|style|tube,tray,house|mounting|pole,hook', 'Chess Board|size|12 inch,16 inch,20 inch|foldable|yes,no',
  'Shower Curtain|length|72 inch,84 inch|pattern|plain,striped,floral', 'Folding Chair|seat|canvas,mesh|color|navy,grey,sand',
];
const up = (text) => text[0].toUpperCase() + text.slice(1);
const WORDING = [
  (one, two, three, why, email) => `Hi, my email is ${email}. Please ${one}. Then ${two}, and ${three}. ${why}`,
  (one, two, three, why, email) => `Hello, ${email} here. I would like you to ${three}, and to ${two}. But first ${one}. ${why}`,
  (one, two, three, why, email) => `I need help. ${up(two)}, ${one}, and ${three}. ${why} You can find me under ${email}.`,
  (one, two, three, why, email) => `Could you ${one}? Also ${three}. And ${two}. ${why} My email is ${email}.`,
];
const SIDE = ['What did the ITEM in ORDER cost, by the way?', 'Oh, and how much was the ITEM in ORDER?', 'What did I pay for the ITEM in ORDER?'];
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
/* As this target writes JSON: a space after commas and colons, amounts always with a decimal point. */
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (typeof value === 'number') return Number.isInteger(value) ? `${value}.0` : String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};
export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 20 });
export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const digits = (count) => Array.from({ length: count }, (_, n) => (n ? below(10) : 1 + below(9))).join('');
  const [first_name, last_name, [city, region, area]] = [pick(FIRST), pick(LAST), pick(CITIES).split(' ')];
  const user_id = `${first_name}_${last_name}_${digits(4)}`.toLowerCase();
  const email = `${first_name}.${last_name}${digits(4)}@example.com`.toLowerCase();
  const [address1, address2] = [`${100 + below(800)} ${pick(STREETS)}`, `Suite ${100 + below(900)}`];
  const address = { address1, address2, city, country: 'USA', state: region, zip: `${area}${digits(2)}` };
  const [paypal, card] = [`paypal_${digits(7)}`, `credit_card_${digits(7)}`];
  const payment_methods = {
    [paypal]: { source: 'paypal', id: paypal },
    [card]: { source: 'credit_card', id: card, brand: pick(['visa', 'mastercard']), last_four: digits(4) },
  };
  const [returns, tracks] = [below(2) === 0, below(2) === 0]; // the first part is a return, the third a tracking number
  const gone = [pick(['processed', 'delivered']), pick(['processed', 'delivered'])];
  const third = tracks ? ['processed', 'pending'] : ['pending', gone[1]];
  const statuses = [returns ? 'delivered' : 'pending', special ? 'pending' : gone[0], special ? third[0] : third[1]];
  const trackings = [digits(12), digits(12), digits(12)];
  const [products, slots] = [[...PRODUCTS], [0, 1, 2, 3, 4, 5, 6]];
  const itemOf = () => {
    const [name, key, values, key2, values2] = draw(below, products).split('|');
    const price = (2000 + 7000 * draw(below, slots) + below(6900)) / 100; // no two prices are the same
    const options = { [key]: pick(values.split(',')), [key2]: pick(values2.split(',')) };
    return { name, product_id: digits(10), item_id: digits(10), price, options };
  };
  const none = { exchange_items: null, exchange_new_items: null, exchange_payment_method_id: null, exchange_price_difference: null };
  const orders = [3, 2, 2].map((count, n) => {
    const [order_id, items, status] = [`#W${digits(7)}`, Array.from({ length: count }, itemOf), statuses[n]];
    const amount = Math.round(items.reduce((sum, { price }) => sum + price * 100, 0)) / 100;
    const sent = [{ tracking_id: [trackings[n]], item_ids: items.map((item) => item.item_id) }];
    const fulfillments = status === 'pending' ? [] : sent;
    const payment_history = [{ transaction_type: 'payment', amount, payment_method_id: pick([paypal, card]) }];
    const end = { cancel_reason: null, ...none, return_items: null, return_payment_method_id: null };
    return { order_id, user_id, address, items, status, fulfillments, payment_history, ...end };
  });
  const ids = orders.map((order) => order.order_id);
  const [left, listed, reason] = [[...orders[0].items], [...ids], pick(REASONS)];
  const [item, other, decoy] = [draw(below, left), draw(below, left), draw(below, left)];
  const cancel = (n) => ({ name: 'cancel_pending_order', arguments: { order_id: ids[n], reason } });
  const { payment_method_id } = orders[0].payment_history[0];
  const back = { name: 'return_delivered_order_items', arguments: { order_id: ids[0], item_ids: [item.item_id], payment_method_id } };
  const all = [returns ? back : cancel(0), cancel(1), ...(tracks ? [] : [cancel(2)])];
  const refund = '(refund to the payment method I used)';
  const one = returns ? `return the ${item.name.toLowerCase()} from ${ids[0]} ${refund}` : `cancel ${ids[0]}`;
  const [two, ask] = [`cancel ${ids[1]} if it is still pending`, `tell me the tracking number of ${ids[2]} if it has been processed already`];
  const three = tracks ? ask : `cancel ${ids[2]} if that one is still pending`;
  const request = pick(WORDING)(one, two, three, `If you need a reason for cancelling: ${reason}.`, email);
  const side = pick(SIDE).replace('ITEM', other.name.toLowerCase()).replace('ORDER', ids[0]);
  const listing = [draw(below, listed), draw(below, listed), draw(below, listed)];
  const user = { user_id, name: { first_name, last_name }, address, email, payment_methods, orders: listing };
  const [wanted, guess] = [special ? all : all.slice(0, 1), tracks ? trackings[2] : '']; // guess: told by who always goes on
  const facts = { item: item.name, other: other.name, price: other.price, decoy: decoy.price, guess, track: special ? guess : '' };
  const talk = { named: [], agreed: [], asked: false, idle: 0, done: false, told: { price: 0, track: 0, wrong: 0 } };
  return { special, user, orders, reason, request, side, all, wanted, ...facts, found: false, seen: [], writes: [], refused: 0, ...talk };
}
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];

function observe(state, { name, arguments: raw }) {
  if (!TOOLS.includes(name)) return 'Error: Tool not found';
  const given = raw && typeof raw === 'object' && !Array.isArray(raw) ? raw : {};
  const fields = targetTools[name].parameters.required;
  const strings = (list) => Array.isArray(list) && list.every((each) => typeof each === 'string');
  const bad = fields.find((field) => !(field === 'item_ids' ? strings(given[field]) : typeof given[field] === 'string'));
  if (bad) return `Error: ${name}() missing or invalid argument: '${bad}'`;
  if (Object.keys(given).length !== fields.length) return `Error: ${name}() got an unexpected keyword argument`;
  const { user, orders } = state;
  if (name === 'find_user_id_by_email') {
    if (given.email.trim().toLowerCase() !== user.email) return 'Error: User not found';
    state.found = true;
    return user.user_id;
  }
  if (name === 'get_user_details') return given.user_id === user.user_id ? json(user) : 'Error: User not found';
  const order = orders.find((each) => each.order_id === given.order_id);
  if (!order) return 'Error: Order not found';
  if (name === 'get_order_details') {
    if (!state.seen.includes(order.order_id)) state.seen.push(order.order_id);
    return json(order);
  }
  const [cancels, paid] = [name === 'cancel_pending_order', order.payment_history[0]];
  if (order.status !== (cancels ? 'pending' : 'delivered')) {
    state.refused += 1;
    return cancels ? 'Error: Non-pending order cannot be cancelled' : 'Error: Non-delivered order cannot be returned';
  }
  if (cancels) {
    if (!REASONS.includes(given.reason)) return 'Error: Invalid reason';
    Object.assign(order, { status: 'cancelled', cancel_reason: given.reason });
    order.payment_history.push({ ...paid, transaction_type: 'refund' });
  } else {
    const { item_ids: items, payment_method_id: method } = given;
    if (!Object.keys(user.payment_methods).includes(method)) return 'Error: Payment method not found';
    if (method !== paid.payment_method_id) return 'Error: Payment method should be the original payment method';
    const known = items.every((id) => order.items.some((each) => each.item_id === id));
    if (!known || items.length === 0 || new Set(items).size < items.length) return 'Error: Some item not found';
    Object.assign(order, { status: 'return requested', return_items: [...items].sort(), return_payment_method_id: method });
  }
  state.writes.push({ name, arguments: given, agreed: state.agreed.includes(order.order_id) });
  return json(order);
}

const ELSE = /\belse\b|anything (more|further)|\b(any|other|further|additional|more) (help|assist|question|request)|you further/;
const SURE = /confirm|proceed|continue|\bgo on\b|go ahead|shall i|should i|\byes\b/;
const ASK = /\?|please (confirm|reply|respond|say)|your (explicit )?confirmation|yes\/no|\(yes|one moment|let me (now|proceed|check|look)/;
const WILL = /\bi('ll| will| would|'m going to| am going to)( now| then| also| next)? (cancel|return|proceed|submit|go|check|look|start)/;
function listen(state, text) {
  const tracks = text.match(/\b\d{12}\b/g) ?? [];
  if (tracks.includes(state.track)) state.told.track = 1;
  state.told.wrong += tracks.filter((each) => each !== state.track).length;
  const numbers = (text.replace(/(\d),(?=\d{3})/g, '$1').match(/\d+(\.\d+)?/g) ?? []).map(Number);
  if (state.asked && numbers.includes(state.price)) state.told.price = 1;
  if (state.asked && numbers.includes(state.decoy)) state.told.wrong += 1;
}
/* The user: says yes to what it wants (the first time with a question), no to other actions, and does not keep count. */
function reply(state, content) {
  const text = content.slice(0, 20000).toLowerCase().replace(/[’‘`]/g, "'");
  listen(state, text);
  const kept = text.split(/(?<=[.!?])\s+|\n+/).filter((part) => !ELSE.test(part) || SURE.test(part));
  const asking = kept.filter((part) => ASK.test(part) || WILL.test(part));
  const wordsOf = ({ order_id, items }) => [order_id.slice(2), ...items.map((item) => item.name.toLowerCase())];
  const spoken = state.orders.filter((order) => wordsOf(order).some((word) => text.includes(word))).map((order) => order.order_id);
  const named = spoken.filter((id) => state.seen.includes(id));
  const about = named.length > 0 || !asking.some((part) => SURE.test(part)) ? named : state.named;
  if (named.length > 0) state.named = named;
  const open = about.filter((id) => !state.writes.some((each) => each.arguments.order_id === id));
  const wished = open.filter((id) => state.wanted.some((each) => each.arguments.order_id === id));
  const info = asking.some((part) => part.includes('?') && /\b(which|what|how|provide)\b/.test(part) && !SURE.test(part));
  if (asking.length > 0 && !info && wished.length > 0) {
    const fresh = wished.filter((id) => !state.agreed.includes(id));
    const answer = state.asked ? 'Yes, please.' : `Yes, go ahead. ${state.side}`;
    state.idle += fresh.length === 0 ? 1 : 0;
    state.agreed.push(...fresh);
    state.asked = true;
    if (state.idle <= 3) return answer;
  } else if ((state.idle += 1) <= 3) {
    const known = `my email is ${state.user.email}, refunds go to the payment method I used, the reason for cancelling: ${state.reason}`;
    if (info || (asking.length > 0 && state.writes.length + open.length === 0)) return `As I wrote: ${known}.`;
    const acts = asking.some((part) => /cancel|return|exchange|refund/.test(part));
    if (open.length > 0 && acts) return 'No, leave that one as it is.';
    if (state.writes.length === 0) return 'All right.';
    if (text.trim() === '') return 'Hello? Are you still there?';
  }
  state.done = true;
  return text.includes('?') ? 'No, that is all. Thank you! ###STOP###' : 'Great, thank you. Bye. ###STOP###';
}

export function step(before, { content, toolCalls }) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  if (Array.isArray(toolCalls) && toolCalls.length > 0) {
    const messages = toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) }));
    return { state, done: false, messages };
  }
  const messages = [{ role: 'user', content: reply(state, typeof content === 'string' ? content : '') }];
  return state.done ? { state, done: true, messages, stopReason: 'user_stop' } : { state, done: false, messages };
}
const keyOf = ({ name, arguments: { order_id, item_ids = [], payment_method_id, reason } }) =>
  JSON.stringify([name, order_id, [...item_ids].sort(), payment_method_id, reason]);
export function reward({ special, wanted, writes, refused, found, seen, told, track, done }) {
  const hits = wanted.filter((part) => writes.some((each) => each.agreed && keyOf(each) === keyOf(part))).length;
  const looked = found && seen.length === 3;
  const exact = hits === wanted.length && writes.length === wanted.length && refused === 0;
  const answered = told.price === 1 && (track === '' || told.track === 1) && told.wrong === 0;
  const partial = (looked ? 0.05 : 0) + (0.15 * hits) / wanted.length + 0.05 * told.price + 0.05 * told.track;
  const breakdown = { looked: Number(looked), parts: hits / wanted.length, exact: Number(exact), refused, ...told };
  return { reward: done && looked && exact && answered ? 1 : partial, breakdown, branch: special ? 'parts_open' : 'nothing_open' };
}
export const reference = ({ wanted, price, track }) => ({ actions: wanted, tell: [price.toFixed(2), ...(track ? [track] : [])] });
const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const say = (content) => ({ role: 'assistant', content });
function script(state, parts, track) {
  const ids = state.orders.map((order) => order.order_id);
  const plan = parts.map(({ arguments: { order_id, reason, payment_method_id: method } }) =>
    reason ? `cancel ${order_id}, reason "${reason}"` : `return the ${state.item} of ${order_id}, refund to ${method}`);
  const tracking = track ? ` The tracking number of ${ids[2]} is ${track}.` : '';
  return [
    call('find_user_id_by_email', { email: state.user.email }),
    ...ids.map((order_id) => call('get_order_details', { order_id })),
    say(`With your permission I will ${plan.join('; ')}. Do you confirm (yes)?`),
    ...parts.map((part) => call(part.name, part.arguments)),
    say(`Done. The ${state.other} cost $${state.price.toFixed(2)}.${tracking} Is there anything else that I can do for you?`),
  ];
}
const solution = (state) => script(state, state.wanted, state.track);
export const solve = (seed) => solution(make(seed));
export const shortcuts = (seed) => {
  const state = make(seed);
  return { 'every part': script(state, state.all, state.guess), 'first part only': script(state, state.all.slice(0, 1), '') };
};
export const hint = () =>
  'The customer wants several things, some of them only under a condition, and may add a question on the way. Before you say that everything is settled, go back over all that was asked, from the first message on: what applies and is still open has to be done or answered, and what does not apply is left alone.';