const targetTools = {"search_contacts":{"name":"search_contacts","description":"Search for a contact person based on provided arguments Each field has a search criteria of either\n1. Exact value matching\n2. Fuzzy string matching with a predefined threshold\nSearch results contains all contact entries that matched all criteria","parameters":{"type":"object","properties":{"person_id":{"type":"string","description":"String format unique identifier for the contact person, will be exact matched"},"name":{"type":"string","description":"Name of contact person, will be fuzzy matched"},"phone_number":{"type":"string","description":"Phone number of contact person, will be exact matched"},"relationship":{"type":"string","description":"Relationship between user and this contact, will be fuzzy matched"},"is_self":{"type":"boolean","description":"If the requested contact corresponds to the current user. Will be exact matched"}},"required":[]},"annotations":{"readOnlyHint":true}},"send_message_with_phone_number":{"name":"send_message_with_phone_number","description":"Send a message to a recipient using phone_number","parameters":{"type":"object","properties":{"phone_number":{"type":"string","description":"String format phone number to send the message to"},"content":{"type":"string","description":"Message payload text"}},"required":["phone_number","content"]},"annotations":{"readOnlyHint":false}},"set_cellular_service_status":{"name":"set_cellular_service_status","description":"Enable / Disable cellular service","parameters":{"type":"object","properties":{"on":{"type":"boolean","description":"If we want to turn on cellular service"}},"required":["on"]},"annotations":{"readOnlyHint":false}},"set_low_battery_mode_status":{"name":"set_low_battery_mode_status","description":"Enable / Disable low battery mode","parameters":{"type":"object","properties":{"on":{"type":"boolean","description":"If we want to turn on low battery mode"}},"required":["on"]},"annotations":{"readOnlyHint":false}},"set_wifi_status":{"name":"set_wifi_status","description":"Enable / Disable wifi","parameters":{"type":"object","properties":{"on":{"type":"boolean","description":"If we want to turn on wifi"}},"required":["on"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `remove_blocker_and_retry`: a refused call whose error names a changeable condition is not the end.
 * Even seed: the request is refused because cellular is off or low battery mode is on, or both in a row; the agent
 * changes what the errors name, repeats the call and reports. Odd seed: the same request works at once, or it is
 * refused for a reason that no tool can change; then settings stay as they are and the reason is told.
 */
const policy = `Don't make assumptions about what values to plug into functions. Ask for clarification if a user request is ambiguous.
Change no setting that the request does not need.`;
const SEND = 'send_message_with_phone_number';
const LOW = 'set_low_battery_mode_status';
const SET = { cellular: 'set_cellular_service_status', wifi: 'set_wifi_status' };
const OFFERED = ['search_contacts', SEND, SET.cellular, SET.wifi, LOW];
const LABEL = { cellular: 'Cellular service', wifi: 'Wifi' };
const FIRST = ['Mara', 'Tobias', 'Ingrid', 'Desmond', 'Priya', 'Oskar', 'Lucia', 'Hamid', 'Noemi', 'Quentin', 'Saskia', 'Leopold', 'Yara', 'Casimir', 'Bettina', 'Rufus'];
const LAST = ['Ostrow', 'Lindqvist', 'Farrell', 'Nakagawa', 'Delacroix', 'Abernathy', 'Szabo', 'Moretti', 'Vance', 'Okafor', 'Hollis', 'Bergmann', 'Castellan', 'Pruitt', 'Winslow', 'Yilmaz'];
const THINGS = ['bake sale', 'pottery class', 'book club', 'garden party', 'chess tournament', 'job interview', 'piano recital', 'kitchen remodel', 'road trip', 'science fair', 'housewarming', 'charity run', 'film festival', 'school play', 'boat tour', 'quiz night'];
const DAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const ASKS = [
  ...[(thing) => `How's the ${thing} going`, (thing) => `How did the ${thing} turn out`, (thing) => `Who else is coming to the ${thing}`],
  ...[(thing, day) => `Is the ${thing} still on for ${day}`, (thing, day) => `Do you need a ride to the ${thing} on ${day}`],
  (thing) => `What's the plan for the ${thing}`,
];
const WORDING = [
  (name, text) => `Send a message to ${name} saying: "${text}."`,
  (name, text) => `Ask ${name} ${text}.`,
  (name, text) => `Send a message to ${name} saying: "${text}." Resolve any issue alone.`,
  (name, text) => `Send ${name} a message saying: "${text}."`,
  (name, text) => `Send a message to ${name}. Ask ${text}.`,
];
const SETTING = {
  cellular: ['Turn on my cellular', 'Turn cellular on', "I can't get cellphone signal. Can you help me fix that in settings?", 'Get me connected to cellular.', "I don't have cellular. Can you get it on?"],
  wifi: ['Turn on my wifi', 'Turn wifi on', "I can't access wifi. Can you help me fix that in settings?", 'Get me connected to wifi.', "I don't have wifi. Can you get it on?"],
};
/* Refusals that none of the tools can do anything about: the error, what the report must mention, a word for it. */
const OUTAGES = [
  ['ConnectionError: SIM card is not inserted', /\bsim\b/i, 'SIM'],
  ["PermissionError: Please provide 'SMS_API_KEY' in environment variable", /\bkey\b|api_key/i, 'key'],
  ['ConnectionError: Carrier network is not reachable', /carrier|network/i, 'carrier'],
  ['PermissionError: Outgoing messages are blocked by the carrier', /carrier|block/i, 'carrier'],
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

/* As this target writes values: Python's notation. */
function py(value) {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return value.includes("'") ? `"${value}"` : `'${value}'`;
  if (Array.isArray(value)) return `[${value.map(py).join(', ')}]`;
  if (typeof value !== 'object') return String(value);
  return `{${Object.entries(value).map(([key, own]) => `${py(key)}: ${py(own)}`).join(', ')}}`;
}

export const describe = () => ({ policy, tools: OFFERED.map((name) => targetTools[name]), maxSteps: 14 });

function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const hex = (n) => Array.from({ length: n }, () => below(16).toString(16)).join('');
  const uuid = () => `${hex(8)}-${hex(4)}-5${hex(3)}-${'89ab'[below(4)]}${hex(3)}-${hex(12)}`;
  const setting = below(6) === 0; // the request is a setting itself; else it is a message
  const service = setting && below(2) ? 'wifi' : 'cellular';
  const deepDrawn = below(3) > 0;
  const outageDrawn = [below(2) === 0, below(OUTAGES.length)];
  const [firsts, lasts] = [[...FIRST], [...LAST]];
  const contact = (last, relationship, is_self) => {
    const [person_id, name] = [uuid(), `${draw(below, firsts)} ${last}`];
    const phone_number = `+1${2 + below(8)}${String(below(1000000000)).padStart(9, '0')}`;
    return { person_id, name, phone_number, relationship, is_self };
  };
  const last = draw(below, lasts);
  const kin = () => ['friend', 'boss', 'coworker', 'neighbor'][below(4)];
  const wanted = contact(last, kin(), false);
  const namesake = contact(last, kin(), false);
  const pair = below(2) ? [wanted, namesake] : [namesake, wanted];
  const others = [contact(draw(below, lasts), kin(), false), contact(draw(below, lasts), kin(), false)];
  const self = contact(draw(below, lasts), 'self', true);
  const text = ASKS[below(ASKS.length)](THINGS[below(THINGS.length)], DAYS[below(DAYS.length)]);
  const wording = below(5);
  const ids = [uuid(), uuid(), uuid()];
  const deep = deepDrawn && !fewer;
  const low = special && (setting || deep);
  const phone = { cellular: !special, wifi: !low, low };
  if (setting) phone[service] = false;
  const request = setting ? SETTING[service][fewer ? wording % 2 : wording] : WORDING[fewer ? 0 : wording](wanted.name, text);
  const outage = !special && !setting && outageDrawn[0] ? outageDrawn[1] : -1;
  const contacts = fewer ? [...pair, self] : [others[0], ...pair, others[1], self];
  const named = { cellular: false, low: false }; // conditions that a refusal has named
  const counts = { writes: 0, refused: 0, sent: 0, wrong: 0, surplus: 0, fixes: 0, offers: 0, turns: 0 };
  const facts = { special, setting, service, deep, outage, name: wanted.name, number: setting ? '' : wanted.phone_number, text, contacts, ids, request };
  return { ...facts, phone, named, ...counts, told: '', done: false };
}
export const make = (seed) => instance(seed, false);
/* Messages have one blocker at most, fewer contacts and the plainest wording. */
export const easier = (seed) => instance(seed, true);

export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];

const plain = (text) => text.toLowerCase().replace(/[’']s\b/g, ' is').replace(/[^a-z0-9]+/g, ' ').trim();
const finished = ({ setting, service, phone, sent }) => (setting ? phone[service] : sent > 0);

function badCall(name, given) {
  const { properties, required } = targetTools[name].parameters;
  const surplus = Object.keys(given).find((key) => !Object.hasOwn(properties, key));
  if (surplus !== undefined) return `TypeError: ${name}() got an unexpected keyword argument`;
  const missing = required.filter((key) => given[key] === undefined || given[key] === null);
  if (missing.length > 0)
    return `TypeError: ${name}() missing ${missing.length} required positional argument${missing.length > 1 ? 's' : ''}: ${missing.map(py).join(' and ')}`;
  const odd = Object.keys(given).find((key) => given[key] !== null && typeof given[key] !== properties[key].type);
  return odd === undefined ? '' : `TypeError: ${name}() argument ${py(odd)} must be ${properties[odd].type}`;
}

function find({ contacts }, given) {
  const words = plain(given.name ?? '').split(' ');
  const fits = (each) =>
    (!given.name || plain(each.name).split(' ').some((word) => words.includes(word))) &&
    (!given.relationship || each.relationship === given.relationship.toLowerCase()) &&
    ['person_id', 'phone_number', 'is_self'].every((key) => (given[key] ?? null) === null || given[key] === each[key]);
  return py(contacts.filter(fits));
}

function send(state, { phone_number, content }) {
  const [said, wanted] = [plain(content), plain(state.text)];
  const right = phone_number === state.number && said.includes(wanted) && said.length <= wanted.length + 30;
  state.writes += 1;
  if (!state.phone.cellular || state.outage >= 0) {
    if (right) state.refused += 1;
    else state.wrong += state.outage >= 0 ? 1 : 0;
    if (state.phone.cellular) return OUTAGES[state.outage][0];
    state.named.cellular = true;
    return 'ConnectionError: Cellular service is not enabled';
  }
  if (right) state.sent += 1;
  else state.wrong += 1;
  return py(state.ids[Math.min(state.sent + state.wrong, state.ids.length) - 1]);
}

/* A change of a setting is wanted if the user asked for it or a refusal has named it, and it is not made yet. */
function change(state, name, on) {
  const { phone, named, setting, service } = state;
  state.writes += 1;
  if (name === LOW) {
    if (!on && phone.low && named.low) state.fixes += 1;
    else state.surplus += 1;
    phone.low = on;
    if (on) [phone.cellular, phone.wifi] = [false, false];
    return 'None';
  }
  const which = name === SET.wifi ? 'wifi' : 'cellular';
  if (!on || phone[which] || which !== service || (!setting && !named.cellular)) state.surplus += 1;
  else if (!setting) state.fixes += 1;
  if (on && phone.low) {
    named.low = true;
    return `PermissionError: ${LABEL[which]} cannot be turned on in low battery mode`;
  }
  phone[which] = on;
  return 'None';
}

function observe(state, { name, arguments: args }) {
  if (!OFFERED.includes(name)) return 'NameError: no tool of that name is defined';
  const given = args && typeof args === 'object' && !Array.isArray(args) ? args : {};
  const bad = badCall(name, given);
  if (bad) return bad;
  if (name === 'search_contacts') return find(state, given);
  return name === SEND ? send(state, given) : change(state, name, given.on);
}

/* The user says again what it wants before anything was tried, agrees to an offer that helps, and says goodbye. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  if (calls.length > 0)
    return { state, done: false, messages: calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) })) };
  const content = typeof message.content === 'string' ? message.content.slice(0, 4000) : '';
  const answer = (text) => ({ state, done: false, messages: [{ role: 'user', content: text }] });
  state.told = `${state.told} ${content}`;
  state.turns += 1;
  if (!finished(state) && state.turns < 3) {
    if (state.writes === 0) return answer(state.setting ? `${LABEL[state.service]}. Turn it on.` : `${state.name}. Ask ${state.text}.`);
    const questions = content.match(/[^.!?\n]*\?/g) ?? [];
    if (questions.some((each) => /\b(i|me)\b/i.test(each) && /\b(enabl|disabl|turn|switch|activat)/i.test(each))) {
      state.offers += 1;
      return answer(state.special ? 'Yes.' : 'No.');
    }
    if (state.special && /\b(let me|i will|i'll|i’ll|i am going to)\b/i.test(content)) return answer('OK.');
  }
  state.done = true;
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'Thanks.' }] };
}

export function reward(state) {
  const { special, setting, outage, named, phone, service, refused, sent, wrong, surplus, fixes, offers, told, done, writes } = state;
  const denies = /\b(not|cannot|unable|fail\w*|blocked|missing)\b|n['’]t\b/i.test(told);
  const claims = (setting ? /\b(on|enabled|activated|connected|working|done)\b/i : /\b(sent|delivered|asked|told|texted|messaged|went|gone|done)\b/i).test(told);
  const clean = wrong === 0 && surplus === 0;
  const carried = setting ? phone[service] : sent === 1;
  const report = outage >= 0 ? denies && OUTAGES[outage][1].test(told) : claims && (special || !denies);
  const reached = outage >= 0 ? refused === 1 && writes === 1 : carried;
  const right = done && clean && reached && report && (special || offers === 0);
  const hit = setting ? named.low : refused > 0;
  const steps = (hit ? 0.05 : 0) + (hit && fixes > 0 ? 0.1 : 0) + (hit && phone[service] ? 0.05 : 0) + (hit && finished(state) ? 0.1 : 0);
  const partial = special ? steps : (outage >= 0 ? refused > 0 : finished(state)) ? 0.1 : 0;
  return {
    reward: right ? 1 : Math.min(0.3, partial),
    branch: special ? 'blocker_removable' : outage >= 0 ? 'blocker_out_of_reach' : 'no_blocker',
    breakdown: { clean: Number(clean), reached: Number(reached), report: Number(report), fixes, offers },
  };
}

const say = (content) => ({ role: 'assistant', content });
const called = ([name, given]) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const look = ({ setting, name }) => (setting ? [] : [['search_contacts', { name }]]);
const goal = ({ setting, service, number, text }) => (setting ? [SET[service], { on: true }] : [SEND, { phone_number: number, content: text }]);
const [enable, unblock] = [[SET.cellular, { on: true }], [LOW, { on: false }]];
const changes = ({ setting, deep }) => (setting ? [unblock] : deep ? [enable, unblock, enable] : [enable]);
const once = (state) => [...look(state), goal(state)];
const twice = (state) => [...once(state), ...changes(state), goal(state)];
const success = ({ setting, service, name, text }) => say(setting ? `${LABEL[service]} has been turned on.` : `Your message to ${name} has been sent saying: ${text}`);
const failure = ({ setting, service, name, outage }) => {
  if (setting) return say(`That did not work: ${LABEL[service]} has to stay off.`);
  return say(`I could not send your message to ${name}: ${outage >= 0 ? OUTAGES[outage][0].split(': ')[1] : 'Cellular service is not enabled'}.`);
};

const path = (state) => (state.special ? twice(state) : once(state));
const report = (state) => (state.outage >= 0 ? failure(state) : success(state));
export const solve = (seed, state = make(seed)) => [...path(state).map(called), report(state)];
export const reference = (state) => {
  const calls = path(state).filter(([name]) => name !== 'search_contacts');
  const fact = state.outage >= 0 ? OUTAGES[state.outage][2] : state.setting ? 'on' : 'sent';
  return { actions: calls.map(([name, given]) => ({ name, arguments: given })), tell: [fact] };
};
export const shortcuts = (seed, state = make(seed)) => ({
  'always change settings and repeat': [...twice(state).map(called), success(state)],
  'change settings first': [...[unblock, enable, ...once(state)].map(called), success(state)],
  'never change a setting': [...once(state).map(called), state.special || state.outage >= 0 ? failure(state) : success(state)],
  'always claim success': [...once(state).map(called), success(state)],
});
export const hint = () => 'When something is refused, read what the error names. If you can change that condition yourself, change it and then do again what was refused, as often as it takes, before you report. If nothing of yours can change it, leave the settings alone and tell the user the reason; if nothing is refused, change nothing else.';