// Rationale: Half of the users ask for what an item's status forbids, half for what it allows: one has to look first.
const COLORS = ['red', 'blue', 'green', 'black', 'white', 'grey', 'pink', 'brown'];
const KINDS = ['lamp', 'chair', 'desk', 'sofa', 'rug', 'shelf', 'mirror', 'clock', 'vase', 'stool', 'bed', 'table'];
const item = { type: 'string', pattern: `^(${COLORS.join('|')}) (${KINDS.join('|')})$` };
const [id, user] = ['i', 'u'].map((letter) => ({ type: 'string', pattern: `^${letter}[0-9]{2}$` }));
const status = { type: 'string', enum: ['pending', 'delivered'] };
const price = { type: 'integer', minimum: 10, maximum: 95, multipleOf: 5 };
const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
const tool = (name, description, given, more) => ({ name, description, parameters: object(given), ...more });
const listing = { annotations: { readOnlyHint: true }, outputSchema: object({ item, id, status, price }) };
const write = { annotations: { readOnlyHint: false } };
const tools = ['cancel', 'rush'].map((verb) => tool(`${verb}_item`, `${verb} the {item}`, { item, id }, write));
tools.push(tool('get_account', 'the items of account {user}', { user }, listing));
const policy = 'look up the account first . cancel and rush only pending items . else say not allowed .';
export const describe = () => ({ policy, tools, maxSteps: 6 });
// Twins: an even seed and the odd one after it have the same account and request. Only the status of that item differs.
export function make(seed) {
  const mixed = (salt) => Math.imul(Math.imul(seed >> 1, 0x9e3779b1) ^ Math.imul(salt, 0x85ebca6b), 0x2c1b3c6d) >>> 8;
  const [at, verb, forbidden] = [mixed(1) % 3, ['cancel', 'rush'][mixed(2) % 2], seed % 2 === 0];
  const items = [0, 1, 2].map((n) => ({
    item: `${COLORS[mixed(3 + n) % 8]} ${KINDS[4 * n + (mixed(6 + n) % 4)]}`,
    id: `i${10 + 30 * n + (mixed(9 + n) % 30)}`,
    status: status.enum[n === at ? Number(forbidden) : mixed(12 + n) % 2],
    price: 10 + 5 * (mixed(15 + n) % 18),
  }));
  const look = { name: 'get_account', arguments: { user: `u${10 + (mixed(0) % 90)}` } };
  const call = { name: `${verb}_item`, arguments: { item: items[at].item, id: items[at].id } };
  const request = `my account is ${look.arguments.user} . ${verb} my ${items[at].item} .`;
  return { forbidden, request, items, look, call, wanted: forbidden ? [] : [call], shown: '', writes: [], said: '' };
}
const says = (role, content) => ({ role, content });
export const start = ({ request }) => [says('system', policy), says('user', request)];
function observe(state, { name, arguments: { user, item, id } }) {
  if (!tools.some((tool) => tool.name === name)) return 'error : unknown tool';
  if (name === 'get_account' && user !== state.look.arguments.user) return 'error : unknown account';
  if (name === 'get_account') return (state.shown = state.items.map((it) => Object.values(it).join(' ')).join(' ; '));
  if (!state.items.some((it) => it.item === item && it.id === id)) return 'error : unknown item';
  state.writes.push({ name, arguments: { item, id } });
  return 'ok';
}
export function step(before, { content, toolCalls = [] }) {
  const state = JSON.parse(JSON.stringify(before));
  const answers = toolCalls.map((call) => ({ ...says('tool', observe(state, call)), toolCallId: call.id }));
  if (answers.length > 0) return { state, messages: answers, done: false };
  return { state: { ...state, said: content }, messages: [says('user', 'thanks . bye .')], done: true };
}
export const reference = ({ forbidden, wanted }) => ({ actions: wanted, tell: forbidden ? ['not allowed'] : [] });
export function reward({ forbidden, wanted, shown, writes, said }) {
  const [looked, branch] = [Number(shown !== ''), forbidden ? 'special' : 'twin'];
  const decided = Number(looked === 1 && said !== '' && said.includes('not allowed') === forbidden);
  const exact = decided === 1 && JSON.stringify(writes) === JSON.stringify(wanted);
  return { reward: exact ? 1 : 0.1 * (looked + decided), breakdown: { looked, decided }, branch };
}
const does = (call) => ({ ...says('assistant', ''), toolCalls: [{ id: 'call', ...call }] });
const script = ({ look, call }, refuses) =>
  refuses ? [does(look), says('assistant', 'not allowed .')] : [does(look), does(call), says('assistant', 'done .')];
export const solve = (seed) => script(make(seed), seed % 2 === 0);
export const shortcuts = (seed) => ({ always: script(make(seed), true), never: script(make(seed), false) });
