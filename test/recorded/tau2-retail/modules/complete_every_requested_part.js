const targetTools = {"cancel_pending_order":{"name":"cancel_pending_order","description":"Cancel a pending order. If the order is already processed or delivered,\n\nit cannot be cancelled. The agent needs to explain the cancellation detail\nand ask for explicit user confirmation (yes/no) to proceed. If the user confirms,\nthe order status will be changed to 'cancelled' and the payment will be refunded.\nThe refund will be added to the user's gift card balance immediately if the payment\nwas made using a gift card, otherwise the refund would take 5-7 business days to process.\nThe function returns the order details after the cancellation.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"reason":{"description":"The reason for cancellation, which should be either 'no longer needed' or 'ordered by mistake'.","title":"Reason","type":"string"}},"required":["order_id","reason"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}},"find_user_id_by_name_zip":{"name":"find_user_id_by_name_zip","description":"Find user id by first name, last name, and zip code. If the user is not found, the function\n\nwill return an error message. By default, find user id by email, and only call this function\nif the user is not found by email or cannot remember email.","parameters":{"properties":{"first_name":{"description":"The first name of the customer, such as 'John'.","title":"First Name","type":"string"},"last_name":{"description":"The last name of the customer, such as 'Doe'.","title":"Last Name","type":"string"},"zip":{"description":"The zip code of the customer, such as '12345'.","title":"Zip","type":"string"}},"required":["first_name","last_name","zip"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_user_details":{"name":"get_user_details","description":"Get the details of a user, including their orders.","parameters":{"properties":{"user_id":{"description":"The user id, such as 'sara_doe_496'.","title":"User Id","type":"string"}},"required":["user_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"return_delivered_order_items":{"name":"return_delivered_order_items","description":"Return some items of a delivered order.\n\nThe order status will be changed to 'return requested'.\nThe agent needs to explain the return detail and ask for explicit user confirmation (yes/no) to proceed.\nThe user will receive follow-up email for how and where to return the item.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be returned, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'.\nThese can be looked up from the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `complete_every_requested_part`: the conversation is closed only when every part of the request that applies is done.
 * Even seed (parts_left): after the first change another part is open: a second order to cancel or return, or a tracking number.
 * Odd seed (one_part): same message and records, but by its status the second order's part does not apply, and going on is wrong.
 */
const policy = [
  '# Retail agent policy',
  'As a retail agent, you can help users cancel pending orders, return delivered orders, and provide information about their own profile and orders.',
  'At the beginning of the conversation, you have to authenticate the user identity by locating their user id via name + zip code. You can only help one user per conversation (but you can handle multiple requests from the same user).',
  'Before taking any action that updates the database (cancel, return), you must list the action details and obtain explicit user confirmation (yes) to proceed. You should not make up any information not provided by the user or the tools.',
  'You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time.',
  "The status of an order can be: pending, processed, delivered, or cancelled. An order can only be cancelled if its status is 'pending', and only be returned if its status is 'delivered', and you should check its status before taking the action.",
  "To cancel, the user needs to confirm the order id and the reason (either 'no longer needed' or 'ordered by mistake'). To return, the user needs to confirm the order id and the list of items; the refund goes to the original payment method.",
].join('\n\n');
const TOOLS = ['find_user_id_by_name_zip', 'get_user_details', 'get_order_details', 'cancel_pending_order', 'return_delivered_order_items'];
const FIRST = ['Nora', 'Tomas', 'Priya', 'Elena', 'Marcus', 'Hugo', 'Leila', 'Jonas', 'Clara', 'Rafael', 'Ingrid', 'Samir'];
const LAST = ['Berg', 'Okafor', 'Novak', 'Castillo', 'Haddad', 'Fischer', 'Moreau', 'Tanaka', 'Lindgren', 'Costa', 'Reyes', 'Walsh'];
const STREETS = ['Juniper Road', 'Harbor Street', 'Orchard Lane', 'Mill Road', 'Quarry Street', 'Linden Court'];
const CITIES = [['Portland', 'OR'], ['Tucson', 'AZ'], ['Omaha', 'NE'], ['Boise', 'ID'], ['Madison', 'WI'], ['Raleigh', 'NC']];
const PRODUCTS = [
  ['Toaster', 'slots', ['2', '4']], ['Umbrella', 'length', ['short', 'long']], ['Wall Clock', 'diameter', ['10 inch', '12 inch']],
  ['Hair Dryer', 'power', ['1600W', '2000W']], ['Camping Tent', 'capacity', ['2 persons', '4 persons']], ['Guitar', 'strings', ['nylon', 'steel']],
  ['Picture Frame', 'material', ['wood', 'metal']], ['Sleeping Bag', 'season', ['summer', 'winter']], ['Printer', 'type', ['inkjet', 'laser']],
];
const REASONS = { 'no longer needed': ['I no longer need it', 'I no longer need them'], 'ordered by mistake': ['I ordered it by mistake', 'I ordered them by mistake'] };
/* a: status of the first order; b: of the second one where its part applies; twin: where it does not; c: of the third order. */
const KINDS = [
  { a: 'pending', b: 'pending', twin: ['processed', 'delivered'], c: ['processed', 'delivered'] },
  { a: 'delivered', b: 'delivered', twin: ['processed', 'pending'], c: ['processed', 'pending'] },
  { a: 'delivered', b: 'pending', twin: ['processed', 'delivered'], c: ['pending'] },
  { a: 'pending', b: 'delivered', twin: ['processed', 'pending'], c: ['delivered'] },
  { a: 'pending', b: 'delivered', twin: ['pending'], c: ['delivered'] },
];
const TRACK = 4; // the kind whose second part is a question
const WORDING = [ // three for each kind
  (w) => `I want to cancel all my pending orders. If you need a reason, ${w.them}. My orders are ${w.all}.`,
  (w) => `Please cancel all my pending orders, ${w.them}. My orders are ${w.all}.`,
  (w) => `I have the orders ${w.all}. Cancel all of them that are still pending, ${w.them}.`,
  (w) => `I want to return everything from all my delivered orders. Refund each order the way I paid for it. My orders are ${w.all}.`,
  (w) => `I am in financial trouble. Return everything of all my delivered orders and refund it the way I paid. My orders are ${w.all}.`,
  (w) => `I have the orders ${w.all}. Return everything from those that are delivered, please, and refund each order the way I paid for it.`,
  (w) => `My ${w.item} came damaged, it is in order ${w.a}. Return it and refund it the way I paid. And if ${w.b} is still pending, cancel that order, ${w.it}.`,
  (w) => `I want to return the ${w.item} from order ${w.a} and get the money back the way I paid. If order ${w.b} is still pending, cancel it too, ${w.it}.`,
  (w) => `The ${w.item} from order ${w.a} doesn't work well. Return it, the money back the way I paid, and cancel order ${w.b} if it is still pending, ${w.it}.`,
  (w) => `Cancel order ${w.a}, ${w.it}. And if ${w.b} is delivered, return everything in that order and refund it the way I paid.`,
  (w) => `I want to cancel order ${w.a}, ${w.it}. If order ${w.b} is delivered, return everything from it too, the money back the way I paid.`,
  (w) => `Please cancel order ${w.a}, ${w.it}, and return everything from order ${w.b} if it is delivered. Refund it the way I paid.`,
  (w) => `Cancel order ${w.a}, ${w.it}. And if ${w.b} is delivered, what was the tracking number of that order?`,
  (w) => `I want to cancel order ${w.a}, ${w.it}. If order ${w.b} has a tracking number, tell me what it is.`,
  (w) => `Please cancel order ${w.a}, ${w.it}, and tell me the tracking number of order ${w.b} if there is one.`,
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
const json = (value) => { // as this target writes JSON: a space after commas and colons; every number in it is a float
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (typeof value === 'number') return Number.isInteger(value) ? `${value}.0` : String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};
export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 20 });
const writeFor = ({ order_id, status, payment_history }, items, reason) => { // a pending order is cancelled, a delivered one returned
  if (status === 'pending') return { name: 'cancel_pending_order', arguments: { order_id, reason } };
  const [item_ids, payment_method_id] = [items.map((item) => item.item_id), payment_history[0].payment_method_id];
  return { name: 'return_delivered_order_items', arguments: { order_id, item_ids, payment_method_id } };
};
const keyOf = ({ name, arguments: given }) =>
  JSON.stringify([name, given.order_id, given.reason ?? '', [...(given.item_ids ?? [])].sort(), given.payment_method_id ?? '']);
export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const digits = (n) => Array.from({ length: n }, (_, at) => (at === 0 ? 1 + below(9) : below(10))).join('');
  const [first_name, last_name, [city, region], kind] = [pick(FIRST), pick(LAST), pick(CITIES), below(KINDS.length)];
  const user_id = `${first_name}_${last_name}_${digits(4)}`.toLowerCase();
  const email = `${first_name}.${last_name}${digits(4)}@example.com`.toLowerCase();
  const address = { address1: `${digits(3)} ${pick(STREETS)}`, address2: `Suite ${digits(3)}`, city, country: 'USA', state: region, zip: digits(5) };
  const [source, number, brand, last_four] = [pick(['paypal', 'credit_card']), digits(7), pick(['visa', 'mastercard']), digits(4)];
  const method = { source, id: `${source}_${number}`, ...(source === 'paypal' ? {} : { brand, last_four }) };
  const products = [...PRODUCTS];
  const orderOf = (status, count) => {
    const items = Array.from({ length: count }, () => {
      const [name, key, values] = draw(below, products);
      const [product_id, item_id, price] = [digits(10), digits(10), (2000 + below(40000)) / 100];
      return { name, product_id, item_id, price, options: { [key]: pick(values), color: pick(['black', 'white', 'red', 'green', 'silver']) } };
    });
    const [order_id, tracking] = [`#W${digits(7)}`, digits(12)];
    const amount = Math.round(items.reduce((sum, item) => sum + item.price, 0) * 100) / 100;
    const fulfillments = status === 'pending' ? [] : [{ tracking_id: [tracking], item_ids: items.map((item) => item.item_id) }];
    const payment_history = [{ transaction_type: 'payment', amount, payment_method_id: method.id }];
    return {
      order_id, user_id, address, items, status, fulfillments, payment_history, cancel_reason: null,
      exchange_items: null, exchange_new_items: null, exchange_payment_method_id: null, exchange_price_difference: null, return_items: null, return_payment_method_id: null,
    };
  };
  const [other, third, reason] = [pick(KINDS[kind].twin), pick(KINDS[kind].c), pick(Object.keys(REASONS))];
  const a = orderOf(KINDS[kind].a, kind === 2 ? 2 : 1 + below(2));
  const [b, c] = [orderOf(special ? KINDS[kind].b : other, 1 + below(2)), orderOf(third, 1 + below(2))];
  const rest = [a.order_id, b.order_id, c.order_id];
  const ids = [0, 1, 2].map(() => draw(below, rest));
  const wanted = [writeFor(a, kind === 2 ? [a.items[0]] : a.items, reason)];
  if (special && kind !== TRACK) wanted.push(writeFor(b, b.items, reason));
  const [all, item] = [`${ids[0]}, ${ids[1]} and ${ids[2]}`, a.items[0].name.toLowerCase()];
  const words = { a: a.order_id, b: b.order_id, all, item, it: REASONS[reason][0], them: REASONS[reason][1] };
  return {
    special, kind, reason, wanted, second: b.order_id, third: c.order_id,
    request: WORDING[kind * 3 + below(3)](words), yes: pick(['Yes, please.', 'Yes.', 'Yes, go ahead.']),
    user: { user_id, name: { first_name, last_name }, address, email, payment_methods: { [method.id]: method }, orders: ids },
    orders: { [a.order_id]: a, [b.order_id]: b, [c.order_id]: c }, needed: kind < 2 ? ids : [a.order_id, b.order_id],
    tracking: special && kind === TRACK ? b.fulfillments[0].tracking_id[0] : null,
    seen: [], made: [], strayed: 0, refused: 0, numbers: [], talk: 0, done: false,
  };
}
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];
function observe(state, { name, arguments: sent }) {
  if (!TOOLS.includes(name)) return 'Error: Unknown tool';
  const given = sent && typeof sent === 'object' ? sent : {};
  const fields = targetTools[name].parameters.required;
  const texts = (field) => [given[field]].flat().every((value) => typeof value === 'string') && Array.isArray(given[field]) === (field === 'item_ids');
  if (Object.keys(given).length !== fields.length || !fields.every(texts)) return 'Error: Invalid arguments';
  const user = state.user;
  if (name === 'find_user_id_by_name_zip') {
    const same = (field) => given[field].trim().toLowerCase() === user.name[field].toLowerCase();
    return same('first_name') && same('last_name') && given.zip === user.address.zip ? user.user_id : 'Error: User not found';
  }
  if (name === 'get_user_details') return given.user_id === user.user_id ? json(user) : 'Error: User not found';
  if (!Object.hasOwn(state.orders, given.order_id)) return 'Error: Order not found';
  const order = state.orders[given.order_id];
  if (name === 'get_order_details') state.seen = [...new Set([...state.seen, order.order_id])];
  if (name === 'get_order_details') return json(order);
  const cancels = name === 'cancel_pending_order';
  if (order.status !== (cancels ? 'pending' : 'delivered')) {
    state.strayed += 1;
    return cancels ? 'Error: Non-pending order cannot be cancelled' : 'Error: Non-delivered order cannot be returned';
  }
  if (cancels) {
    if (!Object.hasOwn(REASONS, given.reason)) return 'Error: Invalid reason';
    order.payment_history.push({ ...order.payment_history[0], transaction_type: 'refund' });
    Object.assign(order, { status: 'cancelled', cancel_reason: given.reason });
  } else {
    const items = order.items.map((item) => item.item_id).filter((id) => given.item_ids.includes(id));
    if (!Object.hasOwn(user.payment_methods, given.payment_method_id)) return 'Error: Payment method not found';
    if (items.length === 0 || items.length !== given.item_ids.length) return 'Error: Some item not found';
    Object.assign(order, { status: 'return requested', return_items: items.sort(), return_payment_method_id: given.payment_method_id });
  }
  const key = keyOf({ name, arguments: given });
  if (state.wanted.some((write) => keyOf(write) === key)) state.made.push(key);
  else state.strayed += 1;
  return json(order);
}
const openOf = ({ wanted, made }) => wanted.filter((write) => !made.includes(keyOf(write)));
const AUTH = /\bzip\b|your (full |first |last )?name|your e-?mail|e-?mail address|first and last name/;
const ELSE = /(any|some)thing else|else (that )?i can|(what|how) else|further (help|assist)/;
const WHICH = /(^|[^a-z])(which|what|how|where|why)\b/;
const VERB = /\b(cancel|cancell?ing|cancell?ation|return|returning|refund)\b/;
const EXPLAINS = /\b(not|cannot|only|already|since|because|leave|stays?|remains?|processed|delivered|tracking|if|whether|check)\b|n't\b/;
const GOING = /\b(i will|i'll|let me|i am going to|i'm going to|next|i would|moment)\b/;
const CLOSING = /\bbye\b|goodbye|settled|taken care|\ball\b.{0,30}\bdone\b|have a (nice|great|good|wonderful)/;
/* The user: says who it is, confirms what it wants, refuses what it does not want, and believes that all is done when told so. */
function listen(state, content) {
  const text = content.toLowerCase();
  const identity = `I am ${state.user.name.first_name} ${state.user.name.last_name}, zip code ${state.user.address.zip}.`;
  state.talk += 1;
  if (state.talk > 3) return ['Never mind. Goodbye. ###STOP###', true];
  if (text.trim() === '') return ['Hello? Are you still there?', false];
  if (state.seen.length === 0 && AUTH.test(text)) return [identity, false];
  if (!text.includes('?') && !/\bconfirm\b|\(yes/.test(text)) {
    if (CLOSING.test(text)) return ['Great, thank you. Bye. ###STOP###', true];
    return GOING.test(text) || state.made.length + state.strayed === 0 ? ['Okay.', false] : ['Oh, good. Thanks. ###STOP###', true];
  }
  const sentences = text.split(/(?<=[.!?])\s+|\n+/);
  const names = (id, where) => where.includes(id.slice(2)) || state.orders[id].items.some((item) => where.includes(item.name.toLowerCase()));
  const reasons = Object.keys(REASONS).filter((each) => text.includes(each));
  const because = `${REASONS[state.reason][0]}.`; // what it says about the reason
  const open = !ELSE.test(text) && sentences.some((each) => each.includes('?') && WHICH.test(each)); // not a yes-no question
  if (text.includes('reason') && (open || reasons.length === 2)) return [because, false];
  if (open) return [/payment|refund|card|money/.test(text) ? 'The way I paid for it.' : state.request, false];
  const proposing = sentences.filter((each) => VERB.test(each));
  const unwanted = Object.keys(state.orders).filter((id) => !state.wanted.some((write) => write.arguments.order_id === id));
  if (proposing.some((each) => !EXPLAINS.test(each) && unwanted.some((id) => names(id, each)))) {
    state.refused += 1;
    return ['No, please do only what I asked for.', false];
  }
  const places = ELSE.test(text) || proposing.length === 0 ? proposing : [text];
  if (openOf(state).some((write) => places.some((each) => names(write.arguments.order_id, each))))
    return [reasons.length === 1 && reasons[0] !== state.reason ? `No. ${because}` : state.yes, false];
  if (ELSE.test(text)) return ['No, that is all. Thank you! ###STOP###', true];
  return [AUTH.test(text) ? identity : 'Please do what I asked for.', false];
}
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const content = typeof message?.content === 'string' ? message.content : '';
  const calls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  state.numbers = [...new Set([...state.numbers, ...(content.match(/(?<!\d)\d{12}(?!\d)/g) ?? [])])].slice(0, 20);
  if (calls.length > 0) {
    state.talk = 0;
    return { state, done: false, messages: calls.map((call) => ({ role: 'tool', toolCallId: call?.id, content: observe(state, call ?? {}) })) };
  }
  const [answer, done] = listen(state, content);
  return { state: { ...state, done }, done, messages: [{ role: 'user', content: answer }], ...(done ? { stopReason: 'user_stop' } : {}) };
}
export function reward(state) {
  const { special, kind, wanted, tracking, numbers, done } = state;
  const looked = state.needed.every((id) => state.seen.includes(id));
  const parts = wanted.length - openOf(state).length;
  const says = kind !== TRACK || numbers.join() === (tracking ?? ''); // the right number and no other
  const second = tracking ? numbers.includes(tracking) : special && parts === 2;
  const clean = state.strayed === 0 && state.refused === 0; // nothing tried or proposed that was not asked for
  const right = looked && parts === wanted.length && says && clean && done;
  return {
    reward: right ? 1 : (looked ? 0.05 : 0) + (parts > 0 ? 0.1 : 0) + (second ? 0.1 : 0),
    branch: special ? 'parts_left' : 'one_part',
    breakdown: { looked: Number(looked), parts, says: Number(says), clean: Number(clean), done: Number(done) },
  };
}
export const reference = ({ wanted, tracking }) => ({ actions: wanted, tell: tracking ? [tracking] : [] });
const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const say = (content) => ({ role: 'assistant', content });
function script({ user, orders, needed, second }, writes, number) {
  const propose = ({ arguments: { order_id, reason, item_ids } }) => {
    if (reason) return say(`I would now cancel order ${order_id}, for the reason "${reason}". Do you confirm (yes)?`);
    const items = orders[order_id].items.filter((item) => item_ids.includes(item.item_id)).map((item) => item.name);
    return say(`I would now return the ${items.join(' and the ')} of order ${order_id}, with the refund the way you paid. Do you confirm (yes)?`);
  };
  return [
    say('Of course. First I have to find your account: please tell me your full name with your zip code.'),
    call('find_user_id_by_name_zip', { ...user.name, zip: user.address.zip }),
    ...needed.map((order_id) => call('get_order_details', { order_id })),
    ...writes.flatMap((write) => [propose(write), call(write.name, write.arguments)]),
    say(`All of that is done.${number ? ` The tracking number of order ${second} is ${number}.` : ''} Is there anything else that I can do for you?`),
  ];
}
export const solve = (seed) => script(make(seed), make(seed).wanted, make(seed).tracking);
export function shortcuts(seed) {
  const state = make(seed);
  const { kind, orders, second, third, wanted, reason } = state;
  const more = writeFor({ ...orders[second], status: KINDS[kind].b }, orders[second].items, reason);
  const shown = (orders[second].fulfillments[0] ?? orders[third].fulfillments[0])?.tracking_id[0];
  const everywhere = kind === TRACK ? script(state, [wanted[0]], shown) : script(state, [wanted[0], more]);
  return { 'close after the first part': script(state, [wanted[0]]), 'second part everywhere': everywhere };
}
export const hint = () => 'A request can have several parts, and only the records show which of them apply. When one part is done, go back to the first message before you close: has each order in it been looked at, and everything that applies been done or answered? Leave alone what does not apply.';