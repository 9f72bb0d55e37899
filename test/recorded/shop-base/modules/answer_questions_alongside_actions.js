const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"cancel_item":{"name":"cancel_item","description":"cancel the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `answer_questions_alongside_actions`: a question beside an action is answered, besides handling the action.
 * Even seed: the user asks for an action and how much the item is; the reply must state the amount.
 * Odd seed: the same user, account and action without the question; an amount that nobody asked for is wrong.
 * There is one action only and the item's state always permits it, so that nothing else decides.
 */
const policy =
  'look up the account first . do all that is asked . refund the price , minus 5 if opened . tell how much only if asked .';
const OFFERED = [targetTools.get_account, targetTools.rush_item, targetTools.cancel_item, targetTools.return_item];
const COLOURS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const NOUNS = ['lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table'];
const PRICES = Array.from({ length: 18 }, (_, n) => 10 + 5 * n);
const spans = (pairs) =>
  pairs.flatMap(([from, to]) => Array.from({ length: to - from + 1 }, (_, n) => String(from + n).padStart(2, '0')));
const USERS = spans([[9, 15], [24, 27], [29, 32], [41, 46], [55, 58], [71, 73], [75, 78], [87, 91]]);
const IDS = spans([[4, 11], [17, 24], [28, 33], [45, 55], [63, 68], [79, 86]]);
const KINDS = [
  { verb: 'rush', status: 'pending', opened: false },
  { verb: 'cancel', status: 'pending', opened: false },
  { verb: 'return', status: 'delivered', opened: false },
  { verb: 'return', status: 'delivered', opened: true },
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

export const describe = () => ({ policy, tools: OFFERED, maxSteps: 8 });

function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const [colours, nouns, ids] = [[...COLOURS], [...NOUNS], [...IDS]];
  const user = `u${USERS[below(USERS.length)]}`;
  const drawn = KINDS[below(KINDS.length)];
  const { verb, status } = drawn;
  const opened = drawn.opened && !fewer;
  const price = PRICES[below(PRICES.length)];
  const amount = opened ? price - 5 : price;
  const noun = draw(below, nouns);
  const wanted = { item: `${draw(below, colours)} ${noun}`, id: `i${draw(below, ids)}`, status, price };
  const prices = PRICES.filter((each) => each !== price && each !== price - 5); // no other item has the amount
  const alike = below(2) === 0; // another item of the same kind in another colour
  const others = [0, 1, 2].map((n) => {
    const own = draw(below, nouns);
    return {
      item: `${draw(below, colours)} ${n === 0 && alike ? noun : own}`,
      id: `i${draw(below, ids)}`,
      status: below(2) ? 'pending' : 'delivered',
      price: draw(below, prices),
    };
  });
  const count = 2 + below(2);
  const place = below(60);
  const kept = others.slice(0, fewer ? 1 : count);
  const at = place % (kept.length + 1);
  const items = [...kept.slice(0, at), wanted, ...kept.slice(at)];
  const doing = `${verb} the ${wanted.item}${opened ? ' , it is opened' : ''} .`;
  const question = special ? ` how much for the ${wanted.item} ?` : '';
  return {
    special,
    user,
    verb,
    opened,
    amount,
    wanted,
    items,
    doing,
    request: `my account is ${user} . ${doing}${question}`,
    seen: false,
    writes: [],
    numbers: [],
    refused: false,
    turns: 0,
    closed: false,
    done: false,
  };
}
export const make = (seed) => instance(seed, false);
/* Only one other item in the account, and nothing that is returned is opened. */
export const easier = (seed) => instance(seed, true);

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

/* Does a call hold all the fields of the schema, of the right form, and no others? */
function fits({ properties, required }, given) {
  const right = (field) => {
    const { type, pattern, minimum, maximum, multipleOf } = properties[field];
    const value = given[field];
    if (type === 'integer')
      return Number.isInteger(value) && value >= minimum && value <= maximum && value % multipleOf === 0;
    return typeof value === 'string' && new RegExp(pattern).test(value);
  };
  return Object.keys(given).length === required.length && required.every(right);
}

function observe(state, call) {
  const tool = OFFERED.find((each) => each.name === call.name);
  if (!tool) return 'error unknown tool';
  const given = call.arguments;
  if (typeof given !== 'object' || given === null || !fits(tool.parameters, given)) return 'error bad arguments';
  if (tool.name === 'get_account') {
    if (given.user !== state.user) return 'error not found';
    state.seen = true;
    return state.items.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ');
  }
  if (!state.items.some(({ item, id }) => item === given.item && id === given.id)) return 'error not found';
  if (state.writes.length < 9)
    state.writes.push({ name: tool.name, item: given.item, id: given.id, refund: given.refund ?? null });
  return 'ok';
}

/* Keeps the bare numbers of what the agent says; those in identifiers (a letter before them) do not count. */
function listen(state, text) {
  const said = (text.match(/(?<![\w.])\d+(?:\.\d+)?/g) ?? []).map(Number);
  state.numbers = [...state.numbers, ...said].slice(0, 20);
  if (/not allowed|can ?not|can't|unable/.test(text)) state.refused = true;
}

/* What the user says to a text before anything was done. */
function answer({ user, verb, wanted, items, doing }, text) {
  if (!text.includes('?')) return doing;
  if (text.includes('account')) return `my account is ${user} .`;
  const otherVerb = ['rush', 'cancel', 'return'].some((each) => each !== verb && text.includes(each));
  const otherItem = items.some(({ item }) => item !== wanted.item && text.includes(item));
  if (otherVerb || otherItem) return `no . ${doing}`;
  return text.includes(wanted.item) && text.includes(verb) ? `yes . ${doing}` : doing;
}

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const text = String(message.content ?? '').toLowerCase();
  const calls = message.toolCalls ?? [];
  listen(state, text);
  if (calls.length > 0)
    return {
      state,
      done: false,
      messages: calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })),
    };
  const acted = state.writes.length > 0;
  if (!acted && (state.turns += 1) < 3)
    return { state, done: false, messages: [{ role: 'user', content: answer(state, text) }] };
  state.closed = acted && text.trim() !== '';
  state.done = true;
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'thanks . bye .' }] };
}

const actionOf = ({ verb, wanted: { item, id }, amount }) => ({
  name: `${verb}_item`,
  arguments: verb === 'return' ? { item, id, refund: amount } : { item, id },
});

/* The amount and no other number, or how it was worked out: the price, minus 5, the refund. */
function tells({ numbers, amount, opened, wanted }) {
  const different = [...new Set(numbers)];
  if (different.length === 1 && different[0] === amount) return true;
  return opened && numbers.join(' ') === `${wanted.price} 5 ${amount}`;
}

export function reward(state) {
  const { special, seen, writes, numbers, amount, refused, turns, closed, done } = state;
  const { name, arguments: given } = actionOf(state);
  const wrote =
    writes.length === 1 &&
    writes[0].name === name &&
    writes[0].item === given.item &&
    writes[0].id === given.id &&
    writes[0].refund === (given.refund ?? null);
  const replied = special ? tells(state) : numbers.length === 0;
  const right = seen && wrote && replied && closed && done && !refused && turns <= 1;
  const named = special && numbers.includes(amount) && new Set(numbers).size <= 3;
  const partial = seen ? 0.05 + (wrote ? 0.1 : 0) + (named ? 0.1 : 0) : 0;
  return {
    reward: right ? 1 : partial,
    branch: special ? 'asked' : 'not_asked',
    breakdown: { seen: Number(seen), wrote: Number(wrote), replied: Number(replied), closed: Number(closed) },
  };
}

export const reference = (state) => ({
  actions: [actionOf(state)],
  tell: state.special ? [String(state.amount)] : [],
});

const called = ({ name, arguments: given }) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });
const look = ({ user }) => called({ name: 'get_account', arguments: { user } });
const script = (state, closing) => [look(state), called(actionOf(state)), say(closing)];
const telling = ({ wanted, amount }) => `done . the ${wanted.item} is ${amount} .`;

export const solve = (seed, state = make(seed)) => script(state, state.special ? telling(state) : 'done .');

export const shortcuts = (seed, state = make(seed)) => ({
  'always tell the amount': script(state, telling(state)),
  'never tell the amount': script(state, 'done .'),
  'tell all prices': script(state, state.items.map(({ item, price }) => `the ${item} is ${price} .`).join(' ')),
  'answer and do nothing': [look(state), say(telling(state)), say(telling(state)), say(telling(state))],
});

export const hint = () =>
  'When the action is done , look at the whole request once more . If it also asks how much , your last reply must say that amount besides saying that it is done . If it does not ask , leave every amount out .';