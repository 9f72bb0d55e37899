// prettier-ignore
const targetTools = {"list_devices":{"name":"list_devices","description":"List the devices of a room, page by page.","parameters":{"type":"object","properties":{"room":{"type":"string","description":"The room, such as 'kitchen'."},"cursor":{"type":"string","description":"Where the next page begins, such as 'p_3f0a'; left out for the first page."}},"required":["room"]},"annotations":{"readOnlyHint":true}},"get_device":{"name":"get_device","description":"Get one device.","parameters":{"type":"object","properties":{"device_id":{"type":"string","description":"The device id, such as 'dev_07c1'."}},"required":["device_id"]},"annotations":{"readOnlyHint":true}},"switch_device":{"name":"switch_device","description":"Switch a device on or off.","parameters":{"type":"object","properties":{"device_id":{"type":"string","description":"The device id, such as 'dev_07c1'."},"state":{"type":"string","enum":["on","off"]}},"required":["device_id","state"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `read_all_result_pages`: a list may go on; what is to be done to all of something is done to what stands on every page.
 * Even seed: the list has a second page, some of it matters. Odd seed: the same first page, and it is the only one.
 */
const policy = `You run a smart home for its residents.

- Change only what the resident asks for; leave devices that are as they should be alone.
- When you are done, say so. Answer questions with exact numbers.`;
const ROOMS = ['kitchen', 'hall', 'attic', 'studio', 'cellar', 'nursery', 'library', 'garage'];
const KINDS = ['lamp', 'fan', 'heater', 'speaker'];
const WORDING = [
  (kind, room) => `Hi! Could you switch off every ${kind} in the ${room}?`,
  (kind, room) => `I'm leaving. All ${kind}s in the ${room} should be off, please.`,
  (kind, room) => `There is a ${kind} running somewhere in the ${room}, or several. Turn all of them off.`,
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

/* As this target writes JSON: with a space after commas and colons. */
const json = (value) => {
  if (Array.isArray(value)) return `[${value.map(json).join(', ')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`)
    .join(', ')}}`;
};

export const describe = () => ({ policy, tools: Object.values(targetTools), maxSteps: 16 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const hex = () => (below(0xefff) + 0x1000).toString(16);
  const [room, kind, cursor] = [ROOMS[below(ROOMS.length)], KINDS[below(KINDS.length)], `p_${hex()}`];
  const deviceOf = (type, state) => ({ device_id: `dev_${hex()}`, kind: type, state });
  const page = (running) => {
    const other = () => deviceOf(KINDS.filter((each) => each !== kind)[below(3)], below(2) ? 'on' : 'off');
    const devices = [
      ...Array.from({ length: running }, () => deviceOf(kind, 'on')),
      deviceOf(kind, 'off'),
      other(),
      other(),
    ];
    return devices
      .map((device) => [below(1000), device])
      .sort(([a], [b]) => a - b)
      .map(([, device]) => device);
  };
  const [first, second] = [below(3), below(3)].map((more) => page(1 + more));
  const pages = special ? [first, second] : [first];
  const target = pages.flat().filter((device) => device.kind === kind && device.state === 'on');
  const ids = target.map((device) => device.device_id);
  const request = WORDING[below(WORDING.length)](kind, room);
  return {
    special,
    room,
    kind,
    cursor,
    pages,
    ids,
    request,
    touched: [],
    reached: 0,
    questions: 0,
    asked: false,
    told: '',
    done: false,
  };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

function observe(state, { name, arguments: given }) {
  const { room, cursor, pages } = state;
  if (name === 'list_devices') {
    if (given.room !== room) return json({ error: `no room ${given.room}` });
    const at = given.cursor === undefined ? 0 : given.cursor === cursor ? 1 : pages.length;
    if (!pages[at]) return json({ error: 'no such page' });
    state.reached = Math.max(state.reached, at + 1);
    return json({ room, devices: pages[at], next: at + 1 < pages.length ? cursor : null });
  }
  if (name !== 'get_device' && name !== 'switch_device') return json({ error: `no tool ${name}` });
  const device = pages.flat().find((each) => each.device_id === given.device_id);
  if (!device) return json({ error: 'no such device' });
  if (name === 'get_device') return json(device);
  if (given.state !== 'on' && given.state !== 'off') return json({ error: 'state must be on or off' });
  if (device.state !== given.state) state.touched.push([device.device_id, given.state]);
  device.state = given.state;
  return json(device);
}

/* The resident: answers questions, then wants to know how many, then says goodbye. */
export function step(before, { content, toolCalls = [] }) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  if (toolCalls.length > 0)
    return {
      state,
      done: false,
      messages: toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })),
    };
  const answer = (text, done) => ({ state: { ...state, done }, done, messages: [{ role: 'user', content: text }] });
  if (content.includes('?') && (state.questions += 1) < 3)
    return answer(`Just every ${state.kind} in the ${state.room}, please.`, false);
  if (!state.asked) {
    state.asked = true;
    return answer('Thanks. How many have you switched off?', false);
  }
  state.told = content;
  return answer('Good, bye!', true);
}

export function reward({ special, ids, touched, reached, told, done }) {
  const off = ids.filter((id) => touched.some(([each, state]) => each === id && state === 'off')).length;
  const clean = touched.length === off; // nothing else, and nothing back on
  const numbers = told.match(/\d+/g) ?? []; // one number and the right one: saying many does not pay
  const says = numbers.length === 1 && Number(numbers[0]) === ids.length;
  const right = clean && off === ids.length && says && done && reached === (special ? 2 : 1);
  const partial = clean && off > 0 ? (0.2 * off) / ids.length + (off === ids.length ? 0.1 : 0) : 0;
  return {
    reward: right ? 1 : partial,
    branch: special ? 'two_pages' : 'one_page',
    breakdown: { pages: reached, off: off / ids.length, clean: Number(clean), says: Number(says) },
  };
}

const called = (calls) => ({
  role: 'assistant',
  content: '',
  toolCalls: calls.map(([name, given], n) => ({ id: `call_${n}`, name, arguments: given })),
});
const say = (content) => ({ role: 'assistant', content });
const off = (ids) => ids.map((id) => ['switch_device', { device_id: id, state: 'off' }]);

export const reference = ({ ids }) => ({
  actions: off(ids).map(([name, given]) => ({ name, arguments: given })),
  tell: [String(ids.length)],
});

export function solve(seed) {
  const { special, room, cursor, ids } = make(seed);
  const reads = [{ room }, ...(special ? [{ room, cursor }] : [])].map((given) => called([['list_devices', given]]));
  return [...reads, called(off(ids)), say('All of them are off.'), say(`I switched off ${ids.length}.`)];
}

export function shortcuts(seed) {
  const { room, kind, pages } = make(seed);
  const look = called([['list_devices', { room }]]);
  const ids = (devices) => devices.map((device) => device.device_id);
  const end = (n) => [say('All of them are off.'), say(`I switched off ${n}.`)];
  const shown = pages[0].filter((device) => device.kind === kind && device.state === 'on');
  return {
    'first page only': [look, called(off(ids(shown))), ...end(shown.length)],
    'everything that is shown': [look, called(off(ids(pages[0]))), ...end(shown.length)],
  };
}
