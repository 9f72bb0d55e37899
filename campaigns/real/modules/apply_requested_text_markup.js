const targetTools = {};
/*
 * Trains `apply_requested_text_markup`: a demanded markup is written literally and at its place.
 * Even seed (special): the request demands markup (title in <<>>, [placeholder], **bold**, quotation marks around all).
 * Odd seed (twin): the same request on the same subject, but it bars that markup, so that plain prose is right.
 */
const policy = "Follow the user's instructions exactly.";
const TOPICS = [
  'owls', 'volcanoes', 'trains', 'coffee', 'candles', 'kites', 'lighthouses', 'honey', 'castles', 'rivers', 'snow',
  'dolphins', 'horses', 'bread', 'clouds', 'guitars', 'pianos', 'umbrellas', 'carpets', 'clocks', 'deserts', 'forests',
  'islands', 'lemons', 'tomatoes', 'spiders', 'turtles', 'elephants', 'camels', 'butterflies', 'frogs', 'sailing',
  'dancing', 'painting', 'cooking', 'music', 'football', 'tennis', 'laughter', 'windmills', 'pottery', 'libraries',
  'ferries', 'the desert', 'the harbour', 'a thunderstorm', 'a waterfall', 'train stations', 'mountain huts', 'old maps',
];
const OPENINGS = [
  (topic) => `Write a short text about ${topic}.`,
  (topic) => `Tell me about ${topic}.`,
  (topic) => `Write about ${topic}.`,
  (topic) => `Please write about ${topic}.`,
  (topic) => `I would like to read something about ${topic}.`,
  (topic) => `Write something about ${topic}.`,
];
const LIMITS = [(n) => `Use at least ${n} words.`, (n) => `Write ${n} words or more.`];
const EXAMPLES = ['[date]', '[name]', '[place]', '[city]'];
const KINDS = ['quotes', 'placeholder', 'bold', 'title'];
const COUPLES = [
  ['bold', 'placeholder'],
  ['title', 'bold'],
  ['title', 'placeholder'],
  ['quotes', 'bold'],
  ['quotes', 'placeholder'],
];
/* For each kind: how it is demanded, and how it is barred. */
const CLAUSES = {
  quotes: [
    ['Put your whole answer in double quotation marks.', 'Do not put your whole answer in double quotation marks.'],
    ['Wrap all of it in double quotation marks.', 'Do not wrap all of it in double quotation marks.'],
    ['Put all of it in double quotation marks.', 'Do not put all of it in double quotation marks.'],
  ],
  placeholder: [
    [
      'Use at least one placeholder in square brackets, such as [x].',
      'Do not use any placeholder in square brackets, such as [x].',
    ],
    [
      'Leave at least one placeholder in square brackets, such as [x].',
      'Do not leave any placeholder in square brackets, such as [x].',
    ],
  ],
  bold: [
    ['Mark at least one word in bold, like **this**.', 'Do not mark any word in bold, like **this**.'],
    ['There must be a word in bold, like **this**.', 'There must not be a word in bold, like **this**.'],
  ],
  title: [
    [
      'Put a title in double angle brackets, as in <<title>>, before the text.',
      'Do not put a title in double angle brackets, as in <<title>>, before the text.',
    ],
    [
      'There must be a title in double angle brackets, as in <<title>>, before the text.',
      'There must not be a title in double angle brackets, as in <<title>>, before the text.',
    ],
  ],
};
const AGAIN = [
  'Thank you. Now say it in other words. Keep to everything that I asked.',
  'Good. Can you put it differently? All that I asked before still holds.',
  'Now say it in other words. Keep to what I asked before.',
];
const ADDED = [
  (clause) => `Good. Now write it again with one more thing: ${clause} Keep to what I asked before.`,
  (clause) => `Thank you. One thing more, beside what I asked at first: ${clause} Write all of it again.`,
  (clause) => `Please change it. ${clause} All that I asked before still holds.`,
];
const FORMS = ['single', 'single', 'again', 'added'];

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
  const [topic, opening, drawnForm, kind, couple] = [pick(TOPICS), pick(OPENINGS), pick(FORMS), pick(KINDS), pick(COUPLES)];
  const [example, limit, again, added] = [pick(EXAMPLES), pick(LIMITS), pick(AGAIN), pick(ADDED)];
  const [count, limited, double, style, way] = [8 + below(7), below(3) === 0, below(4) === 0, below(9), below(6)];
  const form = fewer ? 'single' : drawnForm;
  const kinds = double && !fewer && form !== 'added' ? couple : [kind];
  const clauses = kinds
    .map((each) => CLAUSES[each][fewer ? 0 : way % CLAUSES[each].length][special ? 0 : 1].replace('[x]', example))
    .join(' ');
  const hasLimit = !fewer && (form === 'added' || limited);
  const first = [(fewer ? OPENINGS[0] : opening)(topic), ...(hasLimit ? [limit(count)] : [])];
  if (form !== 'added') first.push(clauses);
  const messages = [first.join(' ')];
  if (form === 'again') messages.push(again);
  if (form === 'added') messages.push(added(clauses));
  const least = hasLimit ? count : 6;
  return { special, topic, form, kinds, messages, least, style, texts: [], calls: 0, done: false };
}
export const make = (seed) => instance(seed, false);
/* One markup, one message, no number of words, the plainest wording. */
export const easier = (seed) => instance(seed, true);

export const start = ({ messages }) => [
  { role: 'system', content: policy },
  { role: 'user', content: messages[0] },
];

/* Every text is taken as it is; then comes the second message, if there is one, or thanks. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  if (calls.length > 0) {
    state.calls += 1;
    state.done = state.calls >= 3;
    const answers = calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: 'Error: there is no such tool.' }));
    return { state, done: state.done, messages: answers };
  }
  const text = typeof message.content === 'string' ? message.content.trim() : '';
  const kept = text.length > 20000 ? text.slice(0, 10000) + text.slice(-10000) : text;
  if (state.texts.length < state.messages.length) state.texts.push(kept);
  const next = state.messages[state.texts.length];
  if (next !== undefined) return { state, done: false, messages: [{ role: 'user', content: next }] };
  state.done = true;
  return { state, done: true, messages: [{ role: 'user', content: 'Thank you.' }] };
}

const wordsOf = (text) => text.toLowerCase().match(/[a-z0-9\u00c0-\u024f]+(?:['\u2019][a-z]+)*/g) ?? [];

/* A markup that is written as demanded, any sign that it was tried, and what is wrong where it is barred. */
const wrapped = (text) => text.length > 2 && /^["\u201c]/.test(text) && /["\u201d]$/.test(text);
const placeholder = (text) => /\[[^[\]\n]*[A-Za-z][^[\]\n]*\](?!\()/.test(text);
const bold = (text) => /\*\*[^\s*](?:[^*\n]*[^\s*])?\*\*/.test(text);
function titled(text) {
  const found = /^[\s#*]*<<([^<>\n]*[A-Za-z][^<>\n]*)>>/.exec(text);
  return found !== null && found[1].trim().toLowerCase() !== 'title';
}
const WRITTEN = { quotes: wrapped, placeholder, bold, title: titled };
const TRIED = { quotes: /^["\u201c]|["\u201d]$/, placeholder: /[[\]]/, bold: /\*|__/, title: /<|>|^#/ };
const BARRED = { quotes: wrapped, placeholder, bold, title: (text) => /<<[^\n]*>>/.test(text) };

/* Is it an answer at all: on the subject, in words of its own, no copy of the request, nothing over and over? */
function isAnswer(text, topic, asked) {
  const words = wordsOf(text);
  const given = new Set(asked.flatMap(wordsOf));
  const fresh = new Set(words.filter((word) => !given.has(word)));
  const joined = ` ${words.join(' ')} `;
  const copied = asked.map(wordsOf).some((own) =>
    own.some((_, n) => n + 6 <= own.length && joined.includes(` ${own.slice(n, n + 6).join(' ')} `)),
  );
  const head = words.slice(0, 100); // long texts repeat small words
  const varied = new Set(head).size * 2 >= head.length;
  const stem = topic.split(' ').at(-1).replace(/(ies|oes|s)$/, '');
  const about = new RegExp(`\\b${stem}`, 'i').test(text);
  return words.length >= 6 && fresh.size >= 4 && !copied && varied && about && /[.!?]/.test(text);
}

function judge(state, n) {
  const text = state.texts[n] ?? '';
  const { special, kinds, topic, least } = state;
  const matters = state.form !== 'added' || n === 1; // the first text of `added` is not about markup yet
  const answer = isAnswer(text, topic, state.messages.slice(0, n + 1));
  const long = wordsOf(text).length >= least;
  const share = (holds) => kinds.filter(holds).length / kinds.length;
  const fit = matters ? share((kind) => (special ? WRITTEN[kind](text) : !BARRED[kind](text))) : 1;
  const tried = matters && special ? share((kind) => TRIED[kind].test(text)) : 0;
  const level = answer ? 0.05 + 0.1 * tried + (matters ? 0.1 * fit + (fit === 1 ? 0.05 : 0) : 0) : 0;
  return { answer, long, fit, level, right: answer && long && fit === 1 };
}

export function reward(state) {
  const { special, form, messages, texts, done } = state;
  const judged = messages.map((_, n) => judge(state, n));
  const plain = texts.map((text) => wordsOf(text).join(' '));
  const other = form !== 'again' || plain[0] !== plain[1];
  const right = done && texts.length === messages.length && other && judged.every((each) => each.right);
  const mean = (value) => judged.reduce((sum, each) => sum + Number(value(each)), 0) / judged.length;
  return {
    reward: right ? 1 : Math.min(0.3, mean((each) => each.level)),
    branch: special ? 'markup_demanded' : 'markup_barred',
    breakdown: {
      answer: mean((each) => each.answer),
      long: mean((each) => each.long),
      markup: mean((each) => (each.answer ? each.fit : 0)),
      other: Number(other),
    },
  };
}

const say = (content) => ({ role: 'assistant', content });
const FIRST = [
  (topic) => `Many people know a little about ${topic} and like to share it.`,
  (topic) => `There is more to learn about ${topic} than most of us think.`,
  (topic) => `Old books have plenty of pages on ${topic} and those who cared.`,
];
const SECOND = [
  'On quiet days a closer look brings real joy.',
  'A patient friend can explain the rest over lunch.',
  'Each country keeps its own small stories for that.',
];

function textOf({ topic, style }, n, kinds) {
  let text = `${FIRST[(style + n) % 3](topic)} ${SECOND[(Math.floor(style / 3) + n) % 3]}`;
  if (kinds.includes('bold')) text += ' Curiosity is **good** company.';
  if (kinds.includes('placeholder')) text += ' Guests may come to [town] soon.';
  if (kinds.includes('title')) text = `<<Thoughts on ${topic}>> ${text}`;
  return kinds.includes('quotes') ? `"${text}"` : text;
}
const script = (state, kinds) => state.messages.map((_, n) => say(textOf(state, n, kinds)));

export const reference = ({ topic }) => ({ actions: [], tell: [topic] });
export const solve = (seed, state = make(seed)) =>
  state.messages.map((_, n) =>
    say(textOf(state, n, state.special && (state.form !== 'added' || n === 1) ? state.kinds : [])),
  );
export const shortcuts = (seed, state = make(seed)) => ({
  'always mark what is named': script(state, state.kinds),
  'never mark anything': script(state, []),
  'all markup at once': script(state, KINDS),
  'another markup': script(state, [KINDS.find((kind) => !state.kinds.includes(kind))]),
});
export const hint = () =>
  'A request may demand a visible sign in the text, or may say that this sign must not be there: read which of the two it is before you write. Where it is demanded, write the sign itself, letter by letter as it is shown and at the place that is named, around or inside an ordinary text on the subject. When the text is to be written again, this still holds.';
// Rationale: In the failed attempts the agent wrote good prose on the subject and left out the title in double angle brackets, the quotation marks around the whole or the bracketed placeholder, while the passing attempt differed only by writing the notation first; here the same kinds of request come again and again on other subjects, success hangs on the literal notation at its place, and the twins that bar it keep this from becoming a reflex.
