const targetTools = {"find_user_id_by_name_zip":{"name":"find_user_id_by_name_zip","description":"Find user id by first name, last name, and zip code. If the user is not found, the function\n\nwill return an error message. By default, find user id by email, and only call this function\nif the user is not found by email or cannot remember email.","parameters":{"properties":{"first_name":{"description":"The first name of the customer, such as 'John'.","title":"First Name","type":"string"},"last_name":{"description":"The last name of the customer, such as 'Doe'.","title":"Last Name","type":"string"},"zip":{"description":"The zip code of the customer, such as '12345'.","title":"Zip","type":"string"}},"required":["first_name","last_name","zip"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_order_details":{"name":"get_order_details","description":"Get the status and details of an order.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"}},"required":["order_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_product_details":{"name":"get_product_details","description":"Get the inventory details of a product.","parameters":{"properties":{"product_id":{"description":"The product id, such as '6086499569'. Be careful the product id is different from the item id.","title":"Product Id","type":"string"}},"required":["product_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"get_user_details":{"name":"get_user_details","description":"Get the details of a user, including their orders.","parameters":{"properties":{"user_id":{"description":"The user id, such as 'sara_doe_496'.","title":"User Id","type":"string"}},"required":["user_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":true}},"modify_pending_order_items":{"name":"modify_pending_order_items","description":"Modify items in a pending order to new items of the same product type. For a pending order, this function can only be called once. The agent needs to explain the exchange detail and ask for explicit user confirmation (yes/no) to proceed.","parameters":{"properties":{"order_id":{"description":"The order id, such as '#W0000000'. Be careful there is a '#' symbol at the beginning of the order id.","title":"Order Id","type":"string"},"item_ids":{"description":"The item ids to be modified, each such as '1008292230'. There could be duplicate items in the list.","items":{"type":"string"},"title":"Item Ids","type":"array"},"new_item_ids":{"description":"The item ids to be modified for, each such as '1008292230'. There could be duplicate items in the list. Each new item id should match the item id in the same position and be of the same product.","items":{"type":"string"},"title":"New Item Ids","type":"array"},"payment_method_id":{"description":"The payment method id to pay or receive refund for the item price difference, such as 'gift_card_0000000' or 'credit_card_0000000'. These can be looked up from the user or order details.","title":"Payment Method Id","type":"string"}},"required":["order_id","item_ids","new_item_ids","payment_method_id"],"title":"parameters","type":"object"},"annotations":{"readOnlyHint":false}}};
// History:
// Round 1: the first version; nothing had been found before it.
// Round 2: found that all solutions had one shape (propose, write), which with own identifiers always passed; now in one instance of nearly every pair nothing fits, and there the agent has to say so and to write nothing.
// Round 3: found that a denial with a list of all values was taken as told where nothing fits, yet excused where something fits, so that a guess could follow; now what denies and proposes is a proposal, every other denial ends the talk, and only a proposal of the fitting one may say that another is missing.
/*
 * Trains `match_options_to_stated_constraints`: of the listed variants the one is taken that meets all that the user said.
 * Even seed: the first available variant that comes close fails one condition, the fitting one stands further down.
 * Odd seed: the same user, order, request and list, but these two have changed places: the first close one fits.
 * In one of the two (in turn the odd and the even one; not in each 17th pair) the fitting one is spoilt, too: nothing fits.
 * Whether the agent waits for a yes decides nothing here (trained elsewhere); a wrong proposal or a wrong write does.
 */
const policy = `# Retail agent policy

As a retail agent, you can help users modify the items of pending orders.

- At the beginning of the conversation, you have to authenticate the user identity by locating their user id via name + zip code.
- Before taking any action that updates the database, you must list the action details and obtain explicit user confirmation (yes) to proceed.
- You should at most make one tool call at a time, and if you take a tool call, you should not respond to the user at the same time.
- For a pending order, each item can be modified to an available new item of the same product but of different product option. This action can only be called once per order.
- The price difference is paid with or refunded to the user's payment method.
- Note: Product ID and Item ID have no relations and should not be confused!`;
const [BIG, LONG] = [['bigger', 'smaller', 'biggest', 'smallest'], ['longer', 'shorter', 'longest', 'shortest']];
const [BRIGHT, STRONG] = [['brighter', 'less bright', 'brightest', 'least bright'], ['more powerful', 'less powerful', 'most powerful', 'least powerful']];
const PRODUCTS = [
  ['Camping Tent', 'capacity', 'material', BIG, '2-person,3-person,4-person,6-person,8-person', 'green,orange,blue,grey', 'nylon,polyester,canvas'],
  ['Cooler Box', 'capacity', 'material', BIG, '12L,18L,28L,45L,60L', 'red,white,blue,grey', 'plastic,metal,fabric'],
  ['Travel Mug', 'capacity', 'material', BIG, '250ml,350ml,450ml,600ml,800ml', 'green,black,pink,white', 'ceramic,glass,steel'],
  ['Computer Monitor', 'screen size', 'panel type', BIG, '22-inch,24-inch,27-inch,32-inch,38-inch', 'black,white,silver,grey', 'IPS,VA,OLED'],
  ['Floor Rug', 'length', 'material', LONG, '4ft,5ft,6ft,8ft,10ft', 'brown,beige,red,black', 'wool,cotton,jute'],
  ['Extension Cord', 'length', 'material', LONG, '6ft,12ft,20ft,35ft,60ft', 'white,black,orange,yellow', 'rubber,vinyl,fabric'],
  ['Floor Lamp', 'brightness', 'bulb type', BRIGHT, '300 lumens,500 lumens,800 lumens,1200 lumens,1800 lumens', 'gold,black,white,silver', 'LED,halogen,fluorescent'],
  ['Space Heater', 'power', 'type', STRONG, '600W,900W,1200W,1600W,2200W', 'white,black,red,silver', 'ceramic,infrared,oil-filled'],
];
const FIRST = ['Ines', 'Tomas', 'Leila', 'Oskar', 'Nadia', 'Ravi', 'Clara', 'Hugo', 'Amara', 'Felix', 'Junko', 'Petra'];
const LAST = ['Berg', 'Okafor', 'Novak', 'Laurent', 'Tanaka', 'Moreau', 'Weber', 'Costa', 'Haddad', 'Lind', 'Vega', 'Petrov'];
const STREETS = ['Birch Road', 'Harbor Street', 'Mill Lane', 'Orchard Way', 'Station Avenue', 'Quarry Court'];
const CITIES = [['Tucson', 'AZ', '857'], ['Boise', 'ID', '837'], ['Omaha', 'NE', '681'], ['Tampa', 'FL', '336'], ['Reno', 'NV', '895']];
const NULLS = Object.fromEntries('cancel_reason,exchange_items,exchange_new_items,exchange_payment_method_id,exchange_price_difference,return_items,return_payment_method_id'.split(',').map((field) => [field, null]));
const WORDING = [
  (noun, order, wish) => `Please change my pending ${noun} in order ${order} to ${wish}.`,
  (noun, order, wish) => `Change the ${noun} in my pending order ${order} to ${wish}.`,
  (noun, order, wish) => `For ${order} I want the ${noun} changed to ${wish}.`,
  (noun, order, wish) => `I'd like to change my pending ${noun} from order ${order} to ${wish}.`,
];
const OTHERWISE = [' If there is none like that, leave it as it is.', ' If you have none like that, leave the order as it is.', ' If there is none like that, change nothing.'];
const YES = ['Yes, please go ahead.', 'Yes, that is right.', 'Yes, do that.', 'Yes, that is fine with me.'];
const BYE = ['No, that was all. Thank you! ###STOP###', 'That is everything, thanks. ###STOP###'];
const LEAVE = 'Never mind then. Goodbye. ###STOP###';
const LEFT = ['Then leave it as it is. Thank you! ###STOP###', 'Then I keep what I have, thanks. ###STOP###'];
function randomOf(seed) {
  let a = Math.imul(seed + 1, 0x9e3779b1);
  return (limit) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}
/* As this target writes JSON: a space after commas and colons, every number with a decimal point. */
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (typeof value === 'number') return Number.isInteger(value) ? value.toFixed(1) : String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`).join(', ')}}`;
};
/* A wish, what fits it, three available ones that fail one condition each, and one that is not available.
 * Each is [steps from the present size in the wanted direction, color, kind]; the present one is [0, a0, b0]. */
const an = (word) => `${/^([aeiou]|8|18)/i.test(word) ? 'an' : 'a'} ${word}`;
function caseOf(ask, key, [more, most], size, t, flip, [, a1, a2, a3], [b0, b1, b2]) {
  const all = [[t, a1, b1], [[-1, a1, b1], [t, a2, b1], [t, a1, b0]], [t, a3, b1]];
  const second = [[t, a2, b1], [[-1, a1, b1], [t, a1, b0], [-1, a2, b1]], [t, a1, b1]]; // none in the preferred color
  const [own, other] = flip ? [a1, a2] : [a2, a1];
  return [
    [`${an(a1)} one, ${size}, ${b1}`, ...all],
    [`${an(more)} ${a1} one, same ${key}`, [t, a1, b0], [[-1, a1, b0], [t, a2, b0], [t, a1, b1]], [3 - t, a1, b0]],
    [`the ${most} ${a1} one that you have`, [t, a1, b0], [[t - 1, a1, b1], [2, a2, b1], [-1, a1, b2]], t === 1 ? [2, a1, b1] : [1, a1, b2]],
    [`${an(size)} one, ${b1}; if there is none in ${a1}, take ${a2}`, ...(flip ? all : second)],
    [`the cheapest ${a1} one that you have`, [1, a1, b1], [[-1, a1, b0], [2, a2, b1], [2, a1, b2]], [-2, a1, b1]],
    [`${an(size)} one, ${b1} rather than ${b0}, ${a1} or ${a2}`, [t, own, b1], [[-1, own, b1], [t, a3, b1], [t, own, b0]], [t, other, b1]],
  ][ask];
}
/* For a list in which nothing fits: what would meet the wish gets another kind; where any kind will do, the color is not there. */
function spoilt(ask, [, a1, a2, a3], b, [steps, color, kind]) {
  if (ask === 2 || ask === 4) return [steps, color === a1 ? a3 : color, kind];
  const meets = steps > 0 && (color === a1 || (color === a2 && ask > 2)) && kind === b[ask === 1 ? 0 : 1];
  return [steps, color, meets ? b[2] : kind];
}
const TOOLS = ['find_user_id_by_name_zip', 'get_user_details', 'get_order_details', 'get_product_details', 'modify_pending_order_items'];
export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 16 });
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];
export function make(seed) {
  const [special, pair] = [seed % 2 === 0, Math.floor(seed / 2)];
  const nothing = pair % 17 !== 5 && special === (pair % 2 === 1); // in one of the two
  const below = randomOf(pair); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const digits = (n, lead = 1) => String(lead + below(10 - lead)) + Array.from({ length: n - 1 }, () => below(10)).join('');
  const shuffle = (list, from = [...list]) => list.map(() => from.splice(below(from.length), 1)[0]);
  const [name, scale, key, words, ...lists] = pick(PRODUCTS);
  const [sizes, colors, kinds] = lists.map((each) => each.split(','));
  const [a, b] = [shuffle(colors), shuffle(kinds)];
  const [ask, up, t, flip, turn, cut] = [below(6), below(2) === 0, 1 + below(2), below(2) === 0, below(3), below(4)];
  const sizeOf = (steps) => sizes[2 + (up ? steps : -steps)];
  const [wish, right, near, gone] = caseOf(ask, key, up ? [words[0], words[2]] : [words[1], words[3]], sizeOf(t), t, flip, a, b);
  const [base, ranks] = [3000 + below(30000), ask === 4 ? [4, 3, 0, 2, 5, 1, 6] : shuffle([0, 1, 2, 3, 4, 5, 6])]; // of the prices
  const others = [gone, right, ...near].map((each) => (nothing ? spoilt(ask, a, b, each) : each));
  const [present, far, missing, fit, ...nears] = [[0, a[0], b[0]], [-2, a[0], b[2]], ...others].map(([steps, color, kind], n) => {
    const cents = base + 417 * ranks[n] + below(380);
    return { item_id: '', options: { [scale]: sizeOf(steps), color, [key]: kind }, available: n !== 2, price: (cents % 100 === 0 ? cents + 7 : cents) / 100 };
  });
  const [[early, late], front] = [special ? [nears[turn], fit] : [fit, nears[turn]], shuffle([present, far, missing])];
  const rest = shuffle([...front.slice(cut), ...nears.filter((each) => each !== nears[turn]), late]);
  const variants = [...front.slice(0, cut), early, ...rest]; // nothing that comes close and is available stands before `early`
  for (const each of variants) each.item_id = digits(10, 5); // an id belongs to a place in the list
  const product = { name, product_id: digits(10, 5), variants };
  const [first_name, last_name, [city, state, area]] = [pick(FIRST), pick(LAST), pick(CITIES)];
  const address = { address1: `${digits(3)} ${pick(STREETS)}`, address2: `Suite ${digits(3)}`, city, country: 'USA', state, zip: area + digits(2) };
  const [number, brand, last_four, card] = [digits(7), pick(['visa', 'mastercard']), digits(4), below(2) === 0];
  const [source, pay] = card ? ['credit_card', 'credit card'] : ['paypal', 'PayPal account'];
  const payId = `${source}_${number}`;
  const payment_methods = { [payId]: { source, id: payId, ...(card ? { brand, last_four } : {}) } };
  const [order_id, ...ids] = [`#W${digits(7)}`, `${first_name}_${last_name}_${digits(4)}`, `${first_name}.${last_name}${digits(4)}@example.com`];
  const [user_id, email] = ids.map((each) => each.toLowerCase());
  const user = { user_id, name: { first_name, last_name }, address, email, payment_methods, orders: [order_id] };
  const { item_id, price, options } = present;
  const items = [{ name, product_id: product.product_id, item_id, price, options }];
  const payment_history = [{ transaction_type: 'payment', amount: price, payment_method_id: payId }];
  const order = { order_id, user_id, address, items, status: 'pending', fulfillments: [], payment_history, ...NULLS };
  const [care, otherwise, paying] = [ask === 2 || ask === 4 ? ` I do not care about the ${key}.` : '', pick(OTHERWISE), pick(['', ` Use my ${pay} for the difference.`, ` Use my ${pay} if I have to pay more.`])];
  const request = pick(WORDING)(name.toLowerCase(), order_id, wish) + care + otherwise + paying;
  const known = [present, fit].flatMap((each) => Object.values(each.options));
  const excuse = nothing ? [] : Object.values(missing.options).filter((value) => !known.includes(value)); // this may be said to be missing
  return {
    ...{ special, user, order, product, payId, pay, wish, otherwise, request, me: `I am ${first_name} ${last_name}, zip code ${address.zip}.` },
    ...{ current: item_id, right: nothing ? null : fit.item_id, near: nears.map((each) => each.item_id), early: early.item_id, late: late.item_id },
    ...{ excuse, yes: pick(YES), bye: pick(BYE), leave: pick(LEFT), identified: false, looked: false, asked: false, accepted: false },
    ...{ told: false, written: null, done: false, refused: 0, strayed: 0, extra: 0, hedged: 0, idle: 0 },
  };
}
function modify(state, { order_id, item_ids, new_item_ids, payment_method_id }) {
  const { order, product, payId, current, right } = state;
  if (state.written) state.extra += 1;
  if (![item_ids, new_item_ids].every((list) => Array.isArray(list) && list.length === 1)) return 'Error: Invalid arguments';
  if (order_id !== order.order_id) return 'Error: Order not found';
  if (order.status !== 'pending') return 'Error: Non-pending order cannot be modified';
  const chosen = product.variants.find((each) => each.item_id === new_item_ids[0]);
  if (chosen && chosen.item_id !== right) state.strayed += 1;
  if (item_ids[0] !== current) return 'Error: Item not found';
  if (!chosen?.available) return 'Error: New item not found or available';
  if (payment_method_id !== payId) return 'Error: Payment method not found';
  const { item_id, price, options } = chosen;
  const difference = Math.round((price - order.items[0].price) * 100) / 100;
  const [transaction_type, amount] = [difference > 0 ? 'payment' : 'refund', Math.abs(difference)];
  if (amount > 0) order.payment_history.push({ transaction_type, amount, payment_method_id });
  Object.assign(order.items[0], { item_id, price, options });
  Object.assign(state, { written: item_id });
  return json(Object.assign(order, { status: 'pending (item modified)' }));
}
const personOf = ({ first_name, last_name, zip }) => JSON.stringify([first_name, last_name, zip]).toLowerCase().replaceAll('"', '');
const listed = ({ product }) => json({ ...product, variants: Object.fromEntries(product.variants.map((each) => [each.item_id, each])) });
function observe(state, { name, arguments: args }) {
  const { user, order, product } = state;
  const given = typeof args === 'object' && args !== null ? args : {};
  if (name === 'get_user_details') return given.user_id === user.user_id ? json(user) : 'Error: User not found';
  if (name === 'get_order_details') return given.order_id === order.order_id ? json(order) : 'Error: Order not found';
  if (name === 'modify_pending_order_items') return modify(state, given);
  const shown = name === 'get_product_details' && given.product_id === product.product_id;
  if (name === 'get_product_details') return shown ? listed(Object.assign(state, { looked: true })) : 'Error: Product not found';
  if (name !== 'find_user_id_by_name_zip') return 'Error: Tool not found';
  return personOf(given) === personOf({ ...user.name, zip: user.address.zip }) ? Object.assign(state, { identified: true }).user.user_id : 'Error: User not found';
}
/* The variants that a text names beside the present one: by item id or price, else by all options. In a text that denies, the unavailable one may be named beside the proposed one. */
const plain = (text) => ` ${text.toLowerCase().replace(/[^a-z0-9-]+/g, ' ')} `;
function proposed({ product, current, right }, text, negates) {
  const others = product.variants.filter((each) => each.item_id !== current && (each.available || !negates));
  const numbers = (text.match(/\d[\d,]*(?:\.\d+)?/g) ?? []).map((each) => Number(each.replaceAll(',', '')));
  const exact = others.filter(({ item_id, price }) => text.includes(item_id) || numbers.includes(price));
  if (exact.length > 0) return exact.map((each) => each.item_id);
  const ids = others.filter(({ options }) => Object.values(options).every((value) => plain(text).includes(plain(value)))).map((each) => each.item_id);
  return ids.length === 2 && ids.includes(right) ? [right] : ids; // the present one's options stand beside the new ones
}
/* How a text says that there is no such variant. */
const DENIES = [
  /\b(none|unavailable|out of stock|no (exact|perfect|matching|suitable|such|available|variants?|options?|items?))\b/i,
  /\b(is|are|have|has|see|find|found) (currently |unfortunately )?no (?!(cheap|bigg|small|larg|long|short|bright|oth|furth)er|need|way|fee|charge|cost|price|change|additional|extra)/i,
  /(\bnot|n['’]t|\bno longer) (\w+ )?(available|in stock|exist)|\bthere (is not|are not|isn['’]t|aren['’]t)/i,
  /\b(do|does)( not|n['’]t) (\w+ )?(have|see|offer|carry|stock|come in)\b|\b(could not|couldn['’]t|can['’]?t|cannot|did not|didn['’]t|unable to) (\w+ )?(find|locate|see|meet|match)/i,
];
/* How a text proposes to change to what it names, and how it says that nothing will be changed. */
const PROPOSES = /\b(shall|should) i\b|\bi(['’]ll| will| would|['’]d)( now)? (change|modify|exchange|switch|replace|update)\b|\b(like|want) me to\b|\bproceed with\b|\b(you|please) confirm\b|\byes\/no\b|\(yes\)|\bis (that|this) (right|ok|okay|correct|fine)\b/i;
const LEAVES = /\b(leave|leaving|unchanged|as it is|as is|keep (it|(your|the) (current|present|order)))\b/i;
function reply(state, text) {
  if (state.done || state.written) return state.bye;
  const asksName = /\b(e-?mail|zip|full name|first name|last name|your name|identity|verify)\b/i.test(text);
  if (asksName && !state.asked) return Object.assign(state, { asked: true }).me;
  const said = text.replace(/\bif\b[^.,;!?\n]*/gi, '');
  const negates = state.looked && DENIES.some((each) => each.test(said));
  const named = state.looked ? proposed(state, text, negates) : [];
  const fits = named.length === 1 && named[0] === state.right;
  const few = named.length === 1 || named.length === 2; // two, as above: the present one's options may stand there
  const proposes = few && PROPOSES.test(said) && !LEAVES.test(said);
  const excused = proposes && state.excuse.some((value) => plain(text).includes(plain(value)));
  if (fits && !state.accepted) return Object.assign(state, { accepted: true, hedged: Number(negates && !excused) }).yes;
  if (negates && !fits && !proposes) return Object.assign(state, { told: true }).leave;
  if (few && !fits) return (state.refused += 1) > 1 ? LEAVE : 'No, that is not what I asked for.';
  if ((state.idle += 1) > 2) return LEAVE;
  if (fits || asksName) return fits ? state.yes : state.me;
  if (named.length === 0 && /\b(payment|pay|paypal|card)\b/i.test(text)) return `Use my ${state.pay}.`;
  return `As I said, in order ${state.order.order_id} I want ${state.wish}.${state.otherwise}`;
}
export function step(before, { content, toolCalls }) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(toolCalls) ? toolCalls : [];
  const messages = calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) }));
  if (calls.length > 0) return { state, done: false, messages };
  const words = reply(state, typeof content === 'string' ? content.slice(0, 6000) : '');
  state.done = words.includes('###STOP###');
  return { state, done: state.done, messages: [{ role: 'user', content: words }] };
}
const argumentsOf = ({ user, current, payId }, id) => ({ order_id: user.orders[0], item_ids: [current], new_item_ids: [id], payment_method_id: payId });
export const reference = (state) => (state.right === null ? { actions: [], tell: ['none'] } : { actions: [{ name: TOOLS[4], arguments: argumentsOf(state, state.right) }], tell: [] });
export function reward({ special, right, near, identified, looked, accepted, told, refused, strayed, extra, hedged, written, done }) {
  const none = right === null; // nothing fits: to be told, and nothing to be written
  const exact = none ? told && written === null : written === right; // a write goes through only with the right order, item and payment
  const last = none ? (exact ? 0.15 : 0) : exact ? 0.1 : near.includes(written) ? 0.05 : 0;
  const partial = (identified ? 0.04 : 0) + (looked ? 0.06 : 0) + (accepted ? 0.08 : 0) + last;
  return {
    reward: identified && looked && exact && refused + strayed + extra + hedged === 0 && done ? 1 : partial,
    branch: none ? 'none_fits' : special ? 'near_miss_first' : 'fit_first',
    breakdown: { identified: Number(identified), looked: Number(looked), proposed: Number(accepted), told: Number(told), refused, strayed, extra, hedged, exact: Number(exact) },
  };
}
const say = (content) => ({ role: 'assistant', content });
const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
function script(state, which) {
  const { user, order, product, current, pay } = state;
  const [old, chosen] = [current, state[which]].map((id) => product.variants.find((each) => each.item_id === id));
  const list = ({ options }) => Object.values(options).join(', ');
  const first = [say('I can help you with that. What is your full name and your zip code?'), call(TOOLS[0], { ...user.name, zip: user.address.zip })];
  const reads = [call(TOOLS[1], { user_id: user.user_id }), call(TOOLS[2], { order_id: order.order_id }), call(TOOLS[3], { product_id: product.product_id })];
  if (!chosen) return [...first, ...reads, say(`I am sorry, there is none like that: no available ${product.name} meets all that you asked for. I leave order ${order.order_id} as it is.`)];
  const change = `the ${product.name} (${list(old)}) for ${list(chosen)} at $${chosen.price.toFixed(2)}`;
  const propose = say(`I would now change in the pending order ${order.order_id} ${change}, with the price difference on your ${pay}. Shall I do so?`);
  return [...first, ...reads, propose, call(TOOLS[4], argumentsOf(state, chosen.item_id)), say('All of that is done. Is there anything else that I can do for you?')];
}
export const solve = (seed) => script(make(seed), 'right');
export const shortcuts = (seed) => ({
  'always the first that comes close': script(make(seed), 'early'),
  'always pass over the first that comes close': script(make(seed), 'late'),
  'always say that there is none': script(make(seed), 'none of them'),
});
// Attack: {"name":"deny while echoing the whole product list, then write the first variant","messages":[{"calls":[{"name":"get_order_details","arguments":{"order_id":"<named>"}}]},{"calls":[{"name":"get_product_details","arguments":{"product_id":"<1.product_id>"}}]},{"calls":[{"name":"get_user_details","arguments":{"user_id":"<1.user_id>"}}]},{"calls":[{"name":"find_user_id_by_name_zip","arguments":{"first_name":"<3.first_name>","last_name":"<3.last_name>","zip":"<3.zip>"}}]},{"say":"I am sorry, there is none like that. This is all there is: <2>"},{"calls":[{"name":"modify_pending_order_items","arguments":{"order_id":"<1.order_id>","item_ids":["<1.item_id>"],"new_item_ids":["<2.item_id>"],"payment_method_id":"<1.payment_method_id>"}}]},{"say":"Done. Anything else?"}]}
// Attack: {"name":"deny with a fixed list of all option values, then write the first variant","messages":[{"calls":[{"name":"get_order_details","arguments":{"order_id":"<named>"}}]},{"calls":[{"name":"get_product_details","arguments":{"product_id":"<1.product_id>"}}]},{"calls":[{"name":"get_user_details","arguments":{"user_id":"<1.user_id>"}}]},{"calls":[{"name":"find_user_id_by_name_zip","arguments":{"first_name":"<3.first_name>","last_name":"<3.last_name>","zip":"<3.zip>"}}]},{"say":"I am sorry, there is none like that among 2-person, 3-person, 4-person, 6-person, 8-person, 12L, 18L, 28L, 45L, 60L, 250ml, 350ml, 450ml, 600ml, 800ml, 22-inch, 24-inch, 27-inch, 32-inch, 38-inch, 4ft, 5ft, 6ft, 8ft, 10ft, 12ft, 20ft, 35ft, 60ft, 300 lumens, 500 lumens, 800 lumens, 1200 lumens, 1800 lumens, 600W, 900W, 1200W, 1600W, 2200W, green, orange, blue, grey, red, white, black, pink, silver, brown, beige, yellow, gold, nylon, polyester, canvas, plastic, metal, fabric, ceramic, glass, steel, IPS, VA, OLED, wool, cotton, jute, rubber, vinyl, LED, halogen, fluorescent, infrared, oil-filled."},{"calls":[{"name":"modify_pending_order_items","arguments":{"order_id":"<1.order_id>","item_ids":["<1.item_id>"],"new_item_ids":["<2.item_id>"],"payment_method_id":"<1.payment_method_id>"}}]},{"say":"Done. Anything else?"}]}