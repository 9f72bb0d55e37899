const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"cancel_item":{"name":"cancel_item","description":"cancel the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `answer_questions_alongside_actions`: the action is done, and the question put beside it is answered in the reply.
 * Even seed (special): the user asks for an action and, after it, how much the item is. The closing reply must hold the
 * amount (the price ; for a return the refund). Odd seed (twin): the same account and action without the question ;
 * an amount in the reply is wrong there. The action is always permitted, and there is only one.
 */
const policy =
  'look up the account first . refund the price , minus 5 if opened . do all that is asked . tell how much only if asked .';
const COLOURS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const KINDS = ['lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table'];
const STATUSES = ['pending', 'delivered'];
const VERBS = ['rush', 'cancel', 'return'];
const DEEDS = [
  { verb: 'rush', status: 'pending', opened: false },
  { verb: 'cancel', status: 'pending', opened: false },
  { verb: 'return', status: 'delivered', opened: false },
  { verb: 'return', status: 'delivered', opened: true },
];
const TOOLS = ['get_account', 'rush_item', 'cancel_item', 'return_item'];
const ASKING = /\?|\bwhich\b|\bwhat\b|\bconfirm|\byour account\b/;

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
const twoDigits = (n) => String(n).padStart(2, '0');

export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 8 });

export function make(seed) {
  const asked = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const items = COLOURS.flatMap((colour) => KINDS.map((kind) => `${colour} ${kind}`));
  const ids = Array.from({ length: 100 }, (_, n) => `i${twoDigits(n)}`);
  const prices = Array.from({ length: 18 }, (_, n) => 10 + 5 * n);
  const user = `u${twoDigits(below(100))}`;
  const { verb, status, opened } = DEEDS[below(DEEDS.length)];
  const [item, id, price] = [draw(below, items), draw(below, ids), draw(below, prices)];
  const otherPrices = prices.filter((each) => each !== price - 5); // no other price equals the refund
  const records = Array.from({ length: 2 + below(2) }, () => ({
    item: draw(below, items),
    id: draw(below, ids),
    status: STATUSES[below(STATUSES.length)],
    price: draw(below, otherPrices),
  }));
  records.splice(below(records.length + 1), 0, { item, id, status, price });
  const amount = opened ? price - 5 : price;
  const given = verb === 'return' ? { item, id, refund: amount } : { item, id };
  const action = `${verb} the ${item}${opened ? ' , it is opened' : ''} .`;
  const question = asked ? ` how much for the ${item} ?` : '';
  return {
    asked,
    user,
    verb,
    opened,
    item,
    price,
    amount,
    records,
    action,
    request: `my account is ${user} . ${action}${question}`,
    wanted: { name: `${verb}_item`, arguments: given },
    seen: false,
    writes: [],
    turns: 0,
    told: '',
    done: false,
  };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

/* Whether the arguments are those of the tool's schema, all of them and no others. */
function fits(tool, given) {
  const { properties, required } = tool.parameters;
  if (Object.keys(given).length !== required.length) return false;
  return required.every((field) => {
    const [schema, value] = [properties[field], given[field]];
    if (schema.type === 'string')
      return typeof value === 'string' && (!schema.pattern || new RegExp(schema.pattern).test(value));
    return (
      Number.isInteger(value) &&
      value >= schema.minimum &&
      value <= schema.maximum &&
      value % schema.multipleOf === 0
    );
  });
}

function observe(state, call) {
  const name = call?.name;
  if (!TOOLS.includes(name)) return 'error unknown tool';
  const given = call.arguments;
  if (typeof given !== 'object' || given === null || Array.isArray(given)) return 'error bad arguments';
  if (!fits(targetTools[name], given)) return 'error bad arguments';
  if (name === 'get_account') {
    if (given.user !== state.user) return 'error unknown account';
    state.seen = true;
    return state.records.map((each) => `${each.item} ${each.id} ${each.status} ${each.price}`).join(' ; ');
  }
  if (!state.records.some((each) => each.item === given.item && each.id === given.id)) return 'error unknown item';
  if (state.writes.length < 50) state.writes.push({ name, arguments: given });
  return 'ok';
}

const namesOther = ({ records, item }, text) => records.some((each) => each.item !== item && text.includes(each.item));

/* What the user says to a question: yes to what it wants, no to something else, or the request again. */
function answerTo(state, text) {
  const otherVerb = VERBS.some((verb) => verb !== state.verb && text.includes(verb));
  const otherUser = (text.match(/\bu\d{2}\b/g) ?? []).some((user) => user !== state.user);
  if (otherVerb || otherUser || namesOther(state, text)) return `no . ${state.request}`;
  if (text.includes(state.verb) && text.includes(state.item)) return `yes . ${state.action}`;
  return state.request;
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
  const text = String(message?.content ?? '').toLowerCase();
  state.told = `${state.told} ${text}`.trim().slice(0, 4000);
  if (state.writes.length === 0 && state.turns < 2 && ASKING.test(text)) {
    state.turns += 1;
    return { state, done: false, messages: [{ role: 'user', content: answerTo(state, text) }] };
  }
  state.done = true;
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'thanks . bye .' }] };
}

/* The different numbers in the replies, without identifiers and without the working of a refund ('40 minus 5'). */
function numbersIn({ told, asked, opened, price }) {
  const plain = told.replace(/\b[iu]\d{2}\b/g, ' ');
  const working = new RegExp(`\\b${price} *(minus|less|-) *5\\b`, 'g');
  const rest = asked && opened ? plain.replace(working, ' ') : plain;
  return [...new Set((rest.match(/\d+(\.\d+)?/g) ?? []).map(Number))];
}

const sameWrite = (a, b) =>
  a.name === b.name && Object.keys(b.arguments).every((field) => a.arguments[field] === b.arguments[field]);

export function reward(state) {
  const { asked, seen, writes, wanted, told, done, amount, price } = state;
  const numbers = numbersIn(state);
  const written = writes.length === 1 && sameWrite(writes[0], wanted);
  const exact = numbers.length === 1 && numbers[0] === amount;
  const near = numbers.length === 1 && numbers[0] === price; // an answer, but not minus 5
  const says = asked ? exact : numbers.length === 0; // an amount that nobody asked for is wrong
  const sound = told !== '' && !told.includes('not allowed') && !namesOther(state, told);
  const right = seen && written && says && sound && done;
  const answered = asked && seen ? (exact ? 0.1 : near ? 0.05 : 0) : 0;
  const partial = (seen ? 0.05 : 0) + (seen && written ? 0.1 : 0) + answered;
  return {
    reward: right ? 1 : partial,
    branch: asked ? 'asked' : 'not_asked',
    breakdown: {
      seen: Number(seen),
      written: Number(written),
      says: Number(says),
      sound: Number(sound),
      closed: Number(done),
    },
  };
}

export const reference = ({ asked, wanted, amount }) => ({
  actions: [wanted],
  tell: asked ? [String(amount)] : [],
});

const call = (name, given) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });

function script({ user, item, amount, wanted }, acts, tells) {
  return [
    call('get_account', { user }),
    ...(acts ? [call(wanted.name, wanted.arguments)] : []),
    say(tells ? `done . the ${item} is ${amount} .` : 'done .'),
  ];
}

export function solve(seed) {
  const state = make(seed);
  return script(state, true, state.asked);
}

export function shortcuts(seed) {
  const state = make(seed);
  return {
    'always tell': script(state, true, true),
    'never tell': script(state, true, false),
    'tell without acting': script(state, false, true),
  };
}