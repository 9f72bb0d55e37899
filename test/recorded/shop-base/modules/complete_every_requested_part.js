const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"cancel_item":{"name":"cancel_item","description":"cancel the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `complete_every_requested_part`: an `ok` closes one part of a request; before the agent closes, it deals with the rest.
 * Even seed (special): two actions are asked for in one message, and both are permitted.
 * Odd seed (twin): the same user, account and first action, and the second one is not asked for, though it could be done.
 * All that is requested is permitted, nothing is missing and nothing is asked, so that no other skill decides.
 */
const policy = 'look up the account first . refund the price . do all that is asked .';
const OFFERED = ['get_account', 'cancel_item', 'rush_item', 'return_item'];
const VERBS = ['cancel', 'rush', 'return'];
const COLOURS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const KINDS = ['lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table'];
const PRICES = Array.from({ length: 18 }, (_, n) => 10 + 5 * n);
const NUMBERS = (
  '05 06 07 10 11 13 15 17 26 27 29 31 32 36 39 42 43 44 45 46 49 52 53 ' +
  '55 56 57 58 60 61 63 67 71 72 75 76 77 80 81 82 84 88 89 91 98 99'
).split(' ');

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

export const describe = () => ({ policy, tools: OFFERED.map((name) => targetTools[name]), maxSteps: 8 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const [kinds, numbers, prices] = [[...KINDS], [...NUMBERS], [...PRICES]];
  const user = `u${NUMBERS[below(NUMBERS.length)]}`;
  const recordOf = (status) => ({
    item: `${COLOURS[below(COLOURS.length)]} ${draw(below, kinds)}`,
    id: `i${draw(below, numbers)}`,
    status,
    price: draw(below, prices),
  });
  const partOf = () => {
    const verb = VERBS[below(VERBS.length)];
    return { verb, ...recordOf(verb === 'return' ? 'delivered' : 'pending') };
  };
  const both = [partOf(), partOf()];
  const others = Array.from({ length: 1 + below(2) }, () => recordOf(below(2) ? 'delivered' : 'pending'));
  const pool = [...both, ...others].map(({ item, id, status, price }) => ({ item, id, status, price }));
  const records = [];
  while (pool.length > 0) records.push(draw(below, pool));
  const parts = special ? both : both.slice(0, 1);
  const wishes = parts.map(({ verb, item }) => `${verb} the ${item}`).join(' and ');
  return {
    special,
    user,
    both,
    parts,
    records,
    request: `my account is ${user} . ${wishes} .`,
    seen: false,
    writes: [],
    gone: [],
    needless: 0,
    untrue: false,
    done: false,
  };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

const writeOf = ({ verb, item, id, price }) => ({
  name: `${verb}_item`,
  arguments: verb === 'return' ? { item, id, refund: price } : { item, id },
});
/* A write as one text: its name and its values in the schema's order. */
const textOf = ({ name, arguments: given }) =>
  [name, ...targetTools[name].parameters.required.map((field) => given[field])].join(' ');

const fits = (value, { type, pattern, minimum, maximum, multipleOf }) =>
  type === 'string'
    ? typeof value === 'string' && new RegExp(pattern).test(value)
    : Number.isInteger(value) && value >= minimum && value <= maximum && value % multipleOf === 0;

function observe(state, call) {
  const { name, arguments: given } = call ?? {};
  if (!OFFERED.includes(name)) return 'error unknown tool';
  const { properties, required } = targetTools[name].parameters;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return 'error bad arguments';
  if (Object.keys(given).length !== required.length) return 'error bad arguments';
  if (!required.every((field) => fits(given[field], properties[field]))) return 'error bad arguments';
  if (name === 'get_account') {
    if (given.user !== state.user) return 'error unknown account';
    state.seen = true;
    const left = state.records.filter(({ id }) => !state.gone.includes(id));
    return left.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ') || 'error no items';
  }
  if (state.writes.length < 40) state.writes.push({ text: textOf({ name, arguments: given }), seen: state.seen });
  const known = state.records.some(({ item, id }) => item === given.item && id === given.id);
  if (known && name !== 'rush_item' && !state.gone.includes(given.id)) state.gone.push(given.id);
  return 'ok';
}

/* What the user says to a question: yes to what was requested, no to another thing, else the account. */
function answerTo({ user, records, parts }, text) {
  const named = records.filter(({ item }) => text.includes(item));
  if (named.length === 0) return `my account is ${user} .`;
  const verbs = VERBS.filter((verb) => text.includes(verb));
  const wanted = ({ item }) =>
    parts.some((part) => part.item === item && (verbs.length === 0 || verbs.includes(part.verb)));
  return named.every(wanted) ? 'yes .' : 'no .';
}

const isQuestion = (text) =>
  (text.includes('?') && !/(anything|something|what) else/.test(text)) ||
  (/\baccount\b/.test(text) && /\b(which|what|need|give|tell|provide|send|please)\b/.test(text));
const REFUSAL = /not allowed|can ?not|can't|unable|refus|not possible|sorry|fail/;

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  if (calls.length > 0)
    return {
      state,
      done: false,
      messages: calls.map((call) => ({ role: 'tool', toolCallId: call?.id, content: observe(state, call) })),
    };
  const text = typeof message.content === 'string' ? message.content.toLowerCase().trim() : '';
  if (text === '' || isQuestion(text)) {
    state.needless += 1; // nothing has to be asked here
    if (state.needless < 3)
      return { state, done: false, messages: [{ role: 'user', content: answerTo(state, text) }] };
  } else {
    const foreign = state.records.filter(({ id }) => !state.parts.some((part) => part.id === id));
    state.untrue = REFUSAL.test(text) || foreign.some(({ item }) => text.includes(item));
  }
  state.done = true;
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'thanks . bye .' }] };
}

export function reward({ special, parts, writes, seen, needless, untrue, done }) {
  const wanted = parts.map((part) => textOf(writeOf(part)));
  const made = wanted.filter((each) => writes.some(({ text, seen: informed }) => informed && text === each)).length;
  const surplus = writes.length - made; // other writes, wrong values and repetitions
  const right = seen && made === wanted.length && surplus === 0 && needless === 0 && !untrue && done;
  const partial = (seen ? 0.05 : 0) + 0.1 * made;
  return {
    reward: right ? 1 : partial,
    branch: special ? 'two_parts' : 'one_part',
    breakdown: {
      seen: Number(seen),
      made: made / wanted.length,
      surplus,
      needless,
      untrue: Number(untrue),
      done: Number(done),
    },
  };
}

const call = ({ name, arguments: given }) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });

export const reference = ({ parts }) => ({ actions: parts.map(writeOf), tell: [] });

const script = (user, parts) => [
  call({ name: 'get_account', arguments: { user } }),
  ...parts.map((part) => call(writeOf(part))),
  say('done .'),
];

export function solve(seed) {
  const { user, parts } = make(seed);
  return script(user, parts);
}

export function shortcuts(seed) {
  const { user, both } = make(seed);
  const [first, second] = both;
  return {
    'always two parts': script(user, both),
    'only the first part': script(user, [first]),
    'only the other part': script(user, [second]),
    'the first part twice': script(user, [first, first]),
  };
}

export const hint = () =>
  'An ok answers one part of a request only. Before you close, read the request again and count what it asks for: ' +
  'each part that is asked for wants to be done, one after the other. Leave alone every item that the user did not name.';