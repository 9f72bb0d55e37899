const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"list_stock":{"name":"list_stock","description":"the {item} in stock","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"}},"required":["item"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","price"]}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}},"exchange_item":{"name":"exchange_item","description":"exchange the {item} for the {new_item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"new_item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"new_id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id","new_item","new_id"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `match_action_to_recorded_state`: the status of the very item decides whether the requested action is allowed.
 * Even seed (special): the status of the item forbids the action, so the agent says "not allowed" and changes nothing.
 * Odd seed (twin): the same user, request, items, ids and prices, and the status permits the action, so the agent acts.
 */
const policy =
  'look up the account first . rush only pending items . return and exchange only delivered items . ' +
  'else say not allowed . refund the price , minus 5 if opened .';
const TOOLS = ['get_account', 'list_stock', 'rush_item', 'return_item', 'exchange_item'];
const KINDS = ['rush', 'return', 'exchange', 'cancel'];
const COLOURS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const NOUNS = [
  'lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table',
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
const twoDigits = (number) => String(number).padStart(2, '0');
const opposite = (status) => (status === 'pending' ? 'delivered' : 'pending');

export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 8 });

export function make(seed) {
  const special = seed % 2 === 0;
  const pair = Math.floor(seed / 2);
  const below = randomOf(pair); // both of a pair draw the same
  // half of the pairs need a pending item, half a delivered one
  const kind = pair % 2 === 0 ? 'rush' : pair % 4 === 1 ? 'return' : 'exchange';
  const permitted = kind === 'rush' ? 'pending' : 'delivered';
  const status = special ? opposite(permitted) : permitted;

  const nouns = [...NOUNS];
  const numbers = Array.from({ length: 100 }, (_, number) => number);
  const user = `u${twoDigits(below(100))}`;
  const count = 3 + below(2);
  const at = below(count);
  const items = Array.from({ length: count }, (_, n) => {
    const item = `${COLOURS[below(COLOURS.length)]} ${draw(below, nouns)}`;
    const id = `i${twoDigits(draw(below, numbers))}`;
    const price = 10 + 5 * below(18);
    const differs = below(10) < 7; // the other items mostly have the other status
    return { item, id, status: n !== at && differs ? opposite(status) : status, price };
  });
  const target = items[at];
  const [colour, noun] = target.item.split(' ');
  const others = COLOURS.filter((each) => each !== colour);
  const stock = {
    item: `${others[below(others.length)]} ${noun}`,
    id: `i${twoDigits(draw(below, numbers))}`,
    price: 10 + 5 * below(18),
  };
  const unlucky = below(3) === 0;
  const opened = kind === 'return' && unlucky;

  const wishes = {
    rush: `rush the ${target.item} .`,
    return: opened ? `return the ${target.item} , it is opened .` : `return the ${target.item} .`,
    exchange: `exchange the ${target.item} for the ${stock.item} .`,
  };
  return {
    special,
    kind,
    user,
    items,
    target,
    stock,
    opened,
    wish: wishes[kind],
    seen: false, // the account was looked up
    stockSeen: false,
    tried: 0, // calls of a write, whatever came of them
    writes: [], // writes that were carried out
    asked: 0,
    turns: 0, // turns that led nowhere
    refused: false,
    claimed: false,
    done: false,
  };
}

export const start = ({ user, wish }) => [
  { role: 'system', content: policy },
  { role: 'user', content: `my account is ${user} . ${wish}` },
];

function fits(value, { type, pattern, minimum, maximum, multipleOf }) {
  if (type === 'string') return typeof value === 'string' && new RegExp(pattern).test(value);
  return Number.isInteger(value) && value >= minimum && value <= maximum && value % multipleOf === 0;
}

function observe(state, call) {
  const name = call?.name;
  if (!TOOLS.includes(name)) return 'error unknown tool';
  const isWrite = name !== 'get_account' && name !== 'list_stock';
  if (isWrite) state.tried += 1;
  const raw = call.arguments;
  const given = typeof raw === 'object' && raw !== null && !Array.isArray(raw) ? raw : {};
  const { properties, required } = targetTools[name].parameters;
  const complete = required.every((field) => fits(given[field], properties[field]));
  if (!complete || Object.keys(given).length !== required.length) return 'error bad arguments';

  if (name === 'get_account') {
    if (given.user !== state.user) return 'error not found';
    state.seen = true;
    return state.items.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ');
  }
  const { stock } = state;
  if (name === 'list_stock') {
    if (given.item !== stock.item) return 'error not found';
    state.stockSeen = true;
    return `${stock.item} ${stock.id} ${stock.price}`;
  }
  const known = state.items.some(({ item, id }) => item === given.item && id === given.id);
  const inStock = name !== 'exchange_item' || (given.new_item === stock.item && given.new_id === stock.id);
  if (!known || !inStock) return 'error not found';
  state.writes.push({ name, arguments: { ...given } }); // the tool does not check the status
  return 'ok';
}

const REFUSAL =
  /\b(not|isn't|aren't) (be )?(allowed|permitted|possible|eligible)\b|\b(cannot|can't|can not|unable|not able)\b/;
const CLAIM =
  /(^|[.,;:!?]\s*)(it is |it's |all )?done\b|\b(has been|have been|is now|i have|i've|i) (rushed|returned|exchanged)\b/;

/* What the user says to a question, or when nothing came. */
function answerOf({ user, kind, opened, wish }, text) {
  if (text.includes('account')) return `my account is ${user} .`;
  if (kind === 'return' && text.includes('opened')) return opened ? 'it is opened .' : 'it is not opened .';
  const named = KINDS.filter((each) => text.includes(each));
  return named.length > 0 && !named.includes(kind) ? `no . ${wish}` : wish;
}

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const toolCalls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  if (toolCalls.length > 0)
    return {
      state,
      done: false,
      messages: toolCalls.map((call) => ({ role: 'tool', toolCallId: call?.id, content: observe(state, call) })),
    };

  const said = typeof message?.content === 'string' ? message.content : '';
  const text = said.toLowerCase().replaceAll('\u2019', "'").trim();
  const refuses = REFUSAL.test(text);
  const claims = CLAIM.test(text);
  const wrote = state.writes.length > 0;
  const asks = text.includes('?') && !wrote && !(state.seen && (refuses || claims));
  const closes = text !== '' && !asks && (state.seen || wrote || refuses || claims);
  if (!closes) {
    if (asks) state.asked += 1;
    state.turns += 1;
    if (state.turns < 3) return { state, done: false, messages: [{ role: 'user', content: answerOf(state, text) }] };
  }
  state.refused = refuses;
  state.claimed = claims;
  state.done = true;
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'thanks . bye .' }] };
}

/* The write that the user wants, with the right values. */
function wantedWrite({ kind, target, stock, opened }) {
  const { item, id, price } = target;
  if (kind === 'rush') return { name: 'rush_item', arguments: { item, id } };
  if (kind === 'return') return { name: 'return_item', arguments: { item, id, refund: opened ? price - 5 : price } };
  return { name: 'exchange_item', arguments: { item, id, new_item: stock.item, new_id: stock.id } };
}

export function reward(state) {
  const { special, kind, seen, stockSeen, tried, writes, asked, refused, claimed, done } = state;
  const wanted = wantedWrite(state);
  const near = writes.some((each) => each.name === wanted.name && each.arguments.id === wanted.arguments.id);
  const exact =
    writes.length === 1 &&
    writes[0].name === wanted.name &&
    Object.entries(wanted.arguments).every(([field, value]) => writes[0].arguments[field] === value);
  const acted = special ? tried === 0 : exact;
  const told = special ? refused && !claimed : !refused;
  const right = seen && asked === 0 && done && acted && told;
  const onTheWay = special
    ? done && acted && told
      ? 0.15
      : 0
    : (near ? 0.1 : 0) + (kind === 'exchange' && stockSeen ? 0.05 : 0);
  return {
    reward: right ? 1 : seen ? 0.1 + onTheWay : 0,
    branch: special ? 'state_forbids' : 'state_permits',
    breakdown: {
      seen: Number(seen),
      acted: Number(acted),
      told: Number(done && told),
      questions: asked,
      ended: Number(done),
    },
  };
}

export const reference = (state) => ({
  actions: state.special ? [] : [wantedWrite(state)],
  tell: state.special ? ['not allowed'] : [],
});

const call = (name, given) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });

function acting(state, last) {
  const wanted = wantedWrite(state);
  const look = [call('get_account', { user: state.user })];
  if (state.kind === 'exchange') look.push(call('list_stock', { item: state.stock.item }));
  return [...look, call(wanted.name, wanted.arguments), say(last)];
}
const refusing = (state) => [call('get_account', { user: state.user }), say('not allowed .')];

export function solve(seed) {
  const state = make(seed);
  return state.special ? refusing(state) : acting(state, 'done .');
}

export function shortcuts(seed) {
  const state = make(seed);
  return {
    'always act': acting(state, 'done .'),
    'always refuse': refusing(state),
    'act and then refuse': acting(state, 'not allowed .'),
    'refuse without a look': [say('not allowed .')],
  };
}

export const hint = () =>
  'Find the very item that the user named in what the account shows, and read its status, not that of its neighbours. ' +
  'Hold this status against the rule for the action that is asked for: if the rule permits it, do it and say done ; ' +
  'if not, change nothing and say not allowed .';