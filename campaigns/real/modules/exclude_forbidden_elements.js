const targetTools = {};
// History:
// Round 1: too hard (19% solved, 5% of `forbidden`): one element and mostly one text, no least length, words that can be done without, more letters, easier ones more direct, more levels of credit, a shorter hint for each request.
/*
 * Trains `exclude_forbidden_elements`: what the request forbids (commas, a word, a letter) occurs nowhere in the text.
 * Even seed (special): the request forbids an element that ordinary prose often holds.
 * Odd seed (twin): same subject, same element, but it must occur. Writing as usual does that; keeping it out is wrong.
 * A few instances have a second text (in other words, or with one thing more).
 */
const policy = "Follow the user's instructions exactly.";
const PLURAL = (
  'owls kites rivers candles clocks castles islands pianos museums forests horses boats umbrellas lighthouses ' +
  'windmills turtles violins carrots pancakes tunnels elephants dolphins stamps balloons lanterns pencils camels ' +
  'tulips planets spiders frogs lemons mushrooms trams swans blankets puppets fountains pillows drums gloves'
).split(' ');
const MASS = (
  'snow honey coffee music glass salt thunder sleep painting dancing chocolate silk paper pottery kindness ' +
  'patience laughter gold rice swimming cooking courage'
).split(' ');
const SMALL_WORDS = ['and', 'to', 'in', 'for', 'with', 'that'];
const LETTERS = ['k', 'v', 'b']; // the rarest first
const KINDS = ['comma', 'comma', 'word', 'word', 'letter', 'letter'];
const PLANS = ['one', 'one', 'one', 'one', 'one', 'one', 'one', 'one', 'again', 'more'];
const OPENING = [
  (topic) => `Write a short text about ${topic}.`,
  (topic) => `Tell me about ${topic}.`,
  (topic) => `Write about ${topic}.`,
  (topic) => `Please write about ${topic}.`,
  (topic) => `I would like to read something about ${topic}.`,
];
const FORBID = {
  comma: [() => 'Write without commas.', () => 'Do not use any commas.'],
  word: [(value) => `The word "${value}" must not appear.`, (value) => `Do not use the word "${value}".`],
  letter: [(value) => `The letter "${value}" must not appear.`, (value) => `Do not use the letter "${value}".`],
};
const DEMAND = {
  comma: [() => 'There must be a comma in it.', () => 'Use at least one comma.'],
  word: [(value) => `The word "${value}" must appear in it.`, (value) => `Include the word "${value}".`],
  letter: [(value) => `The letter "${value}" must appear in it.`, (value) => `Use the letter "${value}".`],
};
const AGAIN = [
  'Now say it in other words. Keep to everything that I asked.',
  'Thank you. Can you put it differently? All that I asked before still holds.',
  'Good. Now say it in other words. All that I asked before still holds.',
];
const MORE = [
  (thing) => `Good. Now write it again with one more thing: ${thing} Keep to what I asked before.`,
  (thing) => `Thank you. One thing more, beside what I asked at first: ${thing} Write all of it again.`,
  (thing) => `Please change it. ${thing} All that I asked before still holds.`,
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

export const describe = () => ({ policy, tools: [], maxSteps: 4 });

/* The part of the topic that a text about it holds: 'kite' of 'kites', 'danc' of 'dancing'. */
function stemOf(topic) {
  if (PLURAL.includes(topic)) return topic.slice(0, -1);
  return topic.endsWith('ing') ? topic.slice(0, -3) : topic;
}

function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const topic = pick([...PLURAL, ...MASS]);
  const word = pick(SMALL_WORDS);
  const letters = LETTERS.filter((each) => !topic.includes(each));
  const drawnLetter = pick(letters);
  const values = { comma: ',', word, letter: fewer ? letters[0] : drawnLetter };
  const kind = pick(KINDS);
  const otherKind = pick(KINDS.filter((each) => each !== kind));
  const drawnPlan = pick(PLANS);
  const [opening, wordingA, wordingB, second] = [below(5), below(2), below(2), below(3)];
  const style = below(1000000);

  const plan = fewer ? 'one' : drawnPlan;
  const a = { kind, value: values[kind] };
  const b = { kind: otherKind, value: values[otherKind] };
  const phrase = (element, n) => (special ? FORBID : DEMAND)[element.kind][n](element.value);

  const request = `${OPENING[fewer ? 0 : opening](topic)} ${phrase(a, fewer ? 1 : wordingA)}`;
  const follow = plan === 'again' ? AGAIN[second] : plan === 'more' ? MORE[second](phrase(b, wordingB)) : '';
  /* What is in force at each of the texts. */
  const due = { one: [[a]], again: [[a], [a]], more: [[a], [a, b]] }[plan];
  return { special, plan, topic, stem: stemOf(topic), due, request, follow, style, texts: [], wasted: 0, done: false };
}
export const make = (seed) => instance(seed, false);
/* One text, one element in the most direct wording, the rarest letter. */
export const easier = (seed) => instance(seed, true);

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

/* The user takes each message as the text that was asked for, may want a second one, and says thanks. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const toolCalls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  if (toolCalls.length > 0) {
    state.wasted += 1;
    state.done = state.done || state.wasted > 2;
    const answers = toolCalls.map((call) => ({ role: 'tool', toolCallId: call.id, content: 'Error: there is no such tool.' }));
    return { state, done: state.done, messages: answers };
  }
  const content = typeof message.content === 'string' ? message.content : '';
  if (!state.done) state.texts.push(content.slice(0, 12000));
  if (!state.done && state.texts.length < state.due.length)
    return { state, done: false, messages: [{ role: 'user', content: state.follow }] };
  state.done = true;
  return { state, done: true, stopReason: 'user_stop', messages: [{ role: 'user', content: 'Thank you.' }] };
}

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

/* 1: on the subject, in words of its own, no copy of the request, not the same words over and over. 0.5: nearly so. */
function answers(text, { stem, request, follow }) {
  const words = wordsOf(text);
  const asked = wordsOf(`${request} ${follow}`);
  const different = new Set(words);
  const own = [...different].filter((each) => !asked.includes(each) && !each.startsWith(stem));
  const line = ` ${asked.join(' ')} `;
  const copied = words.some((_, n) => n + 6 <= words.length && line.includes(` ${words.slice(n, n + 6).join(' ')} `));
  if (copied || own.length < 3 || !words.some((each) => each.startsWith(stem))) return 0;
  const full = words.length >= 7 && own.length >= 5 && different.size * 2 >= Math.min(words.length, 100);
  return full ? 1 : 0.5;
}

/* How often an element occurs. */
function hits(text, { kind, value }) {
  if (kind === 'comma') return (text.match(/[,，、]/g) ?? []).length;
  if (kind === 'word') return wordsOf(text).filter((each) => each === value).length;
  return text.toLowerCase().split(value).length - 1;
}

function check(state, n) {
  const text = state.texts[n];
  const answer = text === undefined ? 0 : answers(text, state);
  if (answer < 1) return { answer, kept: 0, form: 0 };
  const shares = state.due[n].map((element) => {
    const found = hits(text, element);
    return state.special ? 1 / (1 + found) : Number(found > 0);
  });
  const fresh = n === 0 || state.plan !== 'again' || wordsOf(text).join(' ') !== wordsOf(state.texts[0]).join(' ');
  return { answer, kept: shares.reduce((sum, each) => sum + each, 0) / shares.length, form: Number(fresh) };
}

export function reward(state) {
  const checks = state.due.map((_, n) => check(state, n));
  const mean = (field) => checks.reduce((sum, each) => sum + each[field], 0) / checks.length;
  const right = state.done && checks.every(({ answer, kept, form }) => answer === 1 && kept === 1 && form === 1);
  return {
    reward: right ? 1 : 0.1 * mean('answer') + 0.2 * mean('kept'),
    branch: state.special ? 'forbidden' : 'wanted',
    breakdown: { answer: mean('answer'), kept: mean('kept'), form: mean('form'), done: Number(state.done) },
  };
}

export const reference = ({ topic }) => ({ actions: [], tell: [topic] });

/* Sentences that hold none of the elements ... */
const FIRST = [
  (topic) => `My sister adores ${topic}.`,
  (topic) => `Our teacher often mentions ${topic} at school.`,
  (topic) => `Few things please me as much as ${topic}.`,
  (topic) => `My uncle once painted ${topic} on a huge wall.`,
  (topic) => `Many songs praise ${topic}.`,
  (topic) => `A poet I met once praised ${topic} at length.`,
];
const MIDDLE = [
  'Each season shows us another side.',
  'Small details matter here.',
  'Children laugh when they see such sights.',
  'Old stories tell us more than any map.',
  'Nothing costs less than a curious eye.',
  'Two friends might chat until sunset.',
  'A calm afternoon suits this well.',
  'Rain or sun means no great change.',
];
const LAST = [
  'This alone seems enough.',
  'I hope others notice it as well.',
  'Tomorrow I shall write more.',
  'Such small joys stay near us.',
];
/* ... and sentences that hold each of them. */
const USUAL = [
  'In the end, many of us are glad to keep a love for such things, and with time that is the best of it.',
  'To be honest, the value of that lies in the back of the mind, and with luck it is kept for years.',
  'Back home, the talk of that village is never far, and with friends we are glad to share in it for hours.',
];

function compose({ topic, style }, turn, without) {
  const below = randomOf(style + turn * 7919);
  const left = [...MIDDLE];
  const middle = [0, 0, 0].map(() => left.splice(below(left.length), 1)[0]);
  const [last, usual] = [LAST[below(LAST.length)], USUAL[below(USUAL.length)]];
  const first = FIRST[(style + turn) % FIRST.length](topic);
  return [first, ...middle, ...(without ? [] : [usual]), last].join(' ');
}
const script = (state, without) =>
  state.due.map((_, turn) => ({ role: 'assistant', content: compose(state, turn, without) }));

export const solve = (seed, state = make(seed)) => script(state, state.special);
export const shortcuts = (seed, state = make(seed)) => ({
  'always keep it out': script(state, true),
  'write as usual': script(state, false),
});
export const hint = ({ special, topic }) =>
  special
    ? `Something must stay out of this text altogether. Write only two short plain sentences about ${topic}, of six to eight words each, and nothing about the request itself. ` +
      'Where a word or a sign that is not wanted would come, end the sentence or say it in another way.'
    : `Something must be in this text. Write two or three full sentences about ${topic} as you usually do, and nothing about the request itself. ` +
      'Look whether it is in there before you stop.';
// Rationale: In the failed attempts the agent writes in its usual style and the banned comma turns up in a list or after a place, or it writes about the banned word instead of the subject; here the same short requests put the same elements before it, and only the texts that keep them out, on the subject and without a remark on the request, are fully rewarded. The twins that want the very same element keep it from learning a reflex, so that it learns to read what is forbidden and to write short plain sentences around it, as the passed attempt does.
