// Rationale: In the failed attempts the agent answered lost connections with a declined refund and a wish for an offer with the network team, while the passed ones sent lost connections to network and a question about an invoice to billing; here the same kinds of email come in pairs that look alike and belong to different calls, at the same first message and with the same tools, so that only reading what is asked and taking the call that the rules give to it pays, and no habitual destination does.
/*
 * Trains `choose_action_matching_request`: the words of a ticket tell its kind, and the rules give each kind one call.
 * Even seed (special): the habitual call (team network, or a declined refund) is wrong: the ticket is one for sales or
 * billing, or a refund that is due. Odd seed (twin): the same customer, invoice and frame, and an email that looks alike
 * but asks for what the habitual call is right for. Only refunds need the look-up; elsewhere it is free.
 */
const policy = `You work at the support desk of an internet provider. Each ticket is one email from a customer.

1. First call get_customer with the customer's email address. A refund needs it; on other tickets you may leave it out.
2. Then end the ticket with exactly one call:
   - If the customer wants a refund and the last invoice is at most 30 days old, call refund_invoice with its exact amount.
   - If the customer wants a refund and the last invoice is older, call decline_refund.
   - If the internet connection is slow or down, call route_ticket with team "network".
   - If the customer has a question about an invoice, call route_ticket with team "billing".
   - If the customer wants another plan or a new contract, call route_ticket with team "sales".

Never call the same tool twice. After the one call that ends the ticket, stop. Do not write to the customer yourself.`;

const TEAMS = ['network', 'billing', 'sales', 'business'];
const FIRST = ['Nora', 'Felix', 'Ines', 'Omar', 'Lucia', 'Anton', 'Maya', 'Peter', 'Greta', 'Victor', 'Selma', 'Bruno'];
const LAST = ['Keller', 'Moreau', 'Novak', 'Lindgren', 'Ortega', 'Walsh', 'Petrov', 'Romano', 'Silva', 'Carter', 'Weber'];
const VALUES = {
  often: ['every evening', 'every few minutes', 'ten times a day', 'twice an hour', 'all the time', 'every night'],
  when: ['Monday', 'Tuesday morning', 'last night', 'yesterday', 'the weekend', 'noon', 'Friday evening', 'Sunday'],
  fault: ['down', 'very slow', 'slow'],
  month: ['January', 'March', 'April', 'May', 'August', 'October', 'November'],
  item: ['line rental', 'setup charge', 'device rent', 'premium support', 'safety package', 'data option', 'repair visit'],
  detail: ['customer number', 'street name', 'first name', 'tax number', 'order number'],
  away: ['abroad', 'in hospital', 'away for work', 'on a long trip', 'with my parents'],
  relative: ['sister', 'brother', 'neighbour', 'cousin', 'colleague', 'aunt'],
  extra: ['a second line', 'a telephone number', 'more upload', 'a mobile card', 'sports channels', 'a film package'],
  kind: ['cheaper', 'bigger', 'better', 'quicker', 'smaller'],
  place: ['garden house', 'second flat', 'workshop', 'holiday flat', 'studio', 'new house'],
  years: ['two', 'three', 'four', 'five', 'six', 'seven', 'ten'],
};

/* Each text gives the special email and its twin. */
const FAMILIES = [
  { kinds: ['sales', 'network'], age: 'any', texts: [
    (v) => [`I would like to change to a ${v.kind} plan.`, `I lose the connection ${v.often}.`],
    (v) => [
      `My ${v.relative} has a faster connection with another plan. I want that plan too.`,
      `My ${v.relative} has a fast connection with the same plan. Mine has been ${v.fault} since ${v.when}.`,
    ],
    (v) => [
      `Please send me an offer for a plan with ${v.extra}.`,
      `Please send me some help. My internet has been ${v.fault} since ${v.when}.`,
    ],
    (v) => [
      `I need a new contract for my ${v.place}. The connection there should be fast.`,
      `I need help for my ${v.place}. The connection there has been ${v.fault} since ${v.when}.`,
    ],
  ] },
  { kinds: ['billing', 'network'], age: 'any', texts: [
    (v) => [
      `I have a question about the item called ${v.item} on my last invoice.`,
      `I have a problem with the connection at home. I lose it ${v.often}.`,
    ],
    (v) => [
      `The invoice for ${v.month} is higher than the one before. I do not understand it.`,
      `The connection has been ${v.fault} since ${v.when}. I do not understand it.`,
    ],
    (v) => [
      `My ${v.detail} has been missing on the invoice since ${v.month}. I have a question about how to correct it.`,
      `My internet has been ${v.fault} since ${v.when}. I already restarted the router twice.`,
    ],
  ] },
  { kinds: ['refund', 'network'], age: 'recent', texts: [
    (v) => [
      `The connection did not work well in ${v.month}. I want my last invoice refunded.`,
      `The connection has not worked well since ${v.when}. I lose it ${v.often}.`,
    ],
    (v) => [
      `I was ${v.away} and did not use the connection. Please give me back the money for my last invoice.`,
      `I was ${v.away} and could not look after the connection. My internet has been ${v.fault} since ${v.when}.`,
    ],
  ] },
  { kinds: ['billing', 'decline'], age: 'old', texts: [
    (v) => [
      `There is an item called ${v.item} on my last invoice. I have a question about it.`,
      `There is an item called ${v.item} on my last invoice. I want the invoice refunded.`,
    ],
    (v) => [
      `My ${v.detail} is missing on the last invoice. I do not understand why.`,
      `My ${v.detail} is missing on the last invoice. I would like a refund of it.`,
    ],
  ] },
  { kinds: ['sales', 'decline'], age: 'old', texts: [
    (v) => [
      `I was ${v.away} and did not use the connection. I would like to change to a smaller plan.`,
      `I was ${v.away} and did not use the connection. I would like a refund of the last invoice.`,
    ],
    (v) => [
      `I am not happy with my plan. Please send me an offer for a ${v.kind} one.`,
      `I am not happy with my plan. Please give me back the money for my last invoice.`,
    ],
  ] },
];
const OFTEN = [0, 0, 0, 1, 1, 2, 3, 4]; // how often each family is drawn
const OPENINGS = [
  (v) => `I have been a customer for ${v.years} years.`,
  (v) => `I have had my plan for ${v.years} years.`,
  () => 'I paid the last invoice in time.',
  (v) => `I use the connection together with my ${v.relative}.`,
];
const CLOSINGS = ['', '', 'Please help.', 'Please take care of it.', 'Thank you.'];

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
  const fields = Object.entries(value).map(([key, own]) => `${JSON.stringify(key)}: ${json(own)}`);
  return `{${fields.join(', ')}}`;
};

export const describe = () => ({ policy, tools: Object.values(targetTools), maxSteps: 6 });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const [first, last, number] = [pick(FIRST), pick(LAST), 10 + below(90)];
  const email = `${first.toLowerCase()}.${last.toLowerCase()}${number}@example.com`;
  const amount = `${18 + below(62)}.${pick(['25', '75'])}`;
  const family = FAMILIES[pick(OFTEN)];
  const [recent, old, coin] = [3 + below(22), 45 + below(50), below(2)];
  const isRecent = family.age === 'recent' || (family.age === 'any' && coin === 1);
  const v = Object.fromEntries(Object.entries(VALUES).map(([key, list]) => [key, pick(list)]));
  const both = pick(family.texts)(v);
  const [opening, closing, opens] = [pick(OPENINGS)(v), pick(CLOSINGS), below(2) === 1];
  const main = both[special ? 0 : 1];
  const body = [opens ? opening : '', main, closing].filter((part) => part !== '').join(' ');
  return {
    special,
    kinds: family.kinds,
    customer: { email, name: `${first} ${last}`, plan: 'home', last_invoice: { amount, days_old: isRecent ? recent : old } },
    main,
    request: `From: ${first} ${last} <${email}>\n\n${body}`,
    seen: false,
    first: null,
    writes: 0,
    turns: 0,
    done: false,
  };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

const text = (value) => (typeof value === 'string' || typeof value === 'number' ? String(value).trim() : '');

function observe(state, call) {
  const name = text(call.name);
  const given = typeof call.arguments === 'object' && call.arguments !== null ? call.arguments : {};
  if (!Object.keys(targetTools).includes(name)) return json({ error: `unknown tool ${name.slice(0, 40)}` });
  const field = { get_customer: 'email', route_ticket: 'team', refund_invoice: 'amount', decline_refund: 'reason' }[name];
  const value = text(given[field]); // surplus arguments are ignored
  if (value === '') return json({ error: `missing argument ${field}` });
  if (name === 'get_customer') {
    if (value.toLowerCase() !== state.customer.email) return json({ error: 'customer not found' });
    if (state.writes === 0) state.seen = true;
    return json(state.customer);
  }
  if (name === 'route_ticket' && !TEAMS.includes(value.toLowerCase())) return json({ error: 'unknown team' });
  state.writes += 1;
  if (state.writes > 1) return json({ error: 'the ticket is closed' });
  state.first = { name, value: value.toLowerCase().replace('$', '').slice(0, 200) };
  return json({ ticket: 'closed' });
}

/* The customer: says again what it wants if nothing was done, twice at most; any text after the write ends the ticket. */
export function step(before, { toolCalls }) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(toolCalls) ? toolCalls : [];
  if (calls.length > 0) {
    const messages = calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: observe(state, call) }));
    if (state.writes > 1) state.done = true;
    return { state, done: state.done, messages };
  }
  const answer = (content) => ({ state, done: state.done, messages: [{ role: 'user', content }] });
  state.turns += 1;
  state.done = state.writes > 0 || state.turns > 2;
  if (state.writes > 0) return answer('Thank you.');
  if (state.done) return answer('I will try again later. Goodbye.');
  return answer(state.turns === 1 ? `As I wrote: ${state.main}` : 'Please take care of it.');
}

const kindOf = ({ special, kinds }) => kinds[special ? 0 : 1];
function writeOf(kind, { customer }) {
  if (kind === 'refund') return { name: 'refund_invoice', arguments: { amount: customer.last_invoice.amount } };
  if (kind === 'decline') return { name: 'decline_refund', arguments: { reason: 'The last invoice is older than 30 days.' } };
  return { name: 'route_ticket', arguments: { team: kind } };
}

export function reward(state) {
  const { special, seen, first, writes, done } = state;
  const kind = kindOf(state);
  const wanted = writeOf(kind, state);
  const tool = first !== null && first.name === wanted.name;
  const value = tool && (kind === 'decline' || first.value === Object.values(wanted.arguments)[0]);
  const looked = seen || wanted.name === 'route_ticket'; // whether a refund is due cannot be known without a look
  const right = value && looked && writes === 1 && done;
  const partial = (seen ? 0.05 : 0) + (tool ? 0.1 : 0) + (value ? 0.1 : 0);
  return {
    reward: right ? 1 : partial,
    branch: special ? 'habit_is_wrong' : 'habit_is_right',
    breakdown: { seen: Number(seen), tool: Number(tool), value: Number(value), writes, ended: Number(done) },
  };
}

export const reference = (state) => ({ actions: [writeOf(kindOf(state), state)], tell: [] });

const called = (call) => ({ role: 'assistant', content: '', toolCalls: [{ id: 'call_0', ...call }] });

const script = (state, kind) => [
  called({ name: 'get_customer', arguments: { email: state.customer.email } }),
  called(writeOf(kind, state)),
  { role: 'assistant', content: 'The ticket is closed.' },
];

export function solve(seed) {
  const state = make(seed);
  return script(state, kindOf(state));
}

export function shortcuts(seed) {
  const state = make(seed);
  return {
    'never the habit': script(state, state.kinds[0]),
    'always the habit': script(state, state.kinds[1]),
    'always network': script(state, 'network'),
    'always decline': script(state, 'decline'),
  };
}
