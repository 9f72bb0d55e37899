// Rationale: In both failed attempts the right team stood in a text that was never executed, once because the last brace was missing and once because the team's name had taken the place of the tool's, while the passed attempts on the same tickets issued a finished call under the tool's own name. Here the same kind of ticket, with the same tempting word, is rewarded in full only if every call is complete and names an offered tool, and the twin with the other plan keeps a call learnt by heart from paying.
// History:
// Round 1: a rejected team (the plan copied) could be mended for nothing, and bracketed text passed as prose; now each
//   call that cannot be executed is a slip that rules out success, and text that resembles a call is told by its form.
/*
 * Trains `issue_executable_tool_calls`: the ticket is ended by a complete call with the exact name of a tool.
 * Even seed (special): the record shows the home plan; the ticket's own matter gives the team, "network", the word
 * that tempts the agent to put it in the place of the tool's name, or to write the call down without finishing it.
 * Odd seed (twin): the same email from the same customer, and the record shows the business plan; the call to the
 * network team, complete or not, is wrong there, so that no call learnt by heart pays.
 * A text that only resembles a call is not executed and ends the episode, as it does in the target.
 */
const policy = `You work at the support desk of Northwind Internet. Each ticket is one email from a customer.

1. First call get_customer with the customer's email address.
2. Then end the ticket with exactly one call:
   - If the customer has the business plan, call route_ticket with team "business", whatever the ticket says.
   - If the customer has the home plan and the internet connection is slow or down, call route_ticket with team "network".

Do not write to the customer yourself.`;

const TOOLS = ['get_customer', 'route_ticket', 'refund_invoice', 'decline_refund'];
const TEAMS = ['network', 'billing', 'sales', 'business'];
const FIRST = [
  'Nina', 'Oskar', 'Petra', 'Quentin', 'Ralf', 'Sofia', 'Tomas', 'Ulla', 'Viktor', 'Wanda',
  'Yusuf', 'Zoe', 'Bruno', 'Dora', 'Emil', 'Frida', 'Gustav', 'Ines', 'Leon', 'Marta',
];
const LAST = [
  'Keller', 'Lindgren', 'Moreau', 'Novak', 'Olsen', 'Petrov', 'Quinn', 'Rossi', 'Schmidt', 'Torres',
  'Vogel', 'Weber', 'Young', 'Zimmer', 'Brandt', 'Castro', 'Dahl', 'Egger', 'Falk', 'Nilsson',
];
const WHEN = ['yesterday', 'last night', 'noon', 'this afternoon', 'Monday', 'Tuesday', 'Friday', 'Sunday', 'the weekend'];
const OFTEN = ['a day', 'a night', 'an evening', 'a week'];
const PROBLEM = [
  (when) => `My internet has been down since ${when}.`,
  (when) => `My internet has been slow since ${when}.`,
  (when) => `The connection has been down since ${when}.`,
  (when) => `The connection has been very slow since ${when}.`,
  (when, often) => `I lose the connection several times ${often}.`,
];
const LIGHT = ['orange', 'yellow', 'off', 'blinking', 'blue'];
const TRIED = ['restarted the router twice', 'restarted the router again', 'changed the cable', 'restarted the computer'];
const DETAIL = [(light) => `The router's light is ${light}.`, (light, tried) => `I already ${tried}.`];
const PLEA = [' Please help.', ' Can you help?', ''];

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
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`)
    .join(', ')}}`;
};

export const describe = () => ({ policy, tools: TOOLS.map((name) => targetTools[name]), maxSteps: 6 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const [first, last] = [pick(FIRST), pick(LAST)];
  const email = `${first}.${last}${10 + below(90)}@example.com`.toLowerCase();
  const amount = `${20 + below(70)}.${below(2) ? '50' : '00'}`;
  const daysOld = 1 + below(110);
  const [when, often, light, tried] = [pick(WHEN), pick(OFTEN), pick(LIGHT), pick(TRIED)];
  const problem = pick(PROBLEM)(when, often);
  const detail = pick(DETAIL)(light, tried);
  const plea = pick(PLEA);
  return {
    special,
    email,
    customer: {
      email,
      name: `${first} ${last}`,
      plan: special ? 'home' : 'business',
      last_invoice: { amount, days_old: daysOld },
    },
    team: special ? 'network' : 'business',
    problem,
    request: `From: ${first} ${last} <${email}>\n\n${problem} ${detail}${plea}`,
    called: false,
    looked: false,
    slips: 0,
    texts: 0,
    writes: [],
    done: false,
  };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

/* `known`: whether the customer had been looked up before this message; a write is not accepted earlier. */
function observe(state, call, known) {
  const name = call?.name;
  const given = typeof call?.arguments === 'object' && call.arguments !== null ? call.arguments : {};
  const reject = (error) => {
    state.slips += 1; // what the program cannot execute is no call, and is not made good by another one
    return { error };
  };
  if (!TOOLS.includes(name)) {
    state.done = true;
    return reject('unknown tool');
  }
  const [field] = targetTools[name].parameters.required;
  const value = typeof given[field] === 'string' ? given[field].trim().toLowerCase() : '';
  if (value === '') return reject(`${field} must be a string and is required`);
  if (name === 'get_customer') {
    if (value !== state.email) return { error: 'no customer with this email' };
    state.called = true;
    state.looked = true;
    return state.customer;
  }
  if (name === 'route_ticket' && !TEAMS.includes(value)) return reject(`team must be one of: ${TEAMS.join(', ')}`);
  state.called = true;
  if (!known) return { error: 'call get_customer first' };
  if (state.writes.length < 20) state.writes.push({ name, team: name === 'route_ticket' ? value : null });
  state.done = true; // a write ends the ticket
  return { status: 'ok' };
}

const holds = (text, names) => names.some((name) => new RegExp(`\\b${name}\\b`, 'i').test(text));

/* Text that only resembles a call, told by its form. Addresses and placeholders such as [Your Name] may stand in prose. */
function resemblesCall(text) {
  const plain = text.replace(/<?[\w.+-]{1,64}@[\w.-]{1,64}>?/g, ' ').replace(/\[[a-z' ]{1,40}\]/gi, ' ');
  const words = plain.match(/\w+/g) ?? [];
  const marked = /[{}[\]=]|<\/?[a-z]|"\s*:|[a-z_"'`]\((?!s\))/i.test(plain);
  const leftOpen = plain.split('(').length > plain.split(')').length;
  const invented = words.some((word) => /[a-z]_[a-z]/i.test(word) && !TOOLS.includes(word.toLowerCase()));
  const applied = TOOLS.some((name) => new RegExp(`${name}["'\`]?\\s*[(:=,]`, 'i').test(text));
  const toolWithValue = holds(text, TOOLS) && (holds(text, TEAMS) || /[@\d]/.test(text));
  const bareName = words.length < 4 && holds(text, [...TOOLS, ...TEAMS]);
  return marked || leftOpen || invented || applied || toolWithValue || bareName;
}

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  if (calls.length > 0) {
    const known = state.looked;
    const messages = calls.map((call) => ({
      role: 'tool',
      toolCallId: call?.id,
      content: json(observe(state, call, known)),
    }));
    return { state, messages, done: state.done };
  }
  const answer = (content) => ({ state, messages: [{ role: 'user', content }], done: state.done });
  const text = typeof message?.content === 'string' ? message.content : '';
  if (state.done) return answer('Goodbye.');
  if (resemblesCall(text)) {
    state.slips += 1;
    state.done = true;
    return answer('Nothing has happened here. I will call you instead. Goodbye.');
  }
  state.texts += 1;
  if (state.texts === 1) return answer(`My email address is ${state.email}. ${state.problem}`);
  if (state.texts === 2) return answer('I do not know more than I wrote. Please help.');
  state.done = true;
  return answer('I will call you instead. Goodbye.');
}

export function reward({ special, team, called, looked, slips, writes, done }) {
  const routed = looked && writes.length === 1 && writes[0].name === 'route_ticket';
  const right = routed && writes[0].team === team && slips === 0 && done;
  const partial = (called ? 0.05 : 0) + (looked ? 0.1 : 0) + (routed ? 0.1 : 0);
  return {
    reward: right ? 1 : partial,
    branch: special ? 'network_call' : 'business_call',
    breakdown: {
      called: Number(called),
      looked: Number(looked),
      routed: Number(routed),
      team: Number(routed && writes[0].team === team),
      slips,
    },
  };
}

const call = (id, name, given) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id, name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });
const look = ({ email }) => call('call_0', 'get_customer', { email });
const route = (team) => call('call_1', 'route_ticket', { team });

export const reference = ({ team }) => ({
  actions: [{ name: 'route_ticket', arguments: { team } }],
  tell: [],
});

export function solve(seed) {
  const state = make(seed);
  return [look(state), route(state.team)];
}

export function shortcuts(seed) {
  const state = make(seed);
  const { team, customer } = state;
  return {
    'always network': [look(state), route('network')],
    'never network': [look(state), route('business')],
    'plan copied, then network': [look(state), route(customer.plan), route('network')],
    'open brackets first': [say(`[${team}(${team}`), look(state), route(team)],
    'team called as a tool': [look(state), call('call_1', team, { team })],
    'team written as a tool': [look(state), say(`{"name": "${team}", "arguments": {"team": "${team}"}}`)],
    'brace left open': [look(state), say(`{"name": "route_ticket", "arguments": {"team": "${team}"}`)],
    'no look-up': [route(team), say('The ticket is with the team now.'), say('Is there anything else?'), say('Goodbye.')],
  };
}
