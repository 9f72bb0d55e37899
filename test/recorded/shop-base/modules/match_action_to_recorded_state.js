const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"list_stock":{"name":"list_stock","description":"the {item} in stock","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"}},"required":["item"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","price"]}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}},"exchange_item":{"name":"exchange_item","description":"exchange the {item} for the {new_item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"new_item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"new_id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id","new_item","new_id"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `match_action_to_recorded_state`: the status of the very item decides whether what is asked for may be done.
 * Even seed (special): the account shows the item in a status that forbids the action; nothing is done, 'not allowed' is said.
 * Odd seed (twin): the same user, account and request, but the status permits the action; it is done, and refusing is wrong.
 * In a third of the pairs another request is made before or after, on an item with a status of its own (the same in both).
 */
const policy =
  'look up the account first . ask for it if missing . rush only pending items . return and exchange only delivered items . else say not allowed . refund the price . do all that is asked .';
const TOOLS = ['get_account', 'list_stock', 'rush_item', 'return_item', 'exchange_item'].map((name) => targetTools[name]);
const NEEDS = { rush_item: 'pending', return_item: 'delivered', exchange_item: 'delivered' };
/* By pair: as many that need 'pending' as need 'delivered', so that neither status is the good one. */
const ACTIONS = ['rush_item', 'return_item', 'rush_item', 'exchange_item'];
const VERBS = ['rush', 'return', 'exchange', 'cancel'];
const STATUSES = ['pending', 'delivered'];
const COLOURS = {
  lamp: 'red blue green black grey pink brown',
  chair: 'red green white grey pink brown',
  desk: 'red blue green black white grey pink',
  sofa: 'red blue green black white',
  rug: 'blue black white grey brown',
  shelf: 'blue green black white grey',
  mirror: 'red blue green black white grey brown',
  clock: 'red blue black white grey pink',
  vase: 'red blue pink brown',
  stool: 'blue green black pink brown',
  bed: 'red green black white grey brown',
  table: 'red blue green black white grey pink brown',
};
const ITEMS = Object.entries(COLOURS).flatMap(([kind, colours]) =>
  colours.split(' ').map((colour) => `${colour} ${kind}`),
);
const span = ([from, to]) => Array.from({ length: to - from + 1 }, (_, n) => String(from + n).padStart(2, '0'));
const IDS = [[4, 11], [17, 20], [22, 24], [26, 33], [42, 53], [59, 68], [74, 77], [79, 82]]
  .flatMap(span)
  .map((number) => `i${number}`);
const USERS = [[10, 37], [44, 58], [71, 87]].flatMap(span).map((number) => `u${number}`);
const WORDING = [
  (user, ask) => `my account is ${user} . ${ask} .`,
  (user, ask) => `${ask} . my account is ${user} .`,
  (user, ask) => `hello . my account is ${user} . please ${ask} .`,
  (user, ask) => `my account is ${user} . can you ${ask} ?`,
];
const BARE = [(ask) => `${ask} .`, (ask) => `please ${ask} .`, (ask) => `hello . ${ask} .`];
const FOLLOWING = [(ask) => `and ${ask} .`, (ask) => `now ${ask} .`, (ask) => `please ${ask} too .`];

const REFUSAL = /(not|n't) (\w+ )?(allowed|permitted|possible|eligible)|cannot|can't|can not|unable|refuse|decline/;
const NOT_ALLOWED = /(not|n't) (\w+ )?(allowed|permitted)/;
const CLAIM = /(?<!be |not |nothing |was )\bdone\b/;

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
const oppositeOf = (status) => (status === 'pending' ? 'delivered' : 'pending');

export const describe = () => ({ policy, tools: TOOLS, maxSteps: 10 });

/* What the user asks for, and the write that does it (its arguments in the order of the schema). */
function requestOf(name, { item, id, status, price }, stock) {
  const verb = name.split('_')[0];
  const more =
    name === 'return_item'
      ? { refund: price }
      : name === 'exchange_item'
        ? { new_item: stock.item, new_id: stock.id }
        : {};
  const text = `${verb} the ${item}${name === 'exchange_item' ? ` for the ${stock.item}` : ''}`;
  return { verb, item, id, text, allowed: status === NEEDS[name], write: { name, arguments: { item, id, ...more } } };
}

export function make(seed) {
  const forbidden = seed % 2 === 0;
  const pair = Math.floor(seed / 2);
  const below = randomOf(pair); // both of a pair draw the same
  const [names, ids] = [[...ITEMS], [...IDS]];
  const record = (status) => ({ item: draw(below, names), id: draw(below, ids), status, price: 10 + 5 * below(18) });
  const user = USERS[below(USERS.length)];
  const action = ACTIONS[pair % ACTIONS.length];
  const main = record(forbidden ? oppositeOf(NEEDS[action]) : NEEDS[action]);
  const second = record(STATUSES[below(2)]);
  const rest = Array.from({ length: 1 + below(2) }, () => record(STATUSES[below(2)]));
  const stock = record('pending');
  const items = [main, second, ...rest]
    .map((each) => [below(1000), each])
    .sort(([a], [b]) => a - b)
    .map(([, each]) => each);
  const asked = requestOf(action, main, stock);
  const besides = requestOf(['rush_item', 'return_item'][below(2)], second, stock);
  const [two, besidesFirst, known] = [below(3) === 0, below(2) === 0, below(5) > 0];
  const requests = !two ? [asked] : besidesFirst ? [besides, asked] : [asked, besides];
  const [worded, bare, following] = [below(WORDING.length), below(BARE.length), below(FOLLOWING.length)];
  const opening = known ? WORDING[worded](user, requests[0].text) : BARE[bare](requests[0].text);
  const drawn = { forbidden, user, known, items, stock, requests, opening, following };
  return { ...drawn, turn: 0, looked: false, writes: [], counted: 0, answers: [], lost: 0, done: false };
}

export const start = ({ opening }) => [
  { role: 'system', content: policy },
  { role: 'user', content: opening },
];

const keyOf = (name, values) => [name, ...values].join(' ');

function observe(state, { name, arguments: given }) {
  const tool = TOOLS.find((each) => each.name === name);
  if (!tool) return 'error unknown tool';
  if (typeof given !== 'object' || given === null) return 'error bad arguments';
  const { properties, required: fields } = tool.parameters;
  const fits = (field) => {
    const { type, pattern, minimum, maximum, multipleOf } = properties[field];
    const value = given[field];
    if (type === 'integer')
      return Number.isInteger(value) && value >= minimum && value <= maximum && value % multipleOf === 0;
    return typeof value === 'string' && new RegExp(pattern).test(value);
  };
  if (Object.keys(given).length !== fields.length || !fields.every(fits)) return 'error bad arguments';
  const { user, items, stock } = state;
  if (name === 'get_account') {
    if (given.user !== user) return 'error not found';
    state.looked = true;
    return items.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ');
  }
  if (name === 'list_stock')
    return given.item === stock.item ? `${stock.item} ${stock.id} ${stock.price}` : 'error not in stock';
  if (!items.some((each) => each.item === given.item && each.id === given.id)) return 'error not found';
  if (name === 'exchange_item' && (given.new_item !== stock.item || given.new_id !== stock.id))
    return 'error not found';
  const values = fields.map((field) => given[field]);
  if (state.writes.length < 50) state.writes.push(keyOf(name, values));
  return 'ok'; // also when the rule forbids it, as in the target
}

/* The user's reply to a question: the account, or once more what it wants; yes and no only to a request for consent. */
function replyTo(text, { user, items, requests, turn }) {
  const { verb, item, text: ask } = requests[turn];
  if (/\baccount\b/.test(text)) return `my account is ${user} .`;
  const consent = /\b(shall|should|want|confirm|like|sure|may i|can i|do i)\b/.test(text);
  const other =
    items.some((each) => each.item !== item && text.includes(each.item)) ||
    VERBS.some((each) => each !== verb && text.includes(each));
  const own = text.includes(verb) || text.includes(item);
  return `${!consent ? '' : other ? 'no . ' : own ? 'yes . ' : ''}please ${ask} .`;
}

export function step(before, { content, toolCalls }) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(toolCalls) ? toolCalls : [];
  if (calls.length > 0)
    return {
      state,
      done: false,
      messages: calls.map((each) => ({ role: 'tool', toolCallId: each.id, content: observe(state, each) })),
    };
  const say = (words, done) => {
    state.done = done;
    const messages = [{ role: 'user', content: words }];
    return done ? { state, messages, done, stopReason: 'user_stop' } : { state, messages, done };
  };
  if (state.done) return say('bye .', true);
  const text = String(content ?? '').toLowerCase().replaceAll('\u2019', "'");
  if (!state.known && /\b(account|user|id|who)\b/.test(text)) {
    state.known = true;
    return say(`my account is ${state.user} .`, false);
  }
  const acted = state.writes.length > state.counted; // since the present request was made
  const refuses = REFUSAL.test(text);
  if (!acted && !refuses && (text.includes('?') || text.trim() === '')) {
    state.lost += 1;
    return state.lost < 3 ? say(replyTo(text, state), false) : say('bye .', true);
  }
  const { looked } = state;
  state.answers.push({ looked, refuses, notAllowed: NOT_ALLOWED.test(text), claims: CLAIM.test(text) });
  state.counted = state.writes.length;
  state.turn += 1;
  const next = state.requests[state.turn];
  return next ? say(FOLLOWING[state.following](next.text), false) : say('thanks . bye .', true);
}

const keyOfWrite = ({ name, arguments: given }) => keyOf(name, Object.values(given));

export function reward({ forbidden, requests, writes, answers, looked, lost, done }) {
  const wanted = requests.filter(({ allowed }) => allowed).map(({ write }) => keyOfWrite(write));
  const exact = writes.length === wanted.length && wanted.every((key) => writes.includes(key));
  const told = requests.every(({ allowed }, n) => {
    const answer = answers[n];
    if (!answer || !answer.looked) return false;
    return allowed ? !answer.refuses : answer.notAllowed && !answer.claims; // 'done' and 'not allowed' at once is wrong
  });
  const decided = requests.filter(({ allowed, id, write }, n) => {
    if (allowed) return writes.includes(keyOfWrite(write));
    const untouched = !writes.some((key) => key.split(' ').includes(id));
    return Boolean(answers[n]?.looked && answers[n].refuses) && untouched;
  }).length;
  const right = done && looked && exact && told && lost === 0;
  return {
    reward: right ? 1 : looked ? 0.05 + (0.2 * decided) / requests.length : 0,
    branch: forbidden ? 'state_forbids' : 'state_permits',
    breakdown: { looked: Number(looked), decided, exact: Number(exact), told: Number(told), lost },
  };
}

export const reference = ({ requests }) => ({
  actions: requests.filter(({ allowed }) => allowed).map(({ write }) => write),
  tell: requests.some(({ allowed }) => !allowed) ? ['not allowed'] : [],
});

const say = (content) => ({ role: 'assistant', content });
const called = (toolCalls) => ({ role: 'assistant', content: '', toolCalls });
const call = (name, given) => called([{ id: 'call_0', name, arguments: given }]);

function script(seed, acts) {
  const { user, known, requests } = make(seed);
  const messages = [...(known ? [] : [say('what is your account ?')]), call('get_account', { user })];
  for (const request of requests) {
    const { name, arguments: given } = request.write;
    if (!acts(request)) {
      messages.push(say('not allowed .'));
      continue;
    }
    if (name === 'exchange_item') messages.push(call('list_stock', { item: given.new_item }));
    messages.push(call(name, given), say('done .'));
  }
  return messages;
}
export const solve = (seed) => script(seed, ({ allowed }) => allowed);
export const shortcuts = (seed) => ({
  'always refuse': script(seed, () => false),
  'always act': script(seed, () => true),
});
export const hint = () =>
  'What may be done to an item depends on the status that the account shows for that very item, not for its neighbours. Hold it against the rule for what is asked. If they agree, do it and do not refuse; if they do not, change nothing and say not allowed.';