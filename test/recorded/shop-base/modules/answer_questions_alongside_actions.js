const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"cancel_item":{"name":"cancel_item","description":"cancel the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `answer_questions_alongside_actions`: a question that stands beside the requested action is answered too.
 * Even seed (special): the user asks for one permitted action and how much it is; the closing text must tell that amount.
 * Odd seed (twin): the same user, account and action without the question; no amount is to be told.
 */
const policy =
  'look up the account first . refund the price , minus 5 if opened . do all that is asked . ' +
  'tell how much only if asked , the refund for return items , else the price .';
const TOOLS = [
  targetTools.get_account,
  targetTools.rush_item,
  targetTools.cancel_item,
  targetTools.return_item,
];
const COLORS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const THINGS = ['lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table'];
const STATUSES = ['pending', 'delivered'];
const PRICES = Array.from({ length: 17 }, (_, n) => 15 + 5 * n);
const USERS = (
  '01 03 05 06 07 09 10 11 12 13 14 15 17 20 24 25 26 27 29 30 31 32 36 37 39 41 42 43 44 45 46 49 52 53 55 ' +
  '56 57 58 60 61 63 67 71 72 73 75 76 77 78 80 81 82 84 87 88 89 90 91 96 98 99'
).split(' ');
const IDS = (
  '01 04 05 06 07 08 09 10 11 15 17 18 19 20 21 22 23 24 26 28 29 30 31 32 33 35 38 39 40 42 43 45 46 47 48 ' +
  '49 50 51 52 53 54 55 57 58 59 61 63 64 65 66 67 68 70 71 72 74 75 76 77 79 80 81 82 83 84 85 86 88 89 92 95 97 98'
).split(' ');
const KINDS = [
  { verb: 'rush', status: 'pending', opened: false },
  { verb: 'cancel', status: 'pending', opened: false },
  { verb: 'return', status: 'delivered', opened: false },
  { verb: 'return', status: 'delivered', opened: true },
];
const VERBS = ['rush', 'cancel', 'return', 'exchange'];

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

export const describe = () => ({ policy, tools: TOOLS, maxSteps: 8 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const [colors, things, ids, prices] = [[...COLORS], [...THINGS], [...IDS], [...PRICES]];
  const user = `u${USERS[below(USERS.length)]}`;
  const kind = KINDS[below(KINDS.length)];
  const record = (color, thing, status) => ({
    item: `${color} ${thing}`,
    id: `i${draw(below, ids)}`,
    status,
    price: draw(below, prices),
  });
  const thing = draw(below, things);
  const target = record(draw(below, colors), thing, kind.status);
  const items = [record(draw(below, colors), thing, STATUSES[below(2)])]; // one that is called nearly the same
  const more = 1 + below(2);
  for (let n = 0; n < more; n += 1)
    items.push(record(draw(below, colors), draw(below, things), STATUSES[below(2)]));
  items.splice(below(items.length + 1), 0, target);
  const amount = target.price - (kind.opened ? 5 : 0);
  const action = `${kind.verb} the ${target.item}${kind.opened ? ' , it is opened' : ''} .`;
  const question = special ? ` how much for the ${target.item} ?` : '';
  const given = { item: target.item, id: target.id };
  return {
    special,
    user,
    verb: kind.verb,
    item: target.item,
    items,
    amount,
    wanted: { name: `${kind.verb}_item`, arguments: kind.verb === 'return' ? { ...given, refund: amount } : given },
    request: `my account is ${user} . ${action}${question}`,
    seen: false,
    writes: [],
    told: [],
    misled: false,
    asked: 0,
    idle: 0,
    closed: false,
  };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

function fits(schema, value) {
  if (schema.type === 'integer')
    return (
      Number.isInteger(value) &&
      value >= schema.minimum &&
      value <= schema.maximum &&
      value % schema.multipleOf === 0
    );
  return typeof value === 'string' && new RegExp(schema.pattern).test(value);
}

function observe(state, call) {
  const tool = TOOLS.find((each) => each.name === call.name);
  if (!tool) return 'error unknown tool';
  const given = call.arguments;
  const { properties, required } = tool.parameters;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return 'error bad arguments';
  if (Object.keys(given).length !== required.length) return 'error bad arguments';
  if (!required.every((field) => fits(properties[field], given[field]))) return 'error bad arguments';
  if (tool.name === 'get_account') {
    if (given.user !== state.user) return 'error unknown account';
    state.seen = true;
    return state.items.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ');
  }
  if (!state.items.some(({ item, id }) => item === given.item && id === given.id)) return 'error unknown item';
  if (state.writes.length < 50) state.writes.push({ name: tool.name, arguments: given });
  return 'ok';
}

/* What the user takes from a text: the amounts (not the digits of an i.. or u..), and what is plainly false. */
function listen(state, text) {
  const numbers = (text.match(/\b\d+\b/g) ?? []).map((number) => number.slice(0, 9));
  state.told = [...new Set([...state.told, ...numbers])].slice(0, 20);
  const low = text.toLowerCase();
  const namesOther = state.items.some(({ item }) => item !== state.item && low.includes(item));
  if (namesOther && !low.includes(state.item)) state.misled = true;
  if (/not allowed|cannot|can't|can not|unable/.test(low)) state.misled = true;
}

/* The user's answer to a question that comes before anything was done. */
function answer(state, text) {
  const low = text.toLowerCase();
  const other =
    VERBS.some((verb) => verb !== state.verb && low.includes(verb)) ||
    state.items.some(({ item }) => item !== state.item && low.includes(item));
  if (low.includes('account')) return `my account is ${state.user} .`;
  if (other) return 'no .';
  return low.includes(state.item) ? 'yes .' : `my account is ${state.user} .`;
}

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const text = typeof message.content === 'string' ? message.content : '';
  const toolCalls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  const blank = text.trim() === '';
  if (!blank) listen(state, text);
  if (toolCalls.length > 0)
    return {
      state,
      done: false,
      messages: toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })),
    };
  const speak = (content) => ({ state, done: false, messages: [{ role: 'user', content }] });
  if (blank) {
    state.idle += 1;
    if (state.idle < 3) return speak(`my account is ${state.user} .`);
  } else if (text.includes('?') && state.writes.length === 0) {
    state.asked += 1;
    if (state.asked < 3) return speak(answer(state, text));
  } else {
    state.closed = true; // the agent has said something that ends its work
  }
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'thanks . bye .' }] };
}

const same = (write, wanted) =>
  write.name === wanted.name &&
  Object.keys(wanted.arguments).every((field) => write.arguments[field] === wanted.arguments[field]);

export function reward({ special, amount, wanted, seen, writes, told, misled, asked, closed }) {
  const did = seen && writes.some((write) => same(write, wanted));
  const exact = did && writes.length === 1;
  const holds = told.includes(String(amount));
  // asked: one amount, the right one; not asked: none, so that always telling does not pay
  const says = special ? holds && told.length === 1 : told.length === 0;
  const right = exact && says && !misled && asked === 0 && closed;
  const partial = (seen ? 0.03 : 0) + (did ? 0.07 : 0) + (did && special && holds ? 0.1 : 0);
  return {
    reward: right ? 1 : partial,
    branch: special ? 'question' : 'no_question',
    breakdown: {
      seen: Number(seen),
      did: Number(did),
      exact: Number(exact),
      says: Number(closed && says),
      amounts: told.length,
      asked,
      misled: Number(misled),
      closed: Number(closed),
    },
  };
}

const call = (n, name, given) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: `call_${n}`, name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });
const look = ({ user }) => call(0, 'get_account', { user });
const act = ({ wanted }) => call(1, wanted.name, wanted.arguments);
const telling = ({ item, amount }) => say(`done . the ${item} is ${amount} .`);

export const reference = ({ special, wanted, amount }) => ({
  actions: [wanted],
  tell: special ? [String(amount)] : [],
});

export function solve(seed) {
  const state = make(seed);
  return [look(state), act(state), state.special ? telling(state) : say('done .')];
}

export function shortcuts(seed) {
  const state = make(seed);
  const all = state.items.map(({ item, price }) => `the ${item} is ${price} .`).join(' ');
  return {
    'always tell': [look(state), act(state), telling(state)],
    'never tell': [look(state), act(state), say('done .')],
    'tell every price': [look(state), act(state), say(`done . ${all}`)],
    'tell and do not act': [look(state), telling(state)],
  };
}

export const hint = () =>
  'The user may put a question beside what is to be done. Before you close, read the first message again: ' +
  'if it asks how much, say that one amount together with your confirmation; if it does not ask, say no amount.';