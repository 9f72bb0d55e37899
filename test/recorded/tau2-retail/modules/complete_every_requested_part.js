const targetTools = {"cancel_pending_order":{"name":"cancel_pending_order","description":"Cancel a pending order. If the order is already processed or delivered,\n\nit cannot be cancelled. The agent needs to explain the cancellation detail\nand ask for explicit user confirmation (yes/no) to proceed. If the user confirms,\nthe order status will be changed to 'cancelled' and the payment will be refunded.\nThe refund will be added to the user's gift card balance immediately if the payment\nwas made using a gift card, otherwise the refund would take 5-7 business days to process.\nThe function returns the order details after the cancellation.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"reason":{"description":"The reason for cancellation, which should be either 'no longer needed' or 'ordered by mistake'.","title":"Reason","type":"string"}},"required":["order_id","reason"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}},"find_user_id_by_name_zip":{"name":"find_user_id_by_name_zip","description":"Find user id by first name, last name, and zip code. If the user is not found, the function\n\nwill return an error message. By default, find user id by email, and only call this function\nif the user is not found by email or cannot remember email.","parameters":{"properties":{"first_name":{"description":"The first name of the customer, such as 'John'.","title":"First Name","type":"string"},"last_name":{"description":"The last name of the customer, such as 'Doe'.","title":"Last Name","type":"string"},"zip":{"description":"The zip code of the customer, such as '12345'.","title":"Zip","type":"string"}},"required":["first_name","last_name","zip"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_user_details":{"name":"get_user_details","description":"Get the details of a user, including their orders.","parameters":{"properties":{"user_id":{"description":"The user id, such as 'sara_doe_496'.","title":"User Id","type":"string"}},"required":["user_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"return_delivered_order_items":{"name":"return_delivered_order_items","description":"Return some items of a delivered order.\n\nThe order status will be changed to 'return requested'.\nThe agent needs to explain the return detail and ask for explicit user confirmation (yes/no) to proceed.\nThe user will receive follow-up email for how and where to return the item.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be returned, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'.\nThese can be looked up from the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `complete_every_requested_part`: a request of several parts is closed only when every part that can be done is done.
 * Even seed (open_parts): two or three of the parts are possible, so after the first write there is more to do.
 * Odd seed (single_part): the same request, but only one part is possible; the other orders are processed, trying them is wrong.
 */
const policy = `# Retail agent policy

As a retail agent, you can help users cancel pending orders and return delivered orders.

At the beginning of the conversation, you have to authenticate the user identity by locating their user id via name + zip code.

Before taking any action that updates the database (cancel, return), you must list the action details and obtain explicit user confirmation (yes) to proceed. You can handle multiple requests from the same user.

You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time.

The status of an order can be: **pending**, **processed**, **delivered**, or **cancelled**. Generally, you can only take action on pending or delivered orders.

## Cancel pending order

An order can only be cancelled if its status is 'pending', and you should check its status before taking the action. The reason is either 'no longer needed' or 'ordered by mistake'.

## Return delivered order

An order can only be returned if its status is 'delivered', and you should check its status before taking the action. The refund must either go to the original payment method, or an existing gift card.`;
const TOOLS = ['find_user_id_by_name_zip', 'get_user_details', 'get_order_details', 'cancel_pending_order', 'return_delivered_order_items'];
const FIRST = ['Ruth', 'Gilbert', 'Nadia', 'Tomas', 'Ingrid', 'Felix', 'Priya', 'Samuel', 'Clara', 'Hugo', 'Leila', 'Oscar'];
const LAST = ['Bennett', 'Okafor', 'Lindgren', 'Moreau', 'Castillo', 'Novak', 'Fischer', 'Haddad', 'Reyes', 'Walsh', 'Petrov'];
const CITIES = [['Boston', 'MA', '021'], ['Portland', 'OR', '972'], ['Memphis', 'TN', '381'], ['Tucson', 'AZ', '857'], ['Omaha', 'NE', '681'], ['Raleigh', 'NC', '276']];
const STREETS = ['Birch Road', 'Harbor Street', 'Mill Lane', 'Station Avenue', 'Garden Court', 'Quarry Drive'];
const COLORS = ['blue', 'green', 'black', 'white', 'red', 'grey'];
const PRODUCTS = {
  'Floor Lamp': ['height', ['120cm', '150cm']], Toaster: ['slots', ['2', '4']], 'Rain Jacket': ['size', ['S', 'M', 'L']],
  'Wool Scarf': ['length', ['short', 'long']], 'Camping Tent': ['capacity', ['2 person', '4 person']], 'Rice Cooker': ['capacity', ['1L', '2L']],
  'Wall Clock': ['diameter', ['25cm', '35cm']], 'Sleeping Bag': ['season', ['summer', 'winter']], 'Photo Frame': ['size', ['small', 'large']],
  'Travel Mug': ['capacity', ['350ml', '500ml']], 'Beach Towel': ['size', ['medium', 'large']], 'Hair Dryer': ['power', ['1200W', '1800W']],
};
const REASONS = {
  'no longer needed': ['What I cancel is no longer needed.', 'I no longer need what I cancel.', 'Reason for the cancellation: no longer needed.'],
  'ordered by mistake': ['If you need a reason to cancel, I ordered by mistake.', 'What I cancel was ordered by mistake.'],
};
const REFUNDS = ['Refund the return the way I paid.', 'For the return I want to get the money back the way I paid.'];
const LEAVE = ['If one of them is not possible any more, leave that one.', 'What is not possible any more can stay as it is.', 'If something is not possible, just leave it and do the rest.'];
const WORDING = [
  (list, count) => `${count} things: ${list}.`,
  (list) => `Please ${list}.`,
  (list) => `I want to ${list}.`,
  (list) => `${list[0].toUpperCase()}${list.slice(1)}.`,
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
/* As the target writes JSON: a space after commas and colons, amounts as floats. */
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map((each) => json(each)).join(', ')}]`;
  if (typeof value === 'number' && Number.isInteger(value)) return `${value}.0`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([name, own]) => `${JSON.stringify(name)}: ${json(own)}`).join(', ')}}`;
};
export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 26 });
function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (from) => from[below(from.length)];
  const digits = (n) => Array.from({ length: n }, (_, at) => (at ? below(10) : 1 + below(9))).join('');
  const [first, last, [city, region, prefix]] = [pick(FIRST), pick(LAST), pick(CITIES)];
  const zip = `${prefix}${below(10)}${below(10)}`;
  const address = { address1: `${digits(3)} ${pick(STREETS)}`, address2: `Suite ${digits(3)}`, city, country: 'USA', state: region, zip };
  const userId = `${first}_${last}_${digits(4)}`.toLowerCase();
  const [card, paypal, gift] = [`credit_card_${digits(7)}`, `paypal_${digits(7)}`, `gift_card_${digits(7)}`];
  const cardOf = { source: 'credit_card', id: card, brand: pick(['visa', 'mastercard']), last_four: digits(4) };
  const paid = pick([card, paypal]);
  const giftOf = { source: 'gift_card', id: gift, balance: 10 + below(80) };
  const payment_methods = { [paid]: paid === card ? cardOf : { source: 'paypal', id: paypal }, [gift]: giftOf };
  const names = Object.keys(PRODUCTS);
  const all = Array.from({ length: 4 }, () => {
    const items = Array.from({ length: fewer ? 1 : 1 + below(2) }, () => {
      const name = draw(below, names);
      const [option, values] = PRODUCTS[name];
      const price = (2000 + below(180) * 100 + 1 + below(98)) / 100;
      return { name, product_id: digits(10), item_id: digits(10), price, options: { color: pick(COLORS), [option]: pick(values) } };
    });
    return { order_id: `#W${digits(7)}`, items, tracking: digits(12), asksReturn: below(2) === 1 };
  });
  const count = fewer ? 2 : 3;
  const asked = all.slice(0, count);
  asked[below(count)].asksReturn = false; // at least one cancellation
  const possible = [0, 1, 2].slice(0, count).map((at) => [below(1000), at]).sort(([a], [b]) => a - b).map(([, at]) => at);
  const open = fewer ? 2 : 2 + below(2);
  const chosen = possible.slice(0, special ? open : 1).sort();
  const reason = pick(Object.keys(REASONS));
  const [why, refund, leave, wording] = [pick(REASONS[reason]), pick(REFUNDS), pick(LEAVE), pick(WORDING)];
  const phrases = asked.map((each) =>
    each.asksReturn ? `return the ${each.items[0].name.toLowerCase()} from order ${each.order_id}` : `cancel order ${each.order_id}`);
  const list = `${phrases.slice(0, -1).join(', ')}${fewer ? '' : ','} and ${phrases[count - 1]}`;
  const returns = asked.some((each) => each.asksReturn);
  const request = [wording(list, fewer ? 'Two' : 'Three'), why, ...(returns ? [refund] : []), leave].join(' ');
  const orders = {};
  all.slice(0, fewer ? 2 : 4).forEach((each, at) => {
    const { order_id, items, tracking, asksReturn } = each;
    const fits = asksReturn ? 'delivered' : 'pending';
    const status = at >= count || chosen.includes(at) ? fits : 'processed';
    const amount = Math.round(items.reduce((sum, item) => sum + item.price, 0) * 100) / 100;
    orders[order_id] = {
      order_id, user_id: userId, address, items, status,
      fulfillments: status === 'pending' ? [] : [{ tracking_id: [tracking], item_ids: items.map((item) => item.item_id) }],
      payment_history: [{ transaction_type: 'payment', amount, payment_method_id: paid }],
      cancel_reason: null, exchange_items: null, exchange_new_items: null, exchange_payment_method_id: null,
      exchange_price_difference: null, return_items: null, return_payment_method_id: null,
    };
  });
  const parts = asked.map(({ order_id, asksReturn, items }) =>
    asksReturn
      ? { name: 'return_delivered_order_items', arguments: { order_id, item_ids: [items[0].item_id], payment_method_id: paid } }
      : { name: 'cancel_pending_order', arguments: { order_id, reason } });
  const email = `${first}.${last}${digits(4)}@example.com`.toLowerCase();
  const user = { user_id: userId, name: { first_name: first, last_name: last }, address, email, payment_methods, orders: Object.keys(orders) };
  return { special, user, orders, parts, wanted: chosen.map((at) => parts[at]), reason, request, seen: [], writes: [], wrong: 0, identified: false, idle: 0, done: false };
}
export const make = (seed) => instance(seed, false);
/* Two parts in place of three, one item in each order, no other orders. */
export const easier = (seed) => instance(seed, true);
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];
const key = ({ name, arguments: given }) =>
  JSON.stringify([name, given.order_id, given.reason ?? '', [...(given.item_ids ?? [])].sort(), given.payment_method_id ?? '']);

function observe(state, call) {
  const name = call?.name;
  const given = call?.arguments && typeof call.arguments === 'object' ? call.arguments : {};
  const { user, orders } = state;
  if (!TOOLS.includes(name)) return `Error: Unknown tool ${typeof name === 'string' ? name.replace(/[^\w]/g, '').slice(0, 60) : ''}`;
  const fields = targetTools[name].parameters.required;
  const fits = (field) => field === 'item_ids'
    ? Array.isArray(given.item_ids) && given.item_ids.length > 0 && given.item_ids.every((each) => typeof each === 'string')
    : typeof given[field] === 'string';
  if (Object.keys(given).length !== fields.length || !fields.every(fits)) return 'Error: Invalid arguments';
  if (name === 'find_user_id_by_name_zip') {
    const told = `${given.first_name} ${given.last_name} ${given.zip}`.toLowerCase();
    return told === `${user.name.first_name} ${user.name.last_name} ${user.address.zip}`.toLowerCase() ? user.user_id : 'Error: User not found';
  }
  if (name === 'get_user_details') return given.user_id === user.user_id ? json(user) : 'Error: User not found';
  const order = Object.hasOwn(orders, given.order_id) ? orders[given.order_id] : undefined;
  if (!order) return 'Error: Order not found';
  if (name === 'get_order_details') {
    if (!state.seen.includes(order.order_id)) state.seen.push(order.order_id);
    return json(order);
  }
  const cancels = name === 'cancel_pending_order';
  if (cancels && given.reason !== 'no longer needed' && given.reason !== 'ordered by mistake') return 'Error: Invalid reason';
  const written = key({ name, arguments: given });
  if (state.wanted.some((each) => key(each) === written) && !state.writes.includes(written)) state.writes.push(written);
  else state.wrong += 1;
  const [paid] = order.payment_history;
  if (cancels) {
    if (order.status !== 'pending') return 'Error: Non-pending order cannot be cancelled';
    Object.assign(order, { status: 'cancelled', cancel_reason: given.reason });
    order.payment_history.push({ ...paid, transaction_type: 'refund' });
    return json(order);
  }
  if (order.status !== 'delivered') return 'Error: Non-delivered order cannot be returned';
  if (!Object.hasOwn(user.payment_methods, given.payment_method_id)) return 'Error: Payment method not found';
  if (!given.item_ids.every((id) => order.items.some((item) => item.item_id === id))) return 'Error: Some item not found';
  Object.assign(order, { status: 'return requested', return_items: [...given.item_ids].sort(), return_payment_method_id: given.payment_method_id });
  return json(order);
}

/* The user: says who it is, confirms what it asked for, and believes the agent that says that all is done. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const toolCalls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  if (toolCalls.length > 0) {
    state.idle = 0;
    return { state, done: false, messages: toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })) };
  }
  const text = String(message?.content ?? '').slice(0, 5000).toLowerCase();
  const answer = (content) => ({ state, done: false, messages: [{ role: 'user', content }] });
  const bye = (content) => {
    state.done = true;
    return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: `${content} ###STOP###` }] };
  };
  state.idle += 1;
  if (state.idle > 3) return bye('Never mind. Goodbye.');
  const { user, orders, parts, reason, writes } = state;
  const asks = text.includes('?') || /please (confirm|provide|tell|share|reply|let me know)|yes\/no|\(yes\)/.test(text);
  const proposes = /do you confirm|please confirm|confirm (that|this|these|the|all|both)|shall i|should i|may i (?!have)|can i (go|proceed)|proceed|go ahead|is (that|this) (right|correct|ok)|yes\/no|\(yes\)|do you want me|would you like me to (?!help|assist)/.test(text);
  if (asks && !state.identified && /zip|e-?mail|your (full |first )?name|identity|verify|authenticat/.test(text)) {
    state.identified = true;
    return answer(`I am ${user.name.first_name} ${user.name.last_name}, zip code ${user.address.zip}.`);
  }
  const closes = /(any|some)(thing|\b).{0,20}\b(else|more|further|other)\b|further (help|assist)/.test(text);
  if (closes && !(asks && proposes)) return bye('No, that is all. Thank you!');
  if (asks) {
    const ids = text.match(/#?w\d{7}/g) ?? [];
    const mine = ids.map((id) => `#W${id.slice(-7)}`).every((id) => parts.some((part) => part.arguments.order_id === id));
    const others = Object.values(orders).flatMap((order) => order.items).filter((item) => text.includes(item.item_id));
    const items = others.every((item) => parts.some((part) => part.arguments.order_id && orders[part.arguments.order_id].items.includes(item)));
    if (proposes) return answer(mine && items && !/exchange|modify/.test(text) ? 'Yes, please.' : 'No, only what I asked for, please.');
    if (/reason|why/.test(text)) return answer(reason === 'no longer needed' ? 'It is no longer needed.' : 'I ordered it by mistake.');
    if (/refund|payment|paid|money/.test(text)) return answer('The way I paid, please.');
    return answer(ids.length > 0 && mine ? 'Yes, please.' : 'Just what I asked for, please.');
  }
  const goesOn = /\b(next|i will|i'll|going to|one moment|remaining|let me (?!know))/.test(text);
  if (writes.length + state.wrong === 0 || goesOn) return state.idle > 2 ? bye('Never mind. Goodbye.') : answer('All right.');
  return bye('Great, thank you. Bye.');
}

export function reward({ special, parts, wanted, seen, writes, wrong, done }) {
  const looked = parts.filter((part) => seen.includes(part.arguments.order_id)).length;
  const all = looked === parts.length;
  const right = all && done && wrong === 0 && writes.length === wanted.length;
  const partial = (all ? 0.05 : 0) + (special ? (0.2 * writes.length) / wanted.length : 0.15 * writes.length);
  return {
    reward: right ? 1 : partial,
    branch: special ? 'open_parts' : 'single_part',
    breakdown: { looked: looked / parts.length, parts: writes.length / wanted.length, wrong, closed: Number(done) },
  };
}
const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const say = (content) => ({ role: 'assistant', content });
export const reference = ({ wanted }) => ({ actions: wanted, tell: [] });
function script({ user, parts }, chosen) {
  const given = { first_name: user.name.first_name, last_name: user.name.last_name, zip: user.address.zip };
  const propose = ({ name, arguments: { order_id, reason } }) =>
    name === 'cancel_pending_order'
      ? `I would now cancel order ${order_id}, for the reason "${reason}". Do you confirm (yes)?`
      : `I would now return the item from order ${order_id}, with the refund to the original payment method. Do you confirm (yes)?`;
  return [
    say('Of course. First I have to find your account: please tell me your full name with your zip code.'),
    call('find_user_id_by_name_zip', given),
    ...parts.map((part) => call('get_order_details', { order_id: part.arguments.order_id })),
    ...chosen.flatMap((part) => [say(propose(part)), call(part.name, part.arguments)]),
    say(`Done for ${chosen.map((part) => part.arguments.order_id).join(', ')}. Is there anything else that I can do for you?`),
  ];
}
export const solve = (seed, state = make(seed)) => script(state, state.wanted);
export const shortcuts = (seed, state = make(seed)) => ({
  'close after the first possible part': script(state, state.wanted.slice(0, 1)),
  'carry out every part whatever its status': script(state, state.parts),
});
export const hint = () =>
  'Before you close, go through the first request part by part: which have you done, which can still be done, which cannot? Go on as long as a part that is possible is open, and leave alone what the records rule out.';