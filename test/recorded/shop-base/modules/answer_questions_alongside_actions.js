const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"cancel_item":{"name":"cancel_item","description":"cancel the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `answer_questions_alongside_actions`: a question that the user put beside an action is answered at the close.
 * The first message lacks the account and is the same in both of a pair; the user's answer with the account differs.
 * Even seed (special): a question about an amount is open when the actions are done, so the amount has to be told.
 * Odd seed (twin): the same actions, but the question was taken back or never put, and telling an amount is wrong.
 */
const policy =
  'look up the account first . ask for it if missing . refund the price , minus 5 if opened . do all that is asked . ' +
  'tell how much if asked , and only then . how much for a return is the refund , else the price .';
const TOOLS = ['get_account', 'rush_item', 'cancel_item', 'return_item'];
const VERBS = ['rush', 'cancel', 'return'];
const ALL = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const GOODS = {
  mirror: ALL,
  clock: ALL,
  table: ALL,
  desk: ['red', 'blue', 'green', 'black', 'white'],
  stool: ['red', 'blue', 'green', 'black', 'white'],
  lamp: ['red', 'black', 'white', 'grey', 'pink'],
  chair: ['red', 'green', 'white', 'grey', 'pink'],
  bed: ['red', 'blue', 'black', 'white', 'grey'],
};
const IDS = [17, 46, 61, 79].flatMap((from) => Array.from({ length: 8 }, (_, n) => `i${from + n}`));
const PRICES = Array.from({ length: 17 }, (_, n) => 15 + 5 * n);
const GREETINGS = ['', '', 'hello . ', 'hi . ', 'good day . '];
const HEADS = ['', '', 'please ', 'i want you to ', 'now '];
const PRICE_QUESTIONS = [
  (item) => `how much for the ${item} ?`,
  (item) => `how much is the ${item} ?`,
  (item) => `how much does the ${item} cost ?`,
];
const REFUND_QUESTIONS = [
  (item) => `how much for the ${item} ?`,
  (item) => `how much do i get for the ${item} ?`,
  (item) => `how much back for the ${item} ?`,
];
const ACCOUNTS = [
  (user) => `my account is ${user} .`,
  (user) => `it is ${user} .`,
  (user) => `the account is ${user} .`,
  (user) => `sorry , my account is ${user} .`,
];
const CALM = ['', '', 'it is for my sister .', 'take your time .', 'thanks for the help .'];
const TAKEN_BACK = [
  'i have found how much by now , no need to tell me .',
  'do not tell me how much , i know it now .',
  'i just saw how much myself , so leave that out .',
  'no need to say how much any more , i looked it up .',
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
const pick = (below, from) => from[below(from.length)];

export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 10 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const user = `u${40 + below(26)}`;
  const [kinds, ids] = [Object.keys(GOODS), [...IDS]];
  let prices = [...PRICES];
  const recordOf = (status) => {
    const kind = draw(below, kinds);
    const item = `${pick(below, GOODS[kind])} ${kind}`;
    const price = draw(below, prices);
    prices = prices.filter((each) => Math.abs(each - price) > 5); // no refund equals another price
    return { item, id: draw(below, ids), status, price };
  };

  const count = 1 + below(2);
  const opened = below(2) === 0;
  const verbs = [VERBS[below(count === 2 ? 2 : 3)], VERBS[below(3)]].slice(0, count); // a return stands last
  const acted = verbs.map((verb) => recordOf(verb === 'return' ? 'delivered' : 'pending'));
  const others = Array.from({ length: 3 + below(2) - count }, () => recordOf(below(2) ? 'pending' : 'delivered'));
  const acts = verbs.map((verb, n) => {
    const { item, id, price } = acted[n];
    return { verb, item, id, refund: verb === 'return' ? price - (opened ? 5 : 0) : null };
  });
  const records = [...acted, ...others]
    .map((record) => [below(1000), record])
    .sort(([a], [b]) => a - b)
    .map(([, record]) => record);

  const [onAct, at] = [below(4) > 0, below(count)]; // mostly about an item that something is done to
  const about = onAct ? acted[at] : others[0];
  const refund = onAct ? acts[at].refund : null;
  const asked = { item: about.item, price: about.price, value: refund === null ? about.price : refund };
  const question = pick(below, refund === null ? PRICE_QUESTIONS : REFUND_QUESTIONS)(about.item);

  const phrases = acts.map(({ verb, item }) => `${verb} the ${item}${verb === 'return' && opened ? ' , it is opened' : ''}`);
  const [greeting, head] = [pick(below, GREETINGS), pick(below, HEADS)];
  const order = `${head}${phrases.join(' and ')} .`;
  const [early, front] = [below(4) > 0, below(4) === 0];
  const asking = front ? `${question} ${order}` : `${order} ${question}`;
  const request = greeting + (early ? asking : order);
  const [account, calm, back] = [pick(below, ACCOUNTS)(user), pick(below, CALM), pick(below, TAKEN_BACK)];
  const tail = special ? (early ? calm : question) : early ? back : calm;
  const answer = `${account} ${tail}`.trim();
  const world = { special, user, records, acts, opened, asked, early, request, answer };
  return { ...world, named: false, seen: false, writes: [], said: [], nudges: 0, done: false };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

const keyOf = (name, { item, id, refund }) => [name, item, id, refund ?? ''].join(' ');
const actionOf = ({ verb, item, id, refund }) => ({
  name: `${verb}_item`,
  arguments: refund === null ? { item, id } : { item, id, refund },
});
const wantedOf = ({ acts }) => acts.map(actionOf).map((action) => keyOf(action.name, action.arguments));

function fits(schema, value) {
  if (schema.type !== 'integer') return typeof value === 'string' && new RegExp(schema.pattern).test(value);
  const { minimum, maximum, multipleOf } = schema;
  return Number.isInteger(value) && value >= minimum && value <= maximum && value % multipleOf === 0;
}

function observe(state, call) {
  if (!TOOLS.includes(call.name)) return 'error : no such tool';
  const given = call.arguments !== null && typeof call.arguments === 'object' ? call.arguments : {};
  const { properties, required } = targetTools[call.name].parameters;
  const right = required.every((field) => Object.hasOwn(given, field) && fits(properties[field], given[field]));
  if (!right || Object.keys(given).length !== required.length) return 'error : invalid arguments';
  if (call.name === 'get_account') {
    if (given.user !== state.user) return 'error : no such account';
    state.seen = state.seen || state.named;
    return state.records.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ');
  }
  if (!state.records.some(({ item, id }) => item === given.item && id === given.id)) return 'error : no such item';
  if (state.writes.length < 40) state.writes.push(keyOf(call.name, given));
  return 'ok';
}

/* Amounts in a text: identifiers are none, and small numbers (how many items, minus 5) are none either. */
const amounts = (text) =>
  (text.replace(/\b[ui]\d+\b/g, ' ').match(/\d+(\.\d+)?/g) ?? []).map(Number).filter((each) => each >= 10);

/* What the user says to a question before the work is done; it never says again what it wants to know. */
function explain({ user, acts, records, opened, asked }, text) {
  if (!text.includes('?')) return 'please go on .';
  if (text.includes('account') && !text.includes(user)) return `my account is ${user} .`;
  const verbs = acts.map(({ verb }) => verb);
  if (/\bopened\b|\bopen\b/.test(text) && verbs.includes('return'))
    return opened ? 'yes , it is opened .' : 'no , it is not opened .';
  const mine = [asked.item, ...acts.map(({ item }) => item)];
  const items = records.map(({ item }) => item);
  const foreign = [...VERBS.filter((verb) => !verbs.includes(verb)), ...items.filter((item) => !mine.includes(item))];
  if (foreign.some((word) => text.includes(word))) return 'no , only what i said .';
  return /how much|price|cost|amount|know|tell/.test(text) ? 'as i said .' : 'yes , as i said .';
}

/* The user: gives its account at the first text, answers two questions at most, and leaves when the work is done. */
function reply(state, text) {
  if (!state.named) {
    state.named = true;
    return state.answer;
  }
  state.said = [...new Set([...state.said, ...amounts(text)])].slice(0, 20);
  const begun = state.writes.length > 0 && !text.includes('?');
  if (state.writes.length < state.acts.length && !begun && state.nudges < 2) {
    state.nudges += 1;
    return explain(state, text);
  }
  state.done = true;
  return 'thanks . bye .';
}

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  if (calls.length > 0)
    return {
      state,
      done: false,
      messages: calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })),
    };
  const text = typeof message.content === 'string' ? message.content.slice(0, 5000).toLowerCase() : '';
  const messages = [{ role: 'user', content: reply(state, text) }];
  return state.done ? { state, messages, done: true, stopReason: 'user_stop' } : { state, messages, done: false };
}

export function reward(state) {
  const { special, asked, seen, writes, said, done } = state;
  const wanted = wantedOf(state);
  const made = wanted.filter((key) => writes.includes(key)).length;
  const exact = made === wanted.length && writes.length === wanted.length;
  const has = said.includes(asked.value);
  // The price of an opened item may stand beside its refund; any other amount is one too many.
  const told = special ? has && said.every((each) => each === asked.value || each === asked.price) : said.length === 0;
  const partial = seen ? 0.05 + (0.1 * made) / wanted.length + (special && has ? 0.1 : 0) : 0;
  return {
    reward: seen && exact && told && done ? 1 : partial,
    branch: special ? 'question_open' : 'no_question',
    breakdown: { seen: Number(seen), made: made / wanted.length, exact: Number(exact), told: Number(told) },
  };
}

export const reference = (state) => ({
  actions: state.acts.map(actionOf),
  tell: state.special ? [String(state.asked.value)] : [],
});

const say = (content) => ({ role: 'assistant', content });
const call = ({ name, arguments: given }) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const script = ({ user, acts }, close) => [
  say('what is your account ?'),
  call({ name: 'get_account', arguments: { user } }),
  ...acts.map(actionOf).map(call),
  say(close),
];
const telling = ({ asked }) => `done . the ${asked.item} is ${asked.value} .`;

export function solve(seed) {
  const state = make(seed);
  return script(state, state.special ? telling(state) : 'done .');
}

export function shortcuts(seed) {
  const state = make(seed);
  const all = state.records.map(({ item, price }) => `the ${item} is ${price} .`).join(' ');
  return {
    'always tell': script(state, telling(state)),
    'never tell': script(state, 'done .'),
    'go by the first message': script(state, state.early ? telling(state) : 'done .'),
    'tell all prices': script(state, `done . ${all}`),
  };
}

export const hint = () =>
  'Before you close, go through everything the user has said: is there something they wanted to know that nobody has ' +
  'answered yet, and do they still want to know it? If so, say it together with the confirmation; finishing the work ' +
  'does not answer it. If nothing is open, confirm and leave it at that.';