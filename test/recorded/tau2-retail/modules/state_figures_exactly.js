const targetTools = {"calculate":{"name":"calculate","description":"Calculate the result of a mathematical expression.","parameters":{"properties":{"expression":{"description":"The mathematical expression to calculate, such as '2 + 2'. The expression can contain numbers, operators (+, -, *, /), parentheses, and spaces.","title":"Expression","type":"string"}},"required":["expression"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"find_user_id_by_name_zip":{"name":"find_user_id_by_name_zip","description":"Find user id by first name, last name, and zip code. If the user is not found, the function\n\nwill return an error message. By default, find user id by email, and only call this function\nif the user is not found by email or cannot remember email.","parameters":{"properties":{"first_name":{"description":"The first name of the customer, such as 'John'.","title":"First Name","type":"string"},"last_name":{"description":"The last name of the customer, such as 'Doe'.","title":"Last Name","type":"string"},"zip":{"description":"The zip code of the customer, such as '12345'.","title":"Zip","type":"string"}},"required":["first_name","last_name","zip"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_user_details":{"name":"get_user_details","description":"Get the details of a user, including their orders.","parameters":{"properties":{"user_id":{"description":"The user id, such as 'sara_doe_496'.","title":"User Id","type":"string"}},"required":["user_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"return_delivered_order_items":{"name":"return_delivered_order_items","description":"Return some items of a delivered order.\n\nThe order status will be changed to 'return requested'.\nThe agent needs to explain the return detail and ask for explicit user confirmation (yes/no) to proceed.\nThe user will receive follow-up email for how and where to return the item.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be returned, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'.\nThese can be looked up from the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `state_figures_exactly`: an amount that the user asks for is carried over digit by digit, or worked out exactly.
 * The user returns one item of an order and asks what the rest of the order, or a kind of product in it, cost.
 * Even seed (special): two or three prices of the order have to be added up (or the returned one taken from its total).
 * Odd seed (twin): the same request, and only one price in the order is asked for; it is read off, adding another is wrong.
 */
const policy = [
  '# Retail agent policy\n\nAs a retail agent, you can help users:\n\n- **return delivered orders**\n- **provide information about their own profile, orders, and related products**',
  'At the beginning of the conversation, you have to authenticate the user identity by locating their user id via name + zip code.',
  'Before taking any action that updates the database (return), you must list the action details and obtain explicit user confirmation (yes) to proceed.',
  'You should not make up any information or knowledge or procedures not provided by the user or the tools, or give subjective recommendations or comments.',
  'You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time.',
  "## Return delivered order\n\nAn order can only be returned if its status is 'delivered', and you should check its status before taking the action.\n\nThe refund must either go to the original payment method, or an existing gift card.\n\nAfter user confirmation, the order status will be changed to 'return requested', and the user will receive an email regarding how to return items.",
].join('\n\n');
const RETURN = 'return_delivered_order_items';
const TOOLS = ['find_user_id_by_name_zip', 'get_user_details', 'get_order_details', RETURN, 'calculate'];
const NULLS = 'cancel_reason,exchange_items,exchange_new_items,exchange_payment_method_id,exchange_price_difference,return_items,return_payment_method_id'.split(',');
const FIRST = 'Nora,Tomas,Leila,Oscar,Priya,Hugo,Amara,Stefan,Ines,Felix,Greta,Marek'.split(',');
const LAST = 'Brandt,Okafor,Lindgren,Moreau,Castillo,Novak,Haddad,Tanaka,Fischer,Osei'.split(',');
const CITIES = ['Portland,OR,972', 'Boston,MA,021', 'Tucson,AZ,857', 'Omaha,NE,681', 'Richmond,VA,232', 'Boise,ID,837'];
const STREETS = ['Harbor Road', 'Mill Street', 'Orchard Avenue', 'Station Road', 'Lake Drive', 'Chapel Lane'];
// the last words differ, so that each names its product alone
const PRODUCTS = 'Floor Lamp,Water Jug,Garden Chair,Camera Bag,Wireless Radio,Electric Fan,Pet Basket,Office Desk,Bicycle Pump,Digital Clock,Coffee Grinder,Tablet Sleeve';
const OPENINGS = [
  (item, id) => `I want to return the ${item} from order ${id} and get the money back the way I paid.`,
  (item, id) => `The ${item} from order ${id} doesn't work well. I want to return it and get the money back the way I paid.`,
  (item, id) => `Please return the ${item} from my order ${id}. Refund it the way I paid.`,
  (item, id) => `The quality of the ${item} in order ${id} is terrible, I want to return it. Refund it the way I paid.`,
];
const QUESTIONS = ['And what did I pay for', 'What did I pay in total for', 'How much did I pay for', 'What did I pay for'];
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
const add = (list) => list.reduce((sum, each) => sum + each, 0);
const money = (cents) => (cents / 100).toFixed(2);
const centsOf = ({ price }) => Math.round(price * 100);
/* As this target writes JSON: a space after commas and colons, and every number (all are amounts) as a float. */
const float = (value) => (Number.isInteger(value) ? value.toFixed(1) : String(value));
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (typeof value === 'number') return float(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};
export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 16 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const digits = (n) => Array.from({ length: n }, (_, at) => (at === 0 ? 1 + below(9) : below(10))).join('');
  const [first, last, [city, state, area]] = [pick(FIRST), pick(LAST), pick(CITIES).split(',')];
  const address = { address1: `${digits(3)} ${pick(STREETS)}`, address2: `Suite ${digits(3)}`, city, country: 'USA', state, zip: `${area}${digits(2)}` };
  const [card, paypal] = [`credit_card_${digits(7)}`, `paypal_${digits(7)}`];
  const [brand, paid, orderId] = [pick(['visa', 'mastercard']), pick([card, paypal]), `#W${digits(7)}`];
  const low = `${first}_${last}`.toLowerCase();
  const source = { [card]: { source: 'credit_card', id: card, brand, last_four: digits(4) }, [paypal]: { source: 'paypal', id: paypal } };
  const [user_id, name, email] = [`${low}_${digits(4)}`, { first_name: first, last_name: last }, `${low.replace('_', '.')}${digits(4)}@example.com`];
  const user = { user_id, name, address, email, payment_methods: source, orders: [orderId] };
  const [products, colors] = [PRODUCTS.split(','), 'black,white,red,blue,green,grey,silver,gold,purple,yellow'.split(',')];
  const product = () => ({ name: draw(below, products), product_id: digits(10), base: 15 + below(500) });
  const itemOf = ({ name, product_id, base }) => {
    const [place, item_id, price] = [below(1000), digits(10), ((base + below(60)) * 100 + 1 + below(below(2) ? 9 : 99)) / 100];
    const options = { color: draw(below, colors), material: pick(['metal', 'wood', 'plastic', 'leather']), size: pick(['small', 'medium', 'large']) };
    return { place, name, product_id, item_id, price, options };
  };
  const [rest, count] = [below(2) === 0, below(3) === 0 ? 3 : 2];
  const [item, asked] = [itemOf(product()), product()];
  const same = [0, 1, 2].map(() => itemOf(asked));
  const [other, filler] = [[0, 1, 2].map(() => itemOf(product())), itemOf(product())];
  // where the special order has a second one of the asked kind, the twin's has another product at the same price
  const more = same.slice(1, count).map((each, at) => (special ? each : { ...other[at + 1], price: each.price }));
  const rows = rest ? other.slice(0, special ? count : 1) : [same[0], ...more, filler];
  const parts = (rest ? rows : rows.filter(({ name }) => name === asked.name)).map(centsOf);
  const lure = special ? parts : (rest ? [item, rows[0]] : rows.slice(0, count)).map(centsOf); // what always adding adds
  const items = [item, ...rows].sort((a, b) => a.place - b.place).map(({ place, ...each }) => each);
  const total = add(items.map(centsOf));
  const order = {
    ...{ order_id: orderId, user_id, address, items, status: 'delivered' },
    fulfillments: [{ tracking_id: [digits(12)], item_ids: items.map((each) => each.item_id) }],
    payment_history: [{ transaction_type: 'payment', amount: total / 100, payment_method_id: paid }],
    ...Object.fromEntries(NULLS.map((field) => [field, null])),
  };
  const what = rest ? 'the rest of that order' : `${asked.name.toLowerCase()}s in that order`;
  const short = item.name.toLowerCase();
  const request = `${pick(OPENINGS)(short, orderId)} ${pick(QUESTIONS)} ${what}?`;
  const yes = pick(['Yes.', 'Yes, please.', 'Yes, that is fine.', 'Yes, go ahead.']);
  const bye = `${pick(['No, that is all. Thank you!', 'That was everything, thanks.'])} ###STOP###`;
  const world = { special, user, order, item, paid, short, what, request, yes, bye };
  const seen = { identified: false, read: false, worked: false, extra: 0, turns: 0, introduced: 0, idle: 0, reminded: 0, done: false };
  return { ...world, ...seen, parts, lure, total, wanted: add(parts), told: [] };
}
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];
function calculate(text) {
  if (text.length > 120 || text.split('(').length > 12 || !/^[\d+\-*/(). ]+$/.test(text)) return NaN;
  const tokens = text.match(/\d+(?:\.\d+)?|[+\-*/()]/g) ?? [];
  if (tokens.join('') !== text.replace(/ /g, '')) return NaN;
  let at = 0;
  const atom = () => {
    const token = tokens[at++] ?? '';
    if (token === '-') return -atom();
    if (token !== '(') return /^\d/.test(token) ? Number(token) : NaN;
    const value = sum();
    return tokens[at++] === ')' ? value : NaN;
  };
  const chain = (inner, signs) => () => {
    let value = inner();
    while (signs.includes(tokens[at])) {
      const [sign, right] = [tokens[at++], inner()];
      value = sign === '+' ? value + right : sign === '-' ? value - right : sign === '*' ? value * right : value / right;
    }
    return value;
  };
  const sum = chain(chain(atom, ['*', '/']), ['+', '-']);
  const value = sum();
  return at === tokens.length ? Math.round(value * 100) / 100 : NaN;
}
function giveBack(state, { order_id, item_ids, payment_method_id }) {
  const { order, user, paid } = state;
  if (order.status !== 'delivered') state.extra += 1; // a second return is one too many
  if (order_id !== order.order_id) return 'Error: Order not found';
  if (order.status !== 'delivered') return 'Error: Non-delivered order cannot be returned';
  if (!Object.keys(user.payment_methods).includes(payment_method_id)) return 'Error: Payment method not found';
  if (payment_method_id !== paid) return 'Error: Payment method should be the original payment method';
  const known = item_ids.every((id) => order.items.some((each) => each.item_id === id));
  if (!known || item_ids.length === 0 || new Set(item_ids).size < item_ids.length) return 'Error: Some item not found';
  Object.assign(order, { status: 'return requested', return_items: [...item_ids].sort(), return_payment_method_id: payment_method_id });
  return json(order);
}
function observe(state, { name, arguments: args }) {
  const given = args && typeof args === 'object' ? args : {};
  if (!TOOLS.includes(name)) return 'Error: Tool not found';
  const fields = targetTools[name].parameters.required;
  const texts = (value) => value.every((each) => typeof each === 'string');
  const fits = (field) => (field === 'item_ids' ? Array.isArray(given[field]) && texts(given[field]) : texts([given[field]]));
  if (!fields.every(fits) || Object.keys(given).length !== fields.length) return 'Error: Invalid arguments';
  const { user, order } = state;
  if (name === 'find_user_id_by_name_zip') {
    const full = `${given.first_name} ${given.last_name}`.toLowerCase();
    const right = full === `${user.name.first_name} ${user.name.last_name}`.toLowerCase() && given.zip === user.address.zip;
    state.identified ||= right;
    return right ? user.user_id : 'Error: User not found';
  }
  if (name === 'get_user_details') return given.user_id === user.user_id ? json(user) : 'Error: User not found';
  if (name === RETURN) return giveBack(state, given);
  if (name === 'get_order_details') {
    state.read ||= given.order_id === order.order_id;
    return given.order_id === order.order_id ? json(order) : 'Error: Order not found';
  }
  const value = calculate(given.expression);
  if (!Number.isFinite(value)) return 'Error: Invalid characters in expression';
  state.worked ||= state.read && Math.round(value * 100) === state.wanted;
  return float(value);
}
const named = (text, { name, item_id }) => text.includes(item_id) || new RegExp(`\\b${name.split(' ')[1].toLowerCase()}s?\\b`).test(text);
/* What the user answers as long as nothing was returned; '' to give up. */
function answerBefore(state, text) {
  const { user, order, item, paid, short } = state;
  if (!state.identified && /name|zip|e-?mail|identi|verif|authenticat/.test(text) && (state.introduced += 1) < 4)
    return `I am ${user.name.first_name} ${user.name.last_name}, zip code ${user.address.zip}.`;
  const refuses = /\b(?:cannot|can't|unable|not able)\b(?! be)|^(?!.*(?:shall i|confirm|proceed|\byes\b)).*anything (?:else|more)/s.test(text);
  if (/\?|confirm|\byes\b/.test(text) && !refuses) {
    const sentences = text.split(/[.!?](?:\s|$)|\n/).filter((each) => /return|refund/.test(each));
    const proposed = sentences.filter((each) => !/rest|other|keep|paid|cost|remain/.test(each));
    const others = order.items.filter((each) => each.name !== item.name);
    const [own, foreign] = paid.startsWith('paypal') ? [/paypal/, /card/] : [/card/, /paypal/];
    if ((text.match(/#w\d+/g) ?? []).some((id) => id !== order.order_id.toLowerCase())) return `No, order ${order.order_id}, please.`;
    if (proposed.some((each) => others.some((one) => named(each, one)))) return `Only the ${short}, please.`;
    if (foreign.test(text) && !own.test(text)) return 'No, refund it the way I paid, please.';
    if (named(text, item)) return state.yes;
    if (/pay|refund|method/.test(text)) return 'The way I paid, please.';
  }
  state.idle += 1;
  return state.idle < 3 ? `I want to return the ${short} from order ${order.order_id}.` : '';
}
/* After the return: the first text with an amount in it is the answer; without one the user asks again. */
function answerAfter(state, text) {
  const marks = text.match(/\$\s?\d[\d,]*(?:\.\d+)?|\d[\d,]*\.\d+/g) ?? [];
  const amounts = marks.map((each) => Math.round(Number(each.replace(/[$,\s]/g, '')) * 100)).filter(Number.isFinite);
  // the refund or the order's total may be told beside the answer, both only where one is subtracted from the other
  const neutral = [state.total, centsOf(state.item)];
  const both = neutral.every((each) => amounts.includes(each)) && !/[-−–]\s*\$?\s?\d[\d,]*\.\d|minus/.test(text);
  state.told = amounts.filter((each) => both || each === state.wanted || !neutral.includes(each));
  if (state.told.length > 0) return '';
  state.reminded += 1;
  return state.reminded < 3 ? `${state.reminded === 1 ? 'One more thing. ' : ''}What did I pay for ${state.what}?` : '';
}
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const tool = (each) => ({ role: 'tool', toolCallId: each.id, content: observe(state, each) });
  if (message.toolCalls?.length > 0) return { state, done: false, messages: message.toolCalls.map(tool) };
  const text = String(message.content ?? '').slice(0, 4000).toLowerCase().replace(/’/g, "'");
  const reply = state.order.status === 'delivered' ? answerBefore(state, text) : answerAfter(state, text);
  if ((state.turns += 1) < 10 && reply !== '') return { state, done: false, messages: [{ role: 'user', content: reply }] };
  const content = state.told.length > 0 ? state.bye : 'Never mind. Goodbye. ###STOP###';
  return { state: { ...state, done: true }, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content }] };
}
/* Right but for one digit, or for digits that changed places. */
function near(a, b) {
  const [x, y] = [[...String(a)], [...String(b)]];
  return x.length === y.length && (x.filter((digit, at) => digit !== y[at]).length <= 1 || x.sort().join('') === y.sort().join(''));
}
export function reward(state) {
  const { special, parts, wanted, told, order, item, paid, extra, done } = state;
  const sums = parts.reduce((all, each) => [...all, ...all.map((sum) => sum + each)], [0]); // terms and steps of the working
  const exact = Number(told.includes(wanted) && told.every((each) => sums.includes(each))); // nothing false beside it
  const returned = Number(json(order.return_items) === json([item.item_id]) && order.return_payment_method_id === paid);
  const shown = Number(special && (state.worked || (told.length > 0 && parts.every((each) => told.includes(each)))));
  const close = Number(told.some((each) => near(each, wanted)));
  const [identified, read] = [Number(state.identified), Number(state.read)];
  return {
    reward: identified && read && returned && extra === 0 && exact && done ? 1 : 0.05 * (identified + read + 2 * returned + shown + close),
    branch: special ? 'add_up' : 'read_off',
    breakdown: { identified, read, returned, extra, shown, close, exact },
  };
}
const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const say = (content) => ({ role: 'assistant', content });
const writeOf = ({ order, item, paid }) => ({ order_id: order.order_id, item_ids: [item.item_id], payment_method_id: paid });
export const reference = (state) => ({ actions: [{ name: RETURN, arguments: writeOf(state) }], tell: [money(state.wanted)] });
/* The conversation of an agent that tells the sum of these terms. */
function script(state, terms) {
  const { user, order, item, paid, what } = state;
  const working = terms.length > 1 ? `${terms.map((each) => `$${money(each)}`).join(' + ')} = ` : '';
  const method = paid.startsWith('paypal') ? 'paypal account' : `credit card ending in ${user.payment_methods[paid].last_four}`;
  return [
    say('Happy to help. May I have your first and last name and your zip code?'),
    call(TOOLS[0], { ...user.name, zip: user.address.zip }),
    call('get_user_details', { user_id: user.user_id }),
    call('get_order_details', { order_id: order.order_id }),
    ...(terms.length > 1 ? [call('calculate', { expression: terms.map(money).join(' + ') })] : []),
    say(`I would now return the ${item.name} (${Object.values(item.options).join(', ')}) of order ${order.order_id}, with the refund to your ${method}. Shall I do so?`),
    call(RETURN, writeOf(state)),
    say(`All of that is done. You paid ${working}$${money(add(terms))} for ${what}. Is there anything else that I can do for you?`),
  ];
}
export const solve = (seed) => script(make(seed), make(seed).parts);
export function shortcuts(seed) {
  const state = make(seed);
  const tells = { 'always add up': state.lure, 'never add up': state.parts.slice(0, 1), 'total of the order': [state.total], 'one digit off': [state.wanted + 1000] };
  return Object.fromEntries(Object.entries(tells).map(([name, terms]) => [name, script(state, terms)]));
}