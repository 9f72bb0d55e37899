const targetTools = {"get_account":{"name":"get_account","description":"the items of account {user}","parameters":{"type":"object","properties":{"user":{"type":"string","pattern":"^u[0-9]{2}$"}},"required":["user"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"status":{"type":"string","enum":["pending","delivered"]},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","status","price"]}},"list_stock":{"name":"list_stock","description":"the {item} in stock","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"}},"required":["item"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"price":{"type":"integer","minimum":10,"maximum":95,"multipleOf":5}},"required":["item","id","price"]}},"rush_item":{"name":"rush_item","description":"rush the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id"]},"annotations":{"readOnlyHint":false}},"return_item":{"name":"return_item","description":"return the {item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"refund":{"type":"integer","minimum":5,"maximum":95,"multipleOf":5}},"required":["item","id","refund"]},"annotations":{"readOnlyHint":false}},"exchange_item":{"name":"exchange_item","description":"exchange the {item} for the {new_item}","parameters":{"type":"object","properties":{"item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"id":{"type":"string","pattern":"^i[0-9]{2}$"},"new_item":{"type":"string","pattern":"^(red|blue|green|black|white|grey|pink|brown) (lamp|chair|desk|sofa|rug|shelf|mirror|clock|vase|stool|bed|table)$"},"new_id":{"type":"string","pattern":"^i[0-9]{2}$"}},"required":["item","id","new_item","new_id"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `match_action_to_recorded_state`: whether an action is carried out depends on the state of the very item in the
 * account that was read, held against the rule for that action.
 * Even seed (special, 'forbidden'): the named item is in the state that the rule excludes: change nothing, say not allowed.
 * Odd seed (twin, 'permitted'): same user, items and request, and the item is in the right state: carry it out.
 * The two differ in this alone: the named item and one neighbour have swapped their states.
 */
const policy =
  'look up the account first . ask for it if missing . rush only pending items . return and exchange only delivered items . else say not allowed . refund the price .';
const OFFERED = ['get_account', 'list_stock', 'rush_item', 'return_item', 'exchange_item'];
const COLOURS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const KINDS = ['lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table'];
const STATES = ['pending', 'delivered'];
const RULE = { rush: 'pending', return: 'delivered', exchange: 'delivered' };
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
const two = (number) => String(number).padStart(2, '0');

export const describe = () => ({ policy, tools: OFFERED.map((name) => targetTools[name]), maxSteps: 10 });

function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const pair = Math.floor(seed / 2);
  const below = randomOf(pair); // both of a pair draw the same
  const [kinds, numbers] = [[...KINDS], Array.from({ length: 100 }, (_, n) => two(n))];
  const price = () => 10 + 5 * below(18);
  const verb = Object.keys(RULE)[below(3)];
  const user = `u${two(below(100))}`;
  const drawn = Array.from({ length: 4 }, () => ({
    colour: COLOURS[below(COLOURS.length)],
    kind: draw(below, kinds),
    id: `i${draw(below, numbers)}`,
    status: STATES[below(2)],
    price: price(),
  }));
  const more = below(2);
  const missing = below(4) === 0;
  const count = fewer ? 2 : 3 + more;
  // The named item and the neighbour have opposite states, and each place in the list is either one equally often:
  // neither the first, the last nor most of the items tell what holds for the named one.
  const at = pair % count;
  const neighbour = (at + 1 + (Math.floor(pair / count) % (count - 1))) % count;
  const right = RULE[verb];
  const wrong = STATES.find((each) => each !== right);
  const items = drawn.slice(0, count).map(({ colour, kind, id, status, price: cost }, n) => {
    const fits = n === at ? !special : special;
    return { item: `${colour} ${kind}`, id, status: n === at || n === neighbour ? (fits ? right : wrong) : status, price: cost };
  });
  const target = items[at];
  const others = COLOURS.filter((each) => each !== drawn[at].colour);
  const stock = { item: `${draw(below, others)} ${drawn[at].kind}`, id: `i${draw(below, numbers)}`, price: price() };
  const { item, id } = target;
  const given = {
    rush: { item, id },
    return: { item, id, refund: target.price },
    exchange: { item, id, new_item: stock.item, new_id: stock.id },
  }[verb];
  const wish = verb === 'exchange' ? `exchange the ${item} for the ${stock.item} .` : `${verb} the ${item} .`;
  return {
    special,
    user,
    items,
    stock,
    verb,
    wish,
    named: fewer || !missing, // whether the first message names the account
    action: { name: `${verb}_item`, arguments: given }, // right in the twin, the lure in the special instance
    known: fewer || !missing,
    seen: false,
    writes: [],
    turns: 0,
    told: '',
    done: false,
  };
}
export const make = (seed) => instance(seed, false);
/* Two items in the account, and the account is named at once. */
export const easier = (seed) => instance(seed, true);

const accountOf = ({ user }) => `my account is ${user} .`;

export const start = (state) => [
  { role: 'system', content: policy },
  { role: 'user', content: state.named ? `${accountOf(state)} ${state.wish}` : state.wish },
];

function fits(value, schema) {
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
  const name = call.name;
  if (!OFFERED.includes(name)) return 'error unknown tool';
  const given = call.arguments !== null && typeof call.arguments === 'object' ? call.arguments : {};
  const { properties, required } = targetTools[name].parameters;
  if (Object.keys(given).length !== required.length || !required.every((key) => fits(given[key], properties[key])))
    return 'error bad arguments';
  const { user, items, stock } = state;
  if (name === 'get_account') {
    if (given.user !== user) return 'error not found';
    state.seen = true;
    return items.map(({ item, id, status, price }) => `${item} ${id} ${status} ${price}`).join(' ; ');
  }
  if (name === 'list_stock')
    return given.item === stock.item ? `${stock.item} ${stock.id} ${stock.price}` : 'error not found';
  if (!items.some(({ item, id }) => item === given.item && id === given.id)) return 'error not found';
  if (name === 'exchange_item' && (given.new_item !== stock.item || given.new_id !== stock.id)) return 'error not found';
  state.writes.push({ name, arguments: given });
  return 'ok'; // as in the target: the tool itself checks no rule
}

const REFUSAL =
  /\bnot (\w+ )?(allowed|permitted|possible)\b|n['’]t (be )?(allowed|permitted|possible)\b|\b(cannot|can not|can['’]?t|unable|forbidden)\b/;
const refuses = (text) => REFUSAL.test(text);
const claims = (text) => /\bdone\b/.test(text.replace(/(not|t|nothing) (be |is |was )?done/g, ''));

/* The user: gives the account when it is asked for, says again what it wants, and leaves once there is a result. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const toolCalls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  if (toolCalls.length > 0)
    return {
      state,
      done: false,
      messages: toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })),
    };
  const text = typeof message.content === 'string' ? message.content.toLowerCase() : '';
  const asksAccount = text.includes('account') && (text.includes('?') || !state.seen);
  const asks = !state.known && !state.seen && (asksAccount || text.includes('?'));
  const closes = refuses(text) || state.writes.length > 0 || (claims(text) && !text.includes('?'));
  if (asks || !closes) {
    state.turns += 1;
    if (state.turns < 3) {
      if (asks || asksAccount) state.known = true;
      const content = asks || asksAccount ? accountOf(state) : state.wish;
      return { state, done: false, messages: [{ role: 'user', content }] };
    }
  }
  state.told = text;
  state.done = true;
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: BYE }] };
}

const same = (a, b) =>
  a.name === b.name && Object.keys(b.arguments).every((key) => a.arguments[key] === b.arguments[key]);

export function reward({ special, action, seen, writes, told, done }) {
  const exact = writes.some((each) => same(each, action));
  const near = writes.some((each) => each.name === action.name && each.arguments.id === action.arguments.id);
  const clean = special ? writes.length === 0 : writes.length === 1 && exact;
  const says = done && (special ? refuses(told) && !claims(told) : told.trim() !== '' && !refuses(told));
  const right = seen && clean && says;
  const partial = seen ? 0.1 + (!special && near ? 0.1 : 0) + (!special && exact ? 0.1 : 0) : 0;
  return {
    reward: right ? 1 : partial,
    branch: special ? 'forbidden' : 'permitted',
    breakdown: { seen: Number(seen), writes: writes.length, clean: Number(clean), says: Number(says) },
  };
}

export const reference = ({ special, action }) => ({
  actions: special ? [] : [action],
  tell: special ? ['not allowed'] : [],
});

const called = (name, given) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });

function script({ named, user, verb, stock, action }, acts) {
  const look = [...(named ? [] : [say('what is your account ?')]), called('get_account', { user })];
  if (!acts) return [...look, say('not allowed .')];
  const find = verb === 'exchange' ? [called('list_stock', { item: stock.item })] : [];
  return [...look, ...find, called(action.name, action.arguments), say('done .')];
}
export const solve = (seed, state = make(seed)) => script(state, !state.special);
export const shortcuts = (seed, state = make(seed)) => ({
  'always refuse': script(state, false),
  'always act': script(state, true),
  'go by the first item': script(state, state.items[0].status === RULE[state.verb]),
  'go by the last item': script(state, state.items.at(-1).status === RULE[state.verb]),
});
export const hint = () =>
  'The account shows a state for each item, and each action is open to items in one state only. Read the state of the very item that is asked about, not of its neighbours, and hold it against the rule for that action. If it fits, carry the request out; if it does not, change nothing and say not allowed.';