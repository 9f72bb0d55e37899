const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"list_stock":{"name":"list_stock","description":"the {item} in stock","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"}},"required":["item"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","price"]}},"cancel_item":{"name":"cancel_item","description":"cancel the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}},"exchange_item":{"name":"exchange_item","description":"exchange the {item} for the {new_item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"new_item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"new_id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id","new_item","new_id"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `complete_every_requested_part`: a message asks for two things, and each is done or refused before `done`.
 * Even seed (both_allowed): both parts are permitted by the status of their items, and both are to be carried out.
 * Odd seed (one_refused): the same message and records, but the item of one part (the first or the second) has the
 * status that forbids it: only the other part is carried out, and the user is told `not allowed`. Carrying out both is
 * wrong here, refusing one is wrong on the even seed, and closing after the first write is wrong on both.
 */
const policy =
  'look up the account first . cancel only pending items . return and exchange only delivered items . ' +
  'else say not allowed . refund the price . do all that is asked . tell how much if asked .';
const TOOLS = ['get_account', 'list_stock', 'cancel_item', 'return_item', 'exchange_item'];
const COLOURS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const KINDS = ['lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table'];
const PRICES = Array.from({ length: 18 }, (_, n) => 10 + 5 * n);
const NEEDS = { cancel: 'pending', return: 'delivered', exchange: 'delivered' };
const PAIRS = [
  ['cancel', 'cancel'],
  ['cancel', 'return'],
  ['return', 'cancel'],
  ['cancel', 'exchange'],
  ['exchange', 'cancel'],
  ['return', 'return'],
  ['cancel', 'cancel'],
  ['return', 'exchange'],
];
const WORDING = [
  (user, wish) => `my account is ${user} . ${wish} .`,
  (user, wish) => `${wish} . my account is ${user} .`,
  (user, wish) => `account ${user} . ${wish} .`,
  (user, wish) => `my account is ${user} . please ${wish} .`,
];

/* Identifiers: a letter and two digits, from some ranges of numbers. */
const span = (letter, ranges) =>
  ranges.flatMap(([from, to]) =>
    Array.from({ length: to - from + 1 }, (_, n) => letter + String(from + n).padStart(2, '0')),
  );
const USERS = span('u', [[2, 22], [39, 69], [71, 91]]);
const IDS = span('i', [[4, 8], [26, 29], [42, 65], [74, 77], [79, 82]]);

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

export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 10 });

const phrase = ({ action, own, stock }) =>
  `${action} the ${own.item}${action === 'exchange' ? ` for the ${stock.item}` : ''}`;

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const [kinds, ids, prices] = [[...KINDS], [...IDS], [...PRICES]];
  const user = USERS[below(USERS.length)];
  const pair = PAIRS[below(PAIRS.length)];
  const barred = below(2); // the part that the twin forbids
  const record = () => {
    const item = `${COLOURS[below(COLOURS.length)]} ${draw(below, kinds)}`;
    const [id, status] = [draw(below, ids), below(2) ? 'pending' : 'delivered'];
    return { item, id, status, price: draw(below, prices) };
  };
  const parts = pair.map((action, n) => {
    const own = record();
    const [colour, kind] = own.item.split(' ');
    const others = COLOURS.filter((each) => each !== colour);
    const stock = { item: `${draw(below, others)} ${kind}`, id: draw(below, ids), price: draw(below, prices) };
    const permitted = special || n !== barred;
    const opposite = NEEDS[action] === 'pending' ? 'delivered' : 'pending';
    own.status = permitted ? NEEDS[action] : opposite;
    return { action, permitted, own, stock };
  });
  const rest = Array.from({ length: 1 + below(2) }, record);
  const unsorted = [...parts.map((part) => part.own), ...rest];
  const records = Array.from({ length: unsorted.length }, () => draw(below, unsorted));
  const kept = parts[1 - barred]; // permitted in both cases, so an amount can be asked for in both
  const asks = below(3) === 0 && kept.action !== 'exchange' ? { item: kept.own.item, price: kept.own.price } : null;
  const wish = parts.map(phrase).join(' and ');
  const opening = WORDING[below(WORDING.length)](user, wish);
  return {
    special,
    user,
    barred,
    parts,
    records,
    asks,
    wish,
    request: asks ? `${opening} how much for the ${asks.item} ?` : opening,
    looked: [],
    blind: false,
    writes: [],
    questions: 0,
    told: '',
    done: false,
  };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

const line = (record) => Object.values(record).join(' ');

function fits(schema, value) {
  if (schema.type !== 'integer') return typeof value === 'string' && new RegExp(schema.pattern).test(value);
  const inside = Number.isInteger(value) && value >= schema.minimum && value <= schema.maximum;
  return inside && value % schema.multipleOf === 0;
}

function observe(state, { name, arguments: raw }) {
  if (!TOOLS.includes(name)) return 'error unknown tool';
  const given = typeof raw === 'object' && raw !== null ? raw : {};
  const { properties, required } = targetTools[name].parameters;
  const complete = Object.keys(given).length === required.length;
  if (!complete || !required.every((field) => fits(properties[field], given[field]))) return 'error bad arguments';
  if (name === 'get_account') {
    if (given.user !== state.user) return 'error not found';
    if (!state.looked.includes(given.user)) state.looked.push(given.user);
    return state.records.map(line).join(' ; ');
  }
  const stock = state.parts.map((part) => part.stock);
  if (name === 'list_stock') {
    const found = stock.find((each) => each.item === given.item);
    if (!found) return 'error not found';
    if (!state.looked.includes(found.item)) state.looked.push(found.item);
    return line(found);
  }
  if (!state.records.some((each) => each.item === given.item && each.id === given.id)) return 'error not found';
  const exchange = name === 'exchange_item';
  if (exchange && !stock.some((each) => each.item === given.new_item && each.id === given.new_id))
    return 'error not found';
  if (!state.looked.includes(state.user) || (exchange && !state.looked.includes(given.new_item))) state.blind = true;
  if (state.writes.length < 60) state.writes.push({ name, arguments: given });
  return 'ok';
}

/* What the user says to a question: yes to what it wants, no to something else, and what it wants once more. */
function answer({ user, parts, records, wish }, text) {
  if (parts.some(({ action, own }) => text.includes(own.item) && text.includes(action))) return `yes . ${wish} .`;
  if (records.some((each) => text.includes(each.item))) return `no . ${wish} .`;
  return text.includes('account') ? `my account is ${user} .` : `${wish} .`;
}

export function step(before, { content, toolCalls }) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  if (Array.isArray(toolCalls) && toolCalls.length > 0)
    return {
      state,
      done: false,
      messages: toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })),
    };
  const text = (typeof content === 'string' ? content : '').slice(0, 4000).toLowerCase().replace(/\p{Cc}+/gu, ' . ');
  state.told += `${text} . `;
  const plain = text.replace(/[^.!?]*\b(?:else|more|further|help)\b[^.!?]*\?/g, ''); // a courtesy is no question
  if (plain.includes('?') && (state.questions += 1) < 3)
    return { state, done: false, messages: [{ role: 'user', content: answer(state, text) }] };
  state.done = true;
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'thanks . bye .' }] };
}

function writeOf({ action, own, stock }) {
  const given = { item: own.item, id: own.id };
  if (action === 'return') given.refund = own.price;
  if (action === 'exchange') Object.assign(given, { new_item: stock.item, new_id: stock.id });
  return { name: `${action}_item`, arguments: given };
}
const same = (a, b) =>
  a.name === b.name && Object.entries(b.arguments).every(([field, value]) => a.arguments[field] === value);

/* The policy's words count as a refusal; where nothing is to be refused, other words for it are wrong as well. */
const REFUSES = /(?:\bnot|n['’]t)(?: \w+)? (?:allowed|permitted)\b/;
const DENIES = /\bcan ?not\b|can['’]t\b|could ?n['’o]t|\bunable\b|impossible|not possible|\brefuse|\bdenied\b|\bdeclin/;
const denies = (text) => REFUSES.test(text) || DENIES.test(text);

function refusesRight({ parts, barred, told }) {
  const names = (clause, part) => new RegExp(`\\b${part.own.item.split(' ')[1]}\\b`).test(clause);
  const clauses = told.split(/[.;!?,]|\bbut\b|\band\b/).filter(denies);
  const wrong = clauses.some((each) => names(each, parts[1 - barred]) && !names(each, parts[barred]));
  return !wrong && clauses.some((each) => REFUSES.test(each));
}

export function reward(state) {
  const { special, user, parts, asks, looked, blind, writes, questions, told, done } = state;
  const seen = looked.includes(user);
  const times = (part) => writes.filter((each) => same(each, writeOf(part))).length;
  const untouched = (part) => !writes.some((each) => each.arguments.item === part.own.item);
  const refused = !special && seen && refusesRight(state);
  const dealt = parts.map((part) => (part.permitted ? !blind && times(part) === 1 : refused && untouched(part)));
  const handled = dealt.filter(Boolean).length;
  const exact = writes.length === parts.filter((part) => part.permitted).length;
  const says = special ? !denies(told) : refused;
  const numbers = told.match(/(?<![\w.])\d+(?:\.\d+)?/g) ?? []; // identifiers are no numbers
  const tells = !asks || (numbers.length > 0 && numbers.every((each) => Number(each) === asks.price));
  const right = done && seen && !blind && handled === 2 && exact && says && tells && questions === 0;
  const partial = (seen ? 0.05 : 0) + 0.1 * handled + (seen && asks && tells ? 0.05 : 0);
  return {
    reward: right ? 1 : partial,
    branch: special ? 'both_allowed' : 'one_refused',
    breakdown: { seen: Number(seen), handled, exact: Number(exact), says: Number(says), tells: Number(tells), questions },
  };
}

export const reference = ({ special, parts, asks }) => ({
  actions: parts.filter((part) => part.permitted).map(writeOf),
  tell: [...(asks ? [String(asks.price)] : []), ...(special ? [] : ['not allowed'])],
});

const call = (name, given) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });

function script({ user, asks }, doing, refusing) {
  const writes = doing.flatMap((part) => {
    const write = writeOf(part);
    const look = part.action === 'exchange' ? [call('list_stock', { item: part.stock.item })] : [];
    return [...look, call(write.name, write.arguments)];
  });
  const amount = asks ? ` the ${asks.item} is ${asks.price} .` : '';
  const refusal = refusing.map((part) => ` the ${part.own.item} is not allowed .`).join('');
  return [call('get_account', { user }), ...writes, say(`done .${amount}${refusal}`)];
}

export function solve(seed) {
  const state = make(seed);
  const of = (permitted) => state.parts.filter((part) => part.permitted === permitted);
  return script(state, of(true), of(false));
}

export function shortcuts(seed) {
  const state = make(seed);
  const { parts, barred } = state;
  const [kept, other] = [parts[1 - barred], parts[barred]];
  return {
    'always both parts': script(state, parts, []),
    'always one part and a refusal': script(state, [kept], [other]),
    'first part, then done': script(state, [parts[0]], []),
    'permitted part, then done': script(state, [kept], []),
    'first part, second refused': script(state, [parts[0]], [parts[1]]),
    'both parts and a refusal': script(state, parts, [other]),
  };
}

export const hint = () =>
  'The message asks for more than one thing. After the first one has gone through, do not close yet: go back to the ' +
  'message and see what is still open. Each thing that the status of its item permits is to be carried out, and each ' +
  'one that it forbids is to be left alone and called not allowed in the closing words.';