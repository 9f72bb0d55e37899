const targetTools = {};
/*
 * Trains `exclude_forbidden_elements`: what the request forbids (commas, a word, a letter) occurs nowhere in the text.
 * Even seed (special): the request forbids an element that ordinary prose nearly always holds.
 * Odd seed (twin): same subject, same element, but it must occur. Writing as usual does that; keeping it out is wrong.
 * Some instances have two elements at once, some a second text (in other words, or with one thing more).
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
const SMALL_WORDS = ['and', 'the', 'of', 'to', 'in'];
const LETTERS = ['k', 'v', 'b'];
const KINDS = ['comma', 'comma', 'word', 'word', 'letter'];
const PLANS = ['one', 'one', 'one', 'one', 'both', 'again', 'again', 'more'];
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
const LENGTH = [(least) => `Use at least ${least} words.`, (least) => `Write ${least} words or more.`];
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

function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const topic = pick([...PLURAL, ...MASS]);
  const plural = PLURAL.includes(topic);
  const word = pick([...SMALL_WORDS, plural ? 'are' : 'is']);
  const letter = pick(LETTERS.filter((each) => !topic.includes(each)));
  const values = { comma: ',', word, letter };
  const kind = pick(KINDS);
  const otherKind = pick(KINDS.filter((each) => each !== kind));
  const drawnPlan = pick(PLANS);
  const [opening, wordingA, wordingB, second, lengthWording] = [below(5), below(2), below(2), below(3), below(2)];
  const [drawnLeast, withLength, lengthFirst, style] = [10 + below(7), below(3) === 0, below(2) === 0, below(1000000)];

  const plan = fewer ? 'one' : drawnPlan;
  const kindA = fewer && kind === 'letter' ? 'comma' : kind;
  const a = { kind: kindA, value: values[kindA] };
  const b = { kind: otherKind, value: values[otherKind] };
  const least = withLength && !fewer ? drawnLeast : 0;
  const phrase = (element, n) => (special ? FORBID : DEMAND)[element.kind][n](element.value);

  const rules = [phrase(a, wordingA), ...(plan === 'both' ? [phrase(b, wordingB)] : [])];
  const length = least > 0 ? [LENGTH[lengthWording](least)] : [];
  const parts = lengthFirst ? [...length, ...rules] : [...rules, ...length];
  const request = [OPENING[fewer ? 0 : opening](topic), ...parts].join(' ');
  const follow = plan === 'again' ? AGAIN[second] : plan === 'more' ? MORE[second](phrase(b, wordingB)) : '';
  /* What is in force at each of the texts. */
  const due = { one: [[a]], both: [[a, b]], again: [[a], [a]], more: [[a], [a, b]] }[plan];
  const stem = plural ? topic.slice(0, -1) : topic;
  return { special, plan, topic, stem, least, due, request, follow, style, texts: [], wasted: 0, done: false };
}
export const make = (seed) => instance(seed, false);
/* One text, one element (a comma or a small word), no length. */
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

/* On the subject, in words of its own, no copy of the request, not the same words over and over. */
function isAnswer(text, { stem, request, follow }) {
  const words = wordsOf(text);
  const asked = wordsOf(`${request} ${follow}`);
  const different = new Set(words);
  const own = [...different].filter((each) => !asked.includes(each) && !each.startsWith(stem));
  const line = ` ${asked.join(' ')} `;
  const copied = words.some((_, n) => n + 6 <= words.length && line.includes(` ${words.slice(n, n + 6).join(' ')} `));
  return (
    words.length >= 8 &&
    words.some((each) => each.startsWith(stem)) &&
    own.length >= 6 &&
    different.size * 2 >= Math.min(words.length, 100) &&
    !copied
  );
}

/* How often an element occurs. */
function hits(text, { kind, value }) {
  if (kind === 'comma') return (text.match(/[,，、]/g) ?? []).length;
  if (kind === 'word') return wordsOf(text).filter((each) => each === value).length;
  return text.toLowerCase().split(value).length - 1;
}

function check(state, n) {
  const text = state.texts[n];
  if (text === undefined || !isAnswer(text, state)) return { answer: 0, kept: 0, form: 0 };
  const shares = state.due[n].map((element) => {
    const found = hits(text, element);
    return state.special ? 1 / (1 + found) : Number(found > 0);
  });
  const long = wordsOf(text).length >= state.least;
  const fresh = n === 0 || state.plan !== 'again' || wordsOf(text).join(' ') !== wordsOf(state.texts[0]).join(' ');
  return { answer: 1, kept: shares.reduce((sum, each) => sum + each, 0) / shares.length, form: Number(long && fresh) };
}

export function reward(state) {
  const checks = state.due.map((_, n) => check(state, n));
  const mean = (field) => checks.reduce((sum, each) => sum + each[field], 0) / checks.length;
  const right = state.done && checks.every(({ answer, kept, form }) => answer === 1 && kept === 1 && form === 1);
  return {
    reward: right ? 1 : 0.05 * mean('answer') + 0.15 * mean('kept'),
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
  'That alone seems enough.',
  'I hope others notice it as well.',
  'Tomorrow I shall write more.',
  'Such small joys stay near us.',
];
/* ... and sentences that hold each of them. */
const USUAL = [
  'In the end, many people are glad to keep a love of such things, and that is the best of it.',
  'To be honest, the value of such moments is in the back of the mind, and many are kept there.',
  'Back home, the talk of the village is never far, and we are glad to share in it.',
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
export const hint = () =>
  'See whether the request wants something kept out of the text or wants it in there: the two sound much alike. ' +
  'What must stay out may not stand anywhere, not even in a remark on the request, so write a few short plain sentences and look over each one. ' +
  'What must be there comes by itself when you write as usual. ' +
  'If a second text is asked for, all of this holds again.';
// Rationale: In the failed attempts the text is on the subject but the usual style brings in the banned comma, or the agent writes about the quoted word that it should leave out, while the passing one uses short plain sentences; the instances here put the same requests on elements that usual prose nearly always holds, so that only phrasing around them succeeds. The twins want the same element in the text, so the agent must read whether the request forbids it, and does not learn to clip its style everywhere.
