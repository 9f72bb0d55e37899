const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"cancel_item":{"name":"cancel_item","description":"cancel the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `complete_every_requested_part`: nothing that one message asks for is left open when the agent closes.
 * Even seed (special): the message asks for two actions on two items, both are permitted, both must be carried out.
 * Odd seed (twin): the same user and the same account, and the message asks for one of these two actions only; the
 * other item lies in the account just as before, and touching it is wrong. What tells them apart is the request, read
 * again after the first `ok`: the observations are the same up to there.
 * Every requested action fits the item's status, and nobody asks for an amount: those are other capabilities.
 */
const policy = 'look up the account first . ask for it if missing . refund the price . do all that is asked .';
const COLOURS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const THINGS = ['lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table'];
const VERBS = ['cancel', 'rush', 'return'];
const WRITES = { cancel_item: ['item', 'id'], rush_item: ['item', 'id'], return_item: ['item', 'id', 'refund'] };
const REFUSAL = /not allowed|cannot|can not|can't|can’t|unable|not possible|impossible/;

function randomOf(seed) {
  let a = Math.imul(seed + 1, 0x9e3779b1);
  return (limit) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}
const two = (number) => String(number).padStart(2, '0');

/* `count` different numbers below `limit`. */
function different(below, limit, count) {
  const found = [];
  while (found.length < count) {
    const number = below(limit);
    if (!found.includes(number)) found.push(number);
  }
  return found;
}

export const describe = () => ({
  policy,
  tools: [targetTools.get_account, targetTools.cancel_item, targetTools.rush_item, targetTools.return_item],
  maxSteps: 10,
});

/* The write that does `verb` to a record. */
const writeOf = (verb, { item, id, price }) => ({
  name: `${verb}_item`,
  arguments: verb === 'return' ? { item, id, refund: price } : { item, id },
});

function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const user = `u${two(below(100))}`;
  const items = different(below, COLOURS.length * THINGS.length, 4);
  const ids = different(below, 100, 4);
  const drawn = [VERBS[below(3)], VERBS[below(3)]];
  const plain = VERBS[below(2)];
  const verbs = fewer ? [plain, plain] : drawn;
  const others = 1 + below(2);
  const only = below(2); // which of the two parts the twin asks for
  const missing = below(4) === 0 && !fewer;
  const all = items.map((number, n) => {
    const chance = below(2) ? 'pending' : 'delivered';
    return {
      order: below(1000),
      item: `${COLOURS[number % COLOURS.length]} ${THINGS[Math.floor(number / COLOURS.length)]}`,
      id: `i${two(ids[n])}`,
      status: n > 1 ? chance : verbs[n] === 'return' ? 'delivered' : 'pending',
      price: 10 + 5 * below(18),
    };
  });
  const parts = verbs.map((verb, n) => ({ text: `${verb} the ${all[n].item}`, write: writeOf(verb, all[n]) }));
  const asked = special ? parts : [parts[only]];
  const request = `${asked.map((part) => part.text).join(' and ')} .`;
  const account = all
    .slice(0, fewer ? 2 : 2 + others)
    .sort((a, b) => a.order - b.order)
    .map(({ item, id, status, price }) => ({ item, id, status, price }));
  return {
    special,
    user,
    account,
    request,
    missing,
    both: parts.map((part) => part.write),
    wanted: asked.map((part) => part.write),
    told: !missing, // whether the user has said which account it is
    seen: false,
    blind: false,
    writes: [],
    turns: 0,
    needless: 0,
    closing: '',
    done: false,
  };
}
export const make = (seed) => instance(seed, false);
/* The account is named and holds two items, and the same is to be done to both of them (twin: to one of them). */
export const easier = (seed) => instance(seed, true);

const accountText = (user) => `my account is ${user} .`;
export const start = ({ user, request, missing }) => [
  { role: 'system', content: policy },
  { role: 'user', content: missing ? request : `${accountText(user)} ${request}` },
];

const isRefund = (value) => Number.isInteger(value) && value >= 5 && value <= 95 && value % 5 === 0;

function observe(state, call) {
  const name = String(call.name);
  const given = call.arguments && typeof call.arguments === 'object' ? call.arguments : {};
  if (name === 'get_account') {
    if (typeof given.user !== 'string' || Object.keys(given).length !== 1) return 'error bad arguments';
    if (given.user !== state.user) return 'error unknown account';
    state.seen = true;
    return state.account.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ');
  }
  if (!Object.hasOwn(WRITES, name)) return 'error unknown tool';
  const fields = WRITES[name];
  const fits = (field) => (field === 'refund' ? isRefund(given.refund) : typeof given[field] === 'string');
  if (Object.keys(given).length !== fields.length || !fields.every(fits)) return 'error bad arguments';
  if (!state.account.some(({ item, id }) => item === given.item && id === given.id)) return 'error unknown item';
  if (!state.seen) state.blind = true;
  state.writes.push(keyOf({ name, arguments: given }));
  return 'ok';
}

/* A write as one text: its name and its values in the schema's order. */
const keyOf = ({ name, arguments: given }) => [name, ...WRITES[name].map((field) => given[field])].join(' ');

/* The user: names the account, says again what it wants if it is asked before anything is done, then says goodbye. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const toolCalls = message.toolCalls ?? [];
  if (toolCalls.length > 0)
    return {
      state,
      done: false,
      messages: toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })),
    };
  const text = String(message.content ?? '').trim().toLowerCase();
  const asks = text === '' || text.includes('?');
  const answer = (content) => {
    state.turns += 1;
    return { state, done: false, messages: [{ role: 'user', content }] };
  };
  if (state.turns < 2 && state.writes.length === 0) {
    if (!state.told) {
      state.told = true;
      return answer(accountText(state.user));
    }
    if (asks) state.needless += 1;
    if (!state.seen && (asks || text.includes('account'))) return answer(accountText(state.user));
    if (asks) return answer(state.request);
  }
  state.closing = text;
  state.done = true;
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'thanks . bye .' }] };
}

export function reward({ special, wanted, seen, blind, writes, needless, closing, done }) {
  const carried = wanted.filter((write) => writes.includes(keyOf(write))).length;
  const all = carried === wanted.length;
  const exact = all && writes.length === wanted.length; // nothing else, and nothing twice
  const closes = done && closing !== '' && !REFUSAL.test(closing); // all is permitted: a refusal is false
  const right = seen && !blind && exact && needless === 0 && closes;
  const partial = (seen ? 0.05 : 0) + (seen ? (0.15 * carried) / wanted.length : 0);
  return {
    reward: right ? 1 : partial,
    branch: special ? 'two_parts' : 'one_part',
    breakdown: {
      seen: Number(seen),
      carried: carried / wanted.length,
      surplus: writes.length - carried,
      needless,
      closes: Number(closes),
    },
  };
}

export const reference = ({ wanted }) => ({ actions: wanted, tell: [] });

const called = ({ name, arguments: given }) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });

function script({ missing, user }, writes) {
  const look = called({ name: 'get_account', arguments: { user } });
  return [...(missing ? [say('what is your account ?')] : []), look, ...writes.map(called), say('done .')];
}
export const solve = (seed, state = make(seed)) => script(state, state.wanted);
export const shortcuts = (seed, state = make(seed)) => ({
  'only the first part': script(state, state.wanted.slice(0, 1)),
  'only the last part': script(state, state.wanted.slice(-1)),
  'always two parts': script(state, state.both),
  'the whole account': script(
    state,
    state.account.map((record) => writeOf(record.status === 'pending' ? 'cancel' : 'return', record)),
  ),
  'done without doing': script(state, []),
});
export const hint = () =>
  'One message may ask for one thing or for two. Before you say that you are done, read the message again and see whether a part of it is still open: do that part too, and nothing that was not asked for.';