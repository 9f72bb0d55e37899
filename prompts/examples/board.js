// prettier-ignore
const targetTools = {"show_day":{"name":"show_day","description":"the board of a day: each slot and who has it","parameters":{"type":"object","properties":{"day":{"type":"string","enum":["monday","tuesday","wednesday","thursday","friday"]}},"required":["day"]},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object","properties":{"slot":{"type":"string","pattern":"^(9|10|11|12|13|14|15|16)h$"},"holder":{"type":"string","pattern":"^[a-z]{3,6}$"}}}},"book_slot":{"name":"book_slot","description":"write a holder into a slot, whoever had it before","parameters":{"type":"object","properties":{"day":{"type":"string","enum":["monday","tuesday","wednesday","thursday","friday"]},"slot":{"type":"string","pattern":"^(9|10|11|12|13|14|15|16)h$"},"holder":{"type":"string","pattern":"^[a-z]{3,6}$"}},"required":["day","slot","holder"]}},"clear_slot":{"name":"clear_slot","description":"make a slot free","parameters":{"type":"object","properties":{"day":{"type":"string","enum":["monday","tuesday","wednesday","thursday","friday"]},"slot":{"type":"string","pattern":"^(9|10|11|12|13|14|15|16)h$"}},"required":["day","slot"]}}};
/*
 * Trains `keep_existing_entries`: what is already there is not overwritten; the user is told and chooses again.
 * Even seed: the slot that is asked for is taken. Odd seed: the same request, and the slot is free.
 */
const policy =
  'you keep the board of the rehearsal room . never take a slot from its holder : say that it is taken and ask for another one .';
const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday'];
const SLOTS = ['9h', '10h', '11h', '12h', '13h', '14h', '15h', '16h'];
const NAMES = ['anna', 'boris', 'carla', 'dario', 'elif', 'femi', 'greta', 'hana', 'ivo', 'jana', 'kofi', 'lea'];
const WORDING = [
  (day, slot, name) => `please put ${name} down for ${slot} on ${day} .`,
  (day, slot, name) => `${name} wants the room on ${day} at ${slot} .`,
  (day, slot, name) => `can you book ${day} ${slot} for ${name} ?`,
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

export const describe = () => ({ policy, tools: Object.values(targetTools), maxSteps: 8 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const [names, slots] = [[...NAMES], [...SLOTS]];
  const [name, other, day] = [draw(below, names), draw(below, names), DAYS[below(DAYS.length)]];
  const [slot, second] = [draw(below, slots), draw(below, slots)];
  const board = Object.fromEntries(SLOTS.map((each) => [each, below(2) ? NAMES[below(NAMES.length)] : 'free']));
  board[slot] = special ? other : 'free';
  board[second] = 'free';
  const request = WORDING[below(WORDING.length)](day, slot, name);
  const wanted = { ...board, [special ? second : slot]: name };
  return { special, name, day, slot, second, board, wanted, request, seen: false, asked: 0, calls: 0, done: false };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

function observe(state, { name, arguments: given }) {
  const tool = targetTools[name];
  if (!tool) return 'error unknown tool';
  const fields = tool.parameters.required;
  const fits = (field) =>
    field === 'day'
      ? DAYS.includes(given.day)
      : field === 'slot'
        ? SLOTS.includes(given.slot)
        : NAMES.includes(given.holder);
  if (Object.keys(given).length !== fields.length || !fields.every(fits)) return 'error bad arguments';
  if (given.day !== state.day)
    return name === 'show_day' ? SLOTS.map((slot) => `${slot} free`).join(' ; ') : 'error closed that day';
  if (name === 'show_day') {
    state.seen = true;
    return SLOTS.map((slot) => `${slot} ${state.board[slot]}`).join(' ; ');
  }
  state.board[given.slot] = name === 'book_slot' ? given.holder : 'free';
  return 'ok';
}

export function step(before, { content, toolCalls = [] }) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  if (toolCalls.length > 0)
    return {
      state,
      done: false,
      messages: toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })),
    };
  if (content.includes('?')) {
    state.asked += 1;
    const answer = state.special ? `then ${state.second} .` : `as I said : ${state.slot} .`;
    if (state.asked < 3) return { state, done: false, messages: [{ role: 'user', content: answer }] };
  }
  state.done = true;
  return { state, done: true, messages: [{ role: 'user', content: 'thank you .' }] };
}

const same = (a, b) => SLOTS.every((slot) => a[slot] === b[slot]);

export function reward({ special, slot, second, board, wanted, seen, asked, done }) {
  const before = { ...wanted, [special ? second : slot]: 'free' };
  const asks = special ? asked === 1 : asked === 0; // a needless question is wrong, so always asking does not pay
  const kept = SLOTS.every((each) => board[each] === before[each] || board[each] === wanted[each]);
  const right = seen && asks && done && same(board, wanted);
  const partial =
    (seen ? 0.05 : 0) + (seen && special && asked > 0 ? 0.1 : 0) + (seen && kept && !same(board, before) ? 0.15 : 0);
  return {
    reward: right ? 1 : partial,
    branch: special ? 'taken' : 'free',
    breakdown: { seen: Number(seen), asks: Number(asks), kept: Number(kept), booked: Number(same(board, wanted)) },
  };
}

const call = (name, given) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });
const booking = ({ day, name }, slot) => ({ name: 'book_slot', arguments: { day, slot, holder: name } });
const book = (state, slot) => call('book_slot', booking(state, slot).arguments);

export const reference = (state) => ({
  actions: [booking(state, state.special ? state.second : state.slot)],
  tell: state.special ? ['taken'] : [],
});

function script(state, asks) {
  const look = call('show_day', { day: state.day });
  if (!asks) return [look, book(state, state.slot), say('booked .')];
  return [look, say('that slot is taken . which other one ?'), book(state, state.second), say('booked .')];
}
export function solve(seed) {
  const state = make(seed);
  return script(state, state.special);
}
export function shortcuts(seed) {
  const state = make(seed);
  return { 'always ask': script(state, true), 'never ask': script(state, false) };
}
