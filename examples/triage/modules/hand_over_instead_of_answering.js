// Rationale: As in the attempts that answered a question about an invoice with an invented due date, refused it, or explained the routing function in prose, the customer here asks about an invoice and any prose ends the ticket unsettled, so only looking up and really calling `route_ticket` pays, as in the attempt that passed; the twin, told apart only by a looked-up plan that the target does not have, makes the agent act on the rule and the record and not by reflex.
/*
 * Trains `hand_over_instead_of_answering`: a customer's question is settled by handing the ticket over, not by a reply.
 * Even seed (special): the look-up shows the home plan; the ticket goes to the billing team, and prose is a failure.
 * Odd seed (twin): the same email and invoice, but the look-up shows the trial plan, which no team takes: here the
 * agent replies itself, with the amount of the last invoice, and handing over is wrong.
 */
const policy = `You work at the support desk of Larkfield Internet. Each ticket is one email from a customer.

1. First call get_customer with the customer's email address.
2. Then end the ticket in exactly one way:
   - If the customer has the home plan and a question about an invoice, call route_ticket with team "billing". Do not write to the customer yourself.
   - If the customer has the trial plan, no team takes the ticket, whatever it says. Do not call route_ticket. Write to the customer yourself and give the exact amount of the last invoice.`;

const OFFERED = [targetTools.get_customer, targetTools.route_ticket, targetTools.decline_refund];
const MAX_STEPS = 6;
const TEAMS = ['network', 'billing', 'sales', 'business']; // as the tool's description names them
const FIRST = [
  'Nora', 'Felix', 'Ines', 'Oskar', 'Petra', 'Bruno', 'Selma', 'Viktor', 'Wanda', 'Emil',
  'Dora', 'Henrik', 'Milan', 'Lotte', 'Yusuf', 'Greta', 'Anton', 'Bianca', 'Tomas', 'Judith',
];
const LAST = [
  'Novak', 'Lindgren', 'Moreau', 'Petrov', 'Schuster', 'Romano', 'Okafor', 'Dahl', 'Vidal', 'Kowal',
  'Berger', 'Sato', 'Brandt', 'Murphy', 'Nilsen', 'Horvat', 'Santos', 'Weber', 'Larsen', 'Quinn',
];
const CENTS = ['10', '20', '40', '60', '80', '90'];
const INVOICES = ['my last invoice', 'the last invoice', "this month's invoice", 'my new invoice'];
const ITEMS = [
  'line rental', 'router rent', 'setup fee', 'paper fee', 'late fee', 'port fee', 'delivery',
  'extra traffic', 'technician visit', 'reminder fee', 'basic charge', 'second line',
];
const CHANGES = ['so much higher', 'a little higher', 'lower', 'much lower'];
const OTHERS = ['the one before', 'the others', 'the first one', 'the one of a year ago'];
const DETAILS = ['street', 'first name', 'new address', 'tax number', 'house number', 'customer number'];
const FAULTS = ['missing', 'wrong'];
const WORDING = [
  ({ invoice, item }) => `I do not understand ${invoice}. What is the item called ${item}?`,
  ({ invoice, change, other }) => `Why is ${invoice} ${change} than ${other}?`,
  ({ invoice }) => `Could you tell me when ${invoice} is due and how I can pay it?`,
  ({ invoice, item }) => `Could you tell me how high ${invoice} is and what the item called ${item} is?`,
  ({ invoice }) => `Could you tell me how high ${invoice} is and how I can pay it?`,
  ({ invoice, change, other }) => `I do not understand why ${invoice} is ${change} than ${other}. Can you explain it?`,
  ({ invoice, item }) => `I do not understand the item called ${item} on ${invoice}. Can you explain it?`,
  ({ detail, fault }) => `My ${detail} is ${fault} on the invoice. Can you explain how to correct it?`,
];
const REPLIES = [
  (amount) => `The amount of your last invoice is ${amount} dollars.`,
  (amount) => `Your last invoice has an amount of ${amount} dollars.`,
  (amount) => `Thank you for your email. Your last invoice is ${amount} dollars.`,
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
const failure = (text) => json({ error: text });

export const describe = () => ({ policy, tools: OFFERED, maxSteps: MAX_STEPS });

export function make(seed) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const first = pick(FIRST);
  const last = pick(LAST);
  const email = `${first}.${last}${10 + below(89)}@example.com`.toLowerCase();
  const amount = `${19 + below(70)}.${pick(CENTS)}`;
  const days = 2 + below(95);
  const parts = {
    invoice: pick(INVOICES),
    item: pick(ITEMS),
    change: pick(CHANGES),
    other: pick(OTHERS),
    detail: pick(DETAILS),
    fault: pick(FAULTS),
  };
  const question = pick(WORDING)(parts);
  const answer = pick(REPLIES)(amount);
  const customer = {
    email,
    name: `${first} ${last}`,
    plan: special ? 'home' : 'trial', // the only difference between the two of a pair
    last_invoice: { amount, days_old: days },
  };
  return {
    special,
    customer,
    answer,
    request: `From: ${first} ${last} <${email}>\n\n${question}`,
    seen: false,
    writes: [],
    reply: '',
    silent: 0,
    turns: 0,
    done: false,
  };
}

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

function observe(state, call) {
  const name = call?.name;
  const given = call?.arguments && typeof call.arguments === 'object' ? call.arguments : {};
  if (!OFFERED.some((tool) => tool.name === name)) return failure('unknown tool');
  if (state.done) return failure('the ticket is closed');
  if (name === 'get_customer') {
    if (typeof given.email !== 'string') return failure('email is required');
    if (given.email.trim().toLowerCase() !== state.customer.email) return failure('customer not found');
    state.seen = true;
    return json(state.customer);
  }
  const field = name === 'route_ticket' ? 'team' : 'reason';
  const value = typeof given[field] === 'string' ? given[field].trim().toLowerCase() : '';
  if (value === '') return failure(`${field} is required`);
  if (field === 'team' && !TEAMS.includes(value)) return failure('unknown team');
  if (!state.seen) return failure('call get_customer first'); // nothing has happened: it can still be done rightly
  if (state.writes.length < 9) state.writes.push([name, value.slice(0, 40)]);
  return json({ status: 'ok' });
}

/* As in the target, a write that is carried out ends the ticket, and so does a text to the customer. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  const text = typeof message?.content === 'string' ? message.content.trim() : '';
  state.turns += 1;
  if (calls.length > 0) {
    const messages = calls.map((call) => ({ role: 'tool', toolCallId: call?.id, content: observe(state, call) }));
    state.done = state.done || state.writes.length > 0 || state.turns >= MAX_STEPS;
    return { state, messages, done: state.done };
  }
  if (text === '' && !state.done) {
    state.silent += 1;
    if (state.silent < 2 && state.turns < MAX_STEPS)
      return { state, messages: [{ role: 'user', content: 'Please help.' }], done: false };
  }
  if (!state.done) state.reply = text.slice(0, 4000);
  state.done = true;
  return { state, messages: [{ role: 'user', content: 'Thank you.' }], done: true, stopReason: 'user_stop' };
}

/* A reply is prose for the customer: no call written out as text, no dump of the record. */
const isReply = (text) => text !== '' && !/[{}]|route_ticket|get_customer|decline_refund/i.test(text);

/* The amount is in it, and no number that the record does not give. */
function saysAmount({ customer, reply }) {
  const { amount, days_old: days } = customer.last_invoice;
  const found = reply.toLowerCase().replaceAll(customer.email, ' ').match(/\d+(?:[.,]\d+)*/g) ?? [];
  const numbers = found.map((each) => Number(each.replace(',', '.')));
  return numbers.includes(Number(amount)) && numbers.every((each) => each === Number(amount) || each === days);
}

export function reward(state) {
  const { special, seen, writes, reply, done } = state;
  const routed = writes.some(([name]) => name === 'route_ticket');
  const billing = writes.some(([name, value]) => name === 'route_ticket' && value === 'billing');
  const replied = writes.length === 0 && isReply(reply);
  const kind = seen && (special ? routed : replied); // the right kind of ending
  const content = kind && (special ? billing : saysAmount(state)); // and what is in it
  const right = content && done && writes.length === (special ? 1 : 0);
  return {
    reward: right ? 1 : (Number(seen) + Number(kind) + Number(content)) / 10,
    branch: special ? 'hand_over' : 'reply_yourself',
    breakdown: {
      looked_up: Number(seen),
      right_ending: Number(kind),
      right_content: Number(content),
      writes: writes.length,
    },
  };
}

const call = (name, given) => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id: 'call_0', name, arguments: given }],
});
const say = (content) => ({ role: 'assistant', content });
const look = ({ customer }) => call('get_customer', { email: customer.email });
const handOver = () => call('route_ticket', { team: 'billing' });

export const reference = ({ special, customer }) => ({
  actions: special ? [{ name: 'route_ticket', arguments: { team: 'billing' } }] : [],
  tell: special ? [] : [customer.last_invoice.amount],
});

export function solve(seed) {
  const state = make(seed);
  return [look(state), state.special ? handOver() : say(state.answer)];
}

export function shortcuts(seed) {
  const state = make(seed);
  return {
    'always hand over': [look(state), handOver()],
    'always reply': [look(state), say(state.answer)],
    'hand over without a look-up': [handOver()],
    'answer at once': [say('The invoice is due at the end of the month and can be paid by bank transfer.')],
    'refuse after the look-up': [look(state), say("I'm sorry, but I can't assist with that request.")],
    'explain the call': [look(state), say('You can call the route_ticket function with the team "billing".')],
  };
}
