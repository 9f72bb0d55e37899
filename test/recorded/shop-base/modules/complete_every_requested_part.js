const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"cancel_item":{"name":"cancel_item","description":"cancel the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `complete_every_requested_part`: all actions of a message are carried out before the agent closes.
 * Even seed (special): the user asks for two actions, both permitted; after the first ok the second is still open.
 * Odd seed (twin): same user, same account, same first action, and nothing else is asked for, though the other item
 * stands in the account as before and could be acted on: doing more is wrong there.
 */
const policy =
  'look up the account first . cancel and rush only pending items . return only delivered items . ' +
  'refund the price . do all that is asked .';
const COLOURS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const NOUNS = ['lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table'];
const VERBS = ['cancel', 'rush', 'return'];
const OFFERED = ['get_account', 'cancel_item', 'rush_item', 'return_item'];
const BYE = 'thanks . bye .';

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
const twoDigits = (number) => String(number).padStart(2, '0');

export const describe = () => ({ policy, tools: OFFERED.map((name) => targetTools[name]), maxSteps: 8 });

/* The write that carries out a part of the request. */
const writeOf = ({ verb, record }) => ({
  name: `${verb}_item`,
  arguments: { item: record.item, id: record.id, ...(verb === 'return' ? { refund: record.price } : {}) },
});

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const user = `u${twoDigits(below(100))}`;
  const nouns = [...NOUNS];
  const numbers = Array.from({ length: 100 }, (_, n) => n);
  const verbs = [VERBS[below(3)], VERBS[below(3)]];
  const size = 3 + below(2);
  const records = Array.from({ length: 4 }, (_, n) => {
    const item = `${COLOURS[below(COLOURS.length)]} ${draw(below, nouns)}`;
    const id = `i${twoDigits(draw(below, numbers))}`;
    const any = below(2) ? 'pending' : 'delivered';
    const price = 10 + 5 * below(18);
    const status = n > 1 ? any : verbs[n] === 'return' ? 'delivered' : 'pending';
    return { item, id, status, price };
  });
  const both = verbs.map((verb, n) => ({ verb, record: records[n] }));
  const shown = records
    .slice(0, size)
    .map((record) => [below(1000), record])
    .sort(([a], [b]) => a - b)
    .map(([, record]) => record);
  const parts = special ? both : both.slice(0, 1);
  const sentence = `${parts.map(({ verb, record }) => `${verb} the ${record.item}`).join(' and ')} .`;
  return {
    special,
    user,
    records: shown,
    both,
    parts,
    sentence,
    seen: false,
    early: false,
    writes: [],
    asked: 0,
    idle: 0,
    last: '',
    done: false,
  };
}

export const start = ({ user, sentence }) => [
  { role: 'system', content: policy },
  { role: 'user', content: `my account is ${user} . ${sentence}` },
];

function fits(schema, value) {
  if (schema.type !== 'integer') return typeof value === 'string' && new RegExp(schema.pattern).test(value);
  const { minimum, maximum, multipleOf } = schema;
  return Number.isInteger(value) && value >= minimum && value <= maximum && value % multipleOf === 0;
}

function observe(state, call) {
  const name = call?.name;
  const given = call?.arguments;
  if (!OFFERED.includes(name)) return 'error unknown tool';
  const { properties, required } = targetTools[name].parameters;
  if (typeof given !== 'object' || given === null) return 'error bad arguments';
  const complete = Object.keys(given).length === required.length;
  if (!complete || !required.every((field) => fits(properties[field], given[field]))) return 'error bad arguments';
  if (name === 'get_account') {
    if (given.user !== state.user) return 'error unknown account';
    state.seen = true;
    return state.records.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ');
  }
  if (!state.records.some(({ item, id }) => item === given.item && id === given.id)) return 'error unknown item';
  if (!state.seen) state.early = true;
  if (state.writes.length < 60) state.writes.push({ name, arguments: { ...given } });
  return 'ok';
}

/* Whether a question to confirm something is about what the user wants. */
function wants(state, text, items) {
  const verbs = VERBS.filter((verb) => text.includes(verb));
  return (
    verbs.every((verb) => state.parts.some((part) => part.verb === verb)) &&
    items.every((item) => {
      const part = state.parts.find(({ record }) => record.item === item);
      return part !== undefined && (verbs.length === 0 || verbs.includes(part.verb));
    })
  );
}

/* The user: answers questions, and says goodbye to everything else. An empty answer means goodbye. */
function answerOf(state, text) {
  if (text.trim() === '') {
    state.idle += 1;
    return state.idle < 2 ? state.sentence : '';
  }
  const closing = /(anything|something|what) (else|more)/.test(text);
  const forAccount = /(what|which|give|tell|need|provide|your) [^.]{0,40}account/.test(text);
  if (closing || !(text.includes('?') || forAccount)) return '';
  state.asked += 1;
  if (state.asked > 2) return '';
  if (text.includes('account')) return `my account is ${state.user} .`;
  const items = state.records.map(({ item }) => item).filter((item) => text.includes(item));
  if (items.length === 0) return state.sentence;
  return wants(state, text, items) ? 'yes .' : 'no .';
}

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  if (calls.length > 0)
    return {
      state,
      done: false,
      messages: calls.map((call) => ({ role: 'tool', toolCallId: call?.id, content: observe(state, call) })),
    };
  const text = typeof message?.content === 'string' ? message.content.slice(0, 2000).toLowerCase() : '';
  const answer = answerOf(state, text);
  if (answer !== '') return { state, done: false, messages: [{ role: 'user', content: answer }] };
  state.last = text;
  state.done = true;
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: BYE }] };
}

const same = (a, b) =>
  a.name === b.name && Object.keys(b.arguments).every((field) => a.arguments[field] === b.arguments[field]);

export function reward({ special, parts, seen, early, writes, asked, last, done }) {
  const wanted = parts.map(writeOf);
  const made = wanted.filter((want) => writes.some((write) => same(write, want))).length;
  const exact = made === wanted.length && writes.length === wanted.length; // none missing, none twice, none beside
  const refuses = /not allowed|cannot|can not|can't|unable|not possible/.test(last);
  const closed = done && last.trim() !== '' && !refuses;
  const right = seen && !early && exact && asked === 0 && closed;
  const partial = (seen ? 0.05 : 0) + (0.15 * made) / wanted.length;
  return {
    reward: right ? 1 : partial,
    branch: special ? 'two_parts' : 'one_part',
    breakdown: {
      looked: Number(seen && !early),
      parts: made / wanted.length,
      surplus: writes.length - made,
      asked,
      closed: Number(closed),
    },
  };
}

export const reference = ({ parts }) => ({ actions: parts.map(writeOf), tell: [] });

const called = ({ name, arguments: given }) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const script = ({ user }, parts) => [
  called({ name: 'get_account', arguments: { user } }),
  ...parts.map((part) => called(writeOf(part))),
  { role: 'assistant', content: 'done .' },
];

export function solve(seed) {
  const state = make(seed);
  return script(state, state.parts);
}

export function shortcuts(seed) {
  const state = make(seed);
  const { both, records } = state;
  const permitted = records.map((record) => ({ verb: record.status === 'pending' ? 'cancel' : 'return', record }));
  return {
    'always two parts': script(state, both),
    'always the first part only': script(state, both.slice(0, 1)),
    'always the second part only': script(state, both.slice(1)),
    'look up and close': script(state, []),
    'everything that is shown': script(state, permitted),
  };
}