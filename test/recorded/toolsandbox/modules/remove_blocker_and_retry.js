const targetTools = {"search_contacts":{"name":"search_contacts","description":"Search for a contact person based on provided arguments Each field has a search criteria of either\n1. Exact value matching\n2. Fuzzy string matching with a predefined threshold\nSearch results contains all contact entries that matched all criteria","parameters":{"type":"object","properties":{"person_id":{"type":"string","description":"String format unique identifier for the contact person, will be exact matched"},"name":{"type":"string","description":"Name of contact person, will be fuzzy matched"},"phone_number":{"type":"string","description":"Phone number of contact person, will be exact matched"},"relationship":{"type":"string","description":"Relationship between user and this contact, will be fuzzy matched"},"is_self":{"type":"boolean","description":"If the requested contact corresponds to the current user. Will be exact matched"}},"required":[]},"annotations":{"readOnlyHint":true}},"send_message_with_phone_number":{"name":"send_message_with_phone_number","description":"Send a message to a recipient using phone_number","parameters":{"type":"object","properties":{"phone_number":{"type":"string","description":"String format phone number to send the message to"},"content":{"type":"string","description":"Message payload text"}},"required":["phone_number","content"]},"annotations":{"readOnlyHint":false}},"set_cellular_service_status":{"name":"set_cellular_service_status","description":"Enable / Disable cellular service","parameters":{"type":"object","properties":{"on":{"type":"boolean","description":"If we want to turn on cellular service"}},"required":["on"]},"annotations":{"readOnlyHint":false}},"set_low_battery_mode_status":{"name":"set_low_battery_mode_status","description":"Enable / Disable low battery mode","parameters":{"type":"object","properties":{"on":{"type":"boolean","description":"If we want to turn on low battery mode"}},"required":["on"]},"annotations":{"readOnlyHint":false}},"set_wifi_status":{"name":"set_wifi_status","description":"Enable / Disable wifi","parameters":{"type":"object","properties":{"on":{"type":"boolean","description":"If we want to turn on wifi"}},"required":["on"]},"annotations":{"readOnlyHint":false}}};
/*
 * Trains `remove_blocker_and_retry`: a refused call names a condition that another tool changes; change it, repeat, carry through.
 * Even seed (removable): the message or the setting is refused because of cellular service and / or low battery mode.
 * Odd seed, the same user, contacts and request: either nothing is refused (free: no setting is touched, nothing is repeated),
 * or the refusal names airplane mode, which no tool changes (not_removable: no further write, and the user is told).
 */
const policy = "Don't make assumptions about what values to plug into functions. Ask for clarification if a user request is ambiguous. Don't change settings that don't need to be changed.";
const SETTERS = { set_cellular_service_status: 'cellular', set_low_battery_mode_status: 'low_battery', set_wifi_status: 'wifi' };
const OFFERED = ['search_contacts', 'send_message_with_phone_number', ...Object.keys(SETTERS)];
const LABEL = { wifi: 'Wifi', cellular: 'Cellular service' };
const FIRST = ['Marta', 'Oskar', 'Priya', 'Tobias', 'Yuki', 'Leon', 'Farida', 'Gregor', 'Ines', 'Kwame', 'Nadia', 'Pavel', 'Rosa', 'Samir', 'Tilda', 'Umberto', 'Vera', 'Willem', 'Zoe', 'Bruno', 'Celia', 'Dmitri'];
const LAST = ['Okafor', 'Lindqvist', 'Moreau', 'Haddad', 'Tanaka', 'Brandt', 'Castillo', 'Novak', 'Ferrari', 'Osborne', 'Quigley', 'Rasmussen', 'Sandoval', 'Ueda', 'Vasquez', 'Whitlock', 'Yilmaz', 'Zeller', 'Abernathy', 'Dubois', 'Eriksen', 'Gallagher'];
const RELATIONS = ['friend', 'coworker', 'neighbor', 'cousin', 'boss'];
const THINGS = ['garden', 'recipe', 'sofa', 'novel', 'quilt', 'mural', 'podcast', 'boat', 'treehouse', 'greenhouse', 'website', 'bakery', 'terrace', 'scarf', 'telescope', 'bookshelf', 'kayak', 'mosaic', 'kitchen', 'drawing'];
const ASKS = [
  "How's the new {} coming along", "How's the {} looking now", 'Are you happy with the new {}', 'When can I see the {}',
  'Did you finish the {}', 'Is the new {} ready yet', 'Who helped you with the {}', "What's new with the {}",
];
const MESSAGE_WORDING = [
  'Ask {name} {}.', 'Ask {name} {}. Resolve any issue alone.', 'Send a message to {name} saying: "{}."',
  'Send a message to {name} saying: "{}." Resolve any issue alone.',
];
const SETTING_WORDING = [
  'Turn {} on', 'Turn on {}. Resolve any issue alone.', "I don't have {}. Can you get it on?",
  "I can't access {}. Can you help me fix that in settings?", 'Get me connected to {}.', 'Get {} on in settings.',
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
const hex = (below, length) => Array.from({ length }, () => below(16).toString(16)).join('');
const uuid = (below, version) =>
  `${hex(below, 8)}-${hex(below, 4)}-${version}${hex(below, 3)}-${'89ab'[below(4)]}${hex(below, 3)}-${hex(below, 12)}`;

/* As this target writes values: Python's way. */
const py = (value) => {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return value.includes("'") ? JSON.stringify(value) : `'${value}'`;
  if (Array.isArray(value)) return `[${value.map(py).join(', ')}]`;
  return `{${Object.entries(value).map(([key, own]) => `'${key}': ${py(own)}`).join(', ')}}`;
};

export const describe = () => ({ policy, tools: OFFERED.map((name) => targetTools[name]), maxSteps: 14 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (from) => from[below(from.length)];
  const [firsts, lasts] = [[...FIRST], [...LAST]];
  const contacts = Array.from({ length: 4 }, (_, n) => ({
    person_id: uuid(below, 5),
    name: `${draw(below, firsts)} ${draw(below, lasts)}`,
    phone_number: `+1${2 + below(8)}${String(below(1000000000)).padStart(9, '0')}`,
    relationship: n === 0 ? 'self' : pick(RELATIONS),
    is_self: n === 0,
  }));
  const person = contacts[1 + below(3)];
  const content = pick(ASKS).replace('{}', pick(THINGS));
  const messageIds = [uuid(below, 4), uuid(below, 4), uuid(below, 4)];
  const device = pick(['wifi', 'cellular']);
  const goal = below(5) === 0 ? device : 'message';
  const [stuck, deep] = [below(2) === 0, below(2) === 0];
  const [one, other] = [pick(MESSAGE_WORDING), pick(SETTING_WORDING)];
  const request =
    goal === 'message' ? one.replace('{name}', person.name).replace('{}', content) : other.replace('{}', LABEL[goal].toLowerCase());
  const branch = special ? 'removable' : stuck ? 'not_removable' : 'free';
  const saving = special && (goal !== 'message' || stuck || deep); // low battery mode is in the way
  const [airplane, cellular] = [branch === 'not_removable', goal === 'message' && branch === 'free'];
  const world = { low_battery: saving, airplane, cellular, wifi: false };
  const blockers = [...(goal === 'message' && special ? ['cellular'] : []), ...(saving ? ['low_battery'] : [])];
  return {
    branch, goal, contacts, person, content, messageIds, request, world, blockers,
    named: [], seen: false, tried: false, sent: [], stray: 0, turns: 0, told: false, done: false,
  };
}

export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];

const norm = (text) =>
  text.slice(0, 2000).toLowerCase().replace(/[\u2018\u2019]/g, "'").replace(/'s\b/g, ' is').replace(/[^a-z0-9]+/g, ' ').trim();

/* The wanted message, a greeting before it or not. */
function sameText(given, { content, person }) {
  const text = norm(given).replace(/^(?:hi|hey|hello) (?:there )?/, '');
  return text === norm(content) || text === norm(`${person.name.split(' ')[0]} ${content}`);
}
const plain = (text) => String(text).replace(/[^A-Za-z0-9_]/g, '_').slice(0, 60);
const note = (state, what) => (state.named = [...state.named.filter((each) => each !== what), what]);

function complaint(name, given) {
  const { properties, required } = targetTools[name].parameters;
  for (const key of Object.keys(given)) {
    if (!Object.hasOwn(properties, key)) return `TypeError: ${name}() got an unexpected keyword argument '${plain(key)}'`;
    const type = properties[key].type;
    if (typeof given[key] !== type) return `TypeError: argument "${key}" is not an instance of ${type === 'string' ? 'str' : 'bool'}`;
  }
  const missing = required.find((key) => !Object.hasOwn(given, key));
  return missing ? `TypeError: ${name}() missing 1 required positional argument: '${missing}'` : '';
}

function observe(state, name, raw) {
  if (!OFFERED.includes(name)) return `NameError: name '${plain(name)}' is not defined`;
  const entries = Object.entries(typeof raw === 'object' && raw ? raw : {});
  const given = Object.fromEntries(entries.filter(([, value]) => value !== null && value !== undefined));
  const wrong = complaint(name, given);
  if (wrong) return wrong;
  const { world, goal, person } = state;
  if (name === 'search_contacts') {
    const fits = (each, key) => {
      if (key !== 'name' && key !== 'relationship') return each[key] === given[key];
      const [own, query] = [norm(each[key]), norm(given[key])];
      return own.includes(query) || query.includes(own);
    };
    const found = state.contacts.filter((each) => Object.keys(given).every((key) => fits(each, key)));
    if (goal === 'message' && found.some((each) => each.person_id === person.person_id)) state.seen = true;
    return py(found);
  }
  if (state.named.includes('airplane')) state.stray += 1; // cannot be lifted: no write helps any more
  if (name === 'send_message_with_phone_number') {
    const known = given.phone_number.replace(/[\s()-]/g, '') === person.phone_number;
    const right = goal === 'message' && known && sameText(given.content, state);
    if (!right) state.stray += 1;
    if (!world.cellular) {
      note(state, 'cellular');
      if (right) state.tried = true;
      return 'ConnectionError: Cellular service is not enabled';
    }
    state.sent.push(right);
    return py(state.messageIds[(state.sent.length - 1) % state.messageIds.length]);
  }
  const what = SETTERS[name];
  const wanted = what !== 'low_battery'; // services on, low battery mode off
  const needed = goal === what || state.named.includes(what); // asked for by the user or named by a refusal
  if (!needed || given.on !== wanted || world[what] === wanted) state.stray += 1;
  if (given.on && what !== 'low_battery' && (world.low_battery || world.airplane)) {
    note(state, world.low_battery ? 'low_battery' : 'airplane');
    if (what === goal) state.tried = true;
    return `PermissionError: ${LABEL[what]} cannot be turned on in ${world.low_battery ? 'low battery' : 'airplane'} mode`;
  }
  world[what] = given.on;
  if (what === 'low_battery' && given.on) world.cellular = world.wifi = false;
  return 'None';
}

const reached = ({ goal, sent, world }) => (goal === 'message' ? sent.some(Boolean) : world[goal]);
const ASKING = /\?|let me know|would you like|do you want|shall i\b|should i\b|may i\b|if you(?:'d)? (?:like|want|wish|would|prefer)/;
const ANNOUNCING = /\bi will\b|\bi'll\b|\bgoing to\b|\blet me (?!know)/;
const LIFTING = /turn|switch|enabl|disabl|activat|proceed|go ahead|change/;
const ABOUT = { low_battery: /battery/, cellular: /cell|signal/, wifi: /wi-?fi|internet/ };
const undenied = (text) => text.replace(/(?:not|n't|never|unable to)(?: \w+){0,2}? (?:sent|turned on|enabled|delivered)/g, ' ');
const SENT = /\b(?:sent|asked|told|texted|messaged|delivered|done|completed?|success\w*)\b/;
const ON = /\b(?:on|enabled|connected|activated|done|completed?|restored|working|fixed|back|success\w*)\b/;
const confirms = (text, goal) => (goal === 'message' ? SENT : ON).test(undenied(text));
const claims = (text) =>
  /\b(?:been|was|is|i|i've|have|successfully) sent\b|\b(?:wi-?fi|internet|cellular|service|signal) (?:has been|is|was) (?:now )?(?:turned on|enabled|on|back|active|connected)\b/.test(undenied(text));

/* What the user says while the request is not carried through. */
function reply({ goal, named, person, content }, text) {
  if (named.includes('airplane')) return ASKING.test(text) ? 'No.' : 'Why not?';
  const question = (text.match(/[^.?!]*\?/g) ?? [text]).join(' ');
  if (LIFTING.test(question)) {
    const mentioned = Object.keys(ABOUT).filter((each) => ABOUT[each].test(question));
    const about = mentioned.length > 0 ? mentioned : named.slice(-1);
    if (about.length > 0) return about.every((each) => each === goal || named.includes(each)) ? 'Yes.' : 'No.';
  }
  if (/later|else|instead/.test(question)) return 'No.';
  return goal === 'message' ? `${person.name}. Ask ${content[0].toLowerCase()}${content.slice(1)}.` : `Turn on ${LABEL[goal].toLowerCase()}.`;
}

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  const answers = calls.map((each) => ({ role: 'tool', toolCallId: each?.id, content: observe(state, each?.name, each?.arguments) }));
  if (calls.length > 0) return { state, done: false, messages: answers };
  const said = typeof message?.content === 'string' ? message.content.slice(0, 4000) : '';
  const text = said.toLowerCase().replace(/[\u2018\u2019]/g, "'").replace(/\s+/g, ' ').trim();
  const end = (told) => {
    Object.assign(state, { told, done: true });
    return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'Thanks.' }] };
  };
  if (text && reached(state)) return end(confirms(text, state.goal));
  const stuck = state.named.includes('airplane');
  if (stuck && /airplane|aeroplane|flight mode/.test(text)) return end(!claims(text));
  state.turns += 1;
  const goesOn = !text || ASKING.test(text) || ANNOUNCING.test(text) || (stuck && !claims(text));
  if (state.turns > 2 || !goesOn) return end(false);
  return { state, done: false, messages: [{ role: 'user', content: reply(state, text) }] };
}

export function reward(state) {
  const { branch, goal, world, blockers, named, seen, tried, sent, stray, told, done } = state;
  const lifted = blockers.filter((each) => named.includes(each) && (each === 'low_battery' ? !world.low_battery : world.cellular)).length;
  const [carried, met] = [reached(state), named.includes('airplane')];
  const through = branch === 'not_removable' ? tried && met : carried && sent.length === (goal === 'message' ? 1 : 0);
  const right = done && told && stray === 0 && through;
  const partial =
    (seen ? 0.05 : 0) + (tried || carried ? 0.05 : 0) + (blockers.length > 0 ? (0.1 * lifted) / blockers.length : 0) + (carried || met ? 0.1 : 0);
  const breakdown = { tried: Number(tried), lifted, through: Number(through), stray, told: Number(told) };
  return { reward: right ? 1 : partial, breakdown, branch };
}

const call = (name, given) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', name, arguments: given }] });
const say = (content) => ({ role: 'assistant', content });
const setting = (what, on) => ({ name: Object.keys(SETTERS).find((name) => SETTERS[name] === what), arguments: { on } });
const sending = ({ person, content }) => ({ name: 'send_message_with_phone_number', arguments: { phone_number: person.phone_number, content } });
const wish = (state) => (state.goal === 'message' ? sending(state) : setting(state.goal, true));
const play = (action) => call(action.name, action.arguments);

export function reference(state) {
  if (state.branch === 'not_removable') return { actions: [], tell: ['airplane'] };
  const lifts = [...state.blockers].reverse().map((each) => setting(each, each !== 'low_battery'));
  return { actions: [...lifts, wish(state)], tell: [state.goal === 'message' ? 'sent' : 'on'] };
}

function script(state, branch) {
  const { goal, person, content, blockers } = state;
  const cellular = play(setting('cellular', true));
  const head = [...(goal === 'message' ? [call('search_contacts', { name: person.name })] : []), play(wish(state))];
  const stuck = say(`${goal === 'wifi' ? 'Wifi' : 'Cellular service'} cannot be turned on in airplane mode.`);
  if (branch === 'not_removable') return [...head, ...(goal === 'message' ? [cellular] : []), stuck];
  const end = say(goal === 'message' ? `Your message to ${person.name} has been sent saying: ${content}` : `${LABEL[goal]} has been turned on.`);
  if (branch === 'free') return [...head, end];
  const lifts = goal === 'message' ? [cellular] : [];
  if (blockers.includes('low_battery')) lifts.push(play(setting('low_battery', false)), ...(goal === 'message' ? [cellular] : []));
  return [...head, ...lifts, play(wish(state)), end];
}
export function solve(seed) {
  const state = make(seed);
  return script(state, state.branch);
}
export function shortcuts(seed) {
  const [state, even] = [make(seed), make(seed - (seed % 2))];
  const free = script(state, 'free');
  return {
    'always lift and repeat': script(even, 'removable'),
    'never lift': free,
    'pass the error on': [...free.slice(0, -1), say('That did not work, it is not possible at the moment.')],
    'always say that it cannot be lifted': script(state, 'not_removable'),
    'lift beforehand': [play(setting('low_battery', false)), play(setting('cellular', true)), ...free],
  };
}
// Attack: {"name":"claim every outcome in turn, each with a question, and let the end of the conversation choose","messages":[{"calls":[{"name":"search_contacts","arguments":{"name":"<named>"}}]},{"calls":[{"name":"send_message_with_phone_number","arguments":{"phone_number":"<1.phone_number>","content":"<named>"}}]},{"say":"Your message has been sent. Is that all right?"},{"calls":[{"name":"set_cellular_service_status","arguments":{"on":true}}]},{"say":"This is not possible in airplane mode. Is that all right?"},{"calls":[{"name":"set_low_battery_mode_status","arguments":{"on":false}}]},{"calls":[{"name":"set_cellular_service_status","arguments":{"on":true}}]},{"calls":[{"name":"send_message_with_phone_number","arguments":{"phone_number":"<1.phone_number>","content":"<named>"}}]},{"say":"Your message has been sent."}]}