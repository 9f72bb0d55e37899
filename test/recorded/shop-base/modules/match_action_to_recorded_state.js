const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"list_stock":{"name":"list_stock","description":"the {item} in stock","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"}},"required":["item"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","price"]}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}},"exchange_item":{"name":"exchange_item","description":"exchange the {item} for the {new_item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"new_item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"new_id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id","new_item","new_id"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `match_action_to_recorded_state`: the status of the very item is held against the rule for the action.
 * Even seed (special): the account shows the item in a status that forbids the action ; the agent says "not allowed"
 * and changes nothing. Odd seed (twin): same user, items and request, but the status permits it ; the agent does it.
 * The other items always hold both statuses, and half of the requests need 'pending', half 'delivered'.
 */
const policy =
  'look up the account first . ask for it if missing . cancel and rush only pending items . ' +
  'return and exchange only delivered items . else say not allowed . refund the price .';
const TOOLS = ['get_account', 'list_stock', 'rush_item', 'return_item', 'exchange_item'];
const WRITES = ['rush_item', 'return_item', 'exchange_item'];
const ACTS = ['rush', 'return', 'rush', 'exchange'];
const NEEDS = { rush: 'pending', return: 'delivered', exchange: 'delivered' };
const STATUSES = ['pending', 'delivered'];
const COLOURS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const KINDS = ['lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table'];

/* How the agent's words are read. */
const NOT_ALLOWED = /\bnot (be )?allowed\b|\bisn't allowed\b/;
const CANNOT = /\b(can ?not|can't|could not|unable|not possible|refuse)\b/;
const CLAIM = /(^|[.,;!]\s*)(all |it is )?done\b/;

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

export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 10 });

export function make(seed) {
  const special = seed % 2 === 0;
  const pair = Math.floor(seed / 2);
  const below = randomOf(pair); // both of a pair draw the same
  const act = ACTS[pair % ACTS.length];
  const [colours, kinds] = [[...COLOURS], [...KINDS]];
  const ids = Array.from({ length: 100 }, (_, n) => `i${twoDigits(n)}`);
  const price = () => 10 + 5 * below(18);
  const user = `u${twoDigits(below(100))}`;
  const count = 3 + below(2);
  const place = 1 + below(count - 1);
  const at = pair % 15 === 4 ? 0 : place; // seldom the first row: judging by that one does not pay
  const flip = below(2);
  const others = [STATUSES[flip], STATUSES[1 - flip], STATUSES[below(2)]];
  const permitted = NEEDS[act];
  const forbidden = permitted === 'pending' ? 'delivered' : 'pending';
  const items = [];
  let targetKind = '';
  for (let n = 0; n < count; n += 1) {
    const [colour, kind, id] = [draw(below, colours), draw(below, kinds), draw(below, ids)];
    const status = n === at ? (special ? forbidden : permitted) : others.shift();
    if (n === at) targetKind = kind;
    items.push({ item: `${colour} ${kind}`, id, status, price: price() });
  }
  const stock = { item: `${draw(below, colours)} ${targetKind}`, id: draw(below, ids), price: price() };
  const known = below(5) > 0; // else the agent has to ask for the account
  const { item, id, price: paid } = items[at];
  const wish = act === 'exchange' ? `exchange the ${item} for the ${stock.item} .` : `${act} the ${item} .`;
  const more = { rush: {}, return: { refund: paid }, exchange: { new_item: stock.item, new_id: stock.id } }[act];
  const wanted = { name: `${act}_item`, arguments: { item, id, ...more } };
  return {
    special,
    act,
    user,
    items,
    stock,
    wish,
    request: known ? `my account is ${user} . ${wish}` : wish,
    wanted,
    known,
    seen: false,
    stocked: false,
    writes: [],
    failed: 0,
    needless: 0,
    turns: 0,
    refused: false,
    declined: false,
    claimed: false,
    done: false,
  };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

function fits(rule, value) {
  if (rule.type === 'integer')
    return (
      Number.isInteger(value) && value >= rule.minimum && value <= rule.maximum && value % rule.multipleOf === 0
    );
  return typeof value === 'string' && new RegExp(rule.pattern).test(value);
}

function write(state, name, given) {
  const { items, stock, writes } = state;
  const record = items.find((each) => each.item === given.item && each.id === given.id);
  const inStock = name !== 'exchange_item' || (given.new_item === stock.item && given.new_id === stock.id);
  if (!record || !inStock) {
    state.failed += 1;
    return 'error no such item';
  }
  if (writes.length < 20) writes.push({ name, arguments: { ...given } });
  return 'ok'; // as in the target, whatever the status is
}

function observe(state, call) {
  const name = call?.name;
  if (!TOOLS.includes(name)) return 'error unknown tool';
  const given = call.arguments !== null && typeof call.arguments === 'object' ? call.arguments : {};
  const { properties, required } = targetTools[name].parameters;
  const good =
    Object.keys(given).length === required.length &&
    required.every((field) => Object.hasOwn(given, field) && fits(properties[field], given[field]));
  if (!good) {
    if (WRITES.includes(name)) state.failed += 1;
    return 'error bad arguments';
  }
  if (name === 'get_account') {
    if (given.user !== state.user) return 'error no such account';
    state.seen = true;
    return state.items.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ');
  }
  if (name === 'list_stock') {
    const { item, id, price } = state.stock;
    if (given.item !== item) return 'error no such item';
    state.stocked = true;
    return `${item} ${id} ${price}`;
  }
  return write(state, name, given);
}

/* The user: gives the account when asked, repeats the wish twice at most, and says goodbye to an answer. */
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
  const answer = (content) => ({ state, done: false, messages: [{ role: 'user', content }] });
  const account = `my account is ${state.user} .`;
  const question = text.includes('?');
  const refused = NOT_ALLOWED.test(text);
  if (!state.known && !refused && (question || /\b(account|user)\b/.test(text))) {
    state.known = true;
    return answer(account);
  }
  const declined = refused || CANNOT.test(text);
  const claimed = CLAIM.test(text);
  const closes =
    text.trim() !== '' && (declined || claimed || state.writes.length > 0 || (state.seen && !question));
  if (!closes && state.turns < 2) {
    state.turns += 1;
    if (question) state.needless += 1;
    return answer(state.known && text.includes('account') ? account : state.wish);
  }
  Object.assign(state, { refused, declined, claimed, done: true });
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'thanks . bye .' }] };
}

const same = (a, b) =>
  a.name === b.name && Object.keys(b.arguments).every((field) => a.arguments[field] === b.arguments[field]);

export function reward(state) {
  const { special, act, wanted, writes, seen, stocked, failed, needless, refused, declined, claimed, done } = state;
  const hit = writes.some((each) => same(each, wanted));
  const near = writes.some((each) => each.name === wanted.name && each.arguments.id === wanted.arguments.id);
  const only = hit && writes.length === 1;
  const untouched = writes.length === 0 && failed === 0;
  const acted = only && !declined && (act !== 'exchange' || stocked);
  const left = untouched && refused && !claimed;
  const right = seen && done && needless === 0 && (special ? left : acted);
  let points = 0; // in hundredths, 30 at most, and none before the account has been read
  if (seen && special) points = 10 + (declined ? 10 : 0) + (declined && writes.length === 0 ? 10 : 0);
  if (seen && !special)
    points = 10 + (act === 'exchange' && stocked ? 5 : 0) + (only ? 15 : hit ? 10 : near ? 5 : 0);
  return {
    reward: right ? 1 : points / 100,
    branch: special ? 'status_forbids' : 'status_permits',
    breakdown: {
      seen: Number(seen),
      wanted_write: Number(only),
      writes: writes.length,
      failed_writes: failed,
      refused: Number(refused),
      needless_questions: needless,
      ended: Number(done),
    },
  };
}

const call = (name, given) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });

export const reference = ({ special, wanted }) => ({
  actions: special ? [] : [wanted],
  tell: special ? ['not allowed'] : [],
});

function script({ known, user, act, stock, wanted }, acts) {
  const ask = known ? [] : [say('what is your account ?')];
  const look = [...ask, call('get_account', { user })];
  if (!acts) return [...look, say('not allowed .')];
  const find = act === 'exchange' ? [call('list_stock', { item: stock.item })] : [];
  return [...look, ...find, call(wanted.name, wanted.arguments), say('done .')];
}

export function solve(seed) {
  const state = make(seed);
  return script(state, !state.special);
}

export function shortcuts(seed) {
  const state = make(seed);
  const delivered = state.items.find((each) => each.id === state.wanted.arguments.id).status === 'delivered';
  return {
    'always act': script(state, true),
    'always refuse': script(state, false),
    'act on whatever is delivered': script(state, delivered),
    'refuse without a look': [say('not allowed .')],
  };
}