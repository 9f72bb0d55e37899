const targetTools = {};
/*
 * Trains `apply_requested_text_markup`: a demanded markup is written literally and at its place.
 * Even seed (special): the request demands a markup (title in <<>>, [placeholder], **bold**, quotation marks around all).
 * Odd seed (twin): the same request on the same subject, but it bars that markup, so that plain prose is right.
 */
// History:
// Round 1: passed the self-test, but markup_demanded was solved in 3% only: markup in the second message, limits, couples.
//   Now one markup, in the first message; samples on the subject; finer credit; milder test of an answer; hint by kind.
const policy = "Follow the user's instructions exactly.";
const TOPICS = [
  'owls', 'volcanoes', 'trains', 'coffee', 'candles', 'kites', 'lighthouses', 'honey', 'castles', 'rivers', 'snow',
  'dolphins', 'horses', 'bread', 'clouds', 'guitars', 'pianos', 'umbrellas', 'carpets', 'clocks', 'deserts', 'forests',
  'islands', 'lemons', 'tomatoes', 'spiders', 'turtles', 'elephants', 'camels', 'butterflies', 'frogs', 'music',
  'football', 'tennis', 'windmills', 'libraries', 'maps', 'boats', 'cats', 'rabbits', 'bears', 'flowers', 'trees',
  'schools', 'birds', 'books', 'cars', 'hats', 'eggs', 'onions',
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
const TITLES = ['All about', 'Thoughts on', 'A word on'];
const KINDS = ['quotes', 'placeholder', 'bold', 'title'];
const DRAWN = ['placeholder', 'placeholder', 'title', 'title', 'bold', 'bold', 'quotes'];
/* For each kind: how it is demanded, and how it is barred; the sample stands at %. */
const CLAUSES = {
  quotes: [
    ['Put your whole answer in double quotation marks%.', 'Do not put your whole answer in double quotation marks%.'],
    ['Wrap all of it in double quotation marks%.', 'Do not wrap all of it in double quotation marks%.'],
  ],
  placeholder: [
    [
      'Use at least one placeholder in square brackets, such as %.',
      'Do not use any placeholder in square brackets, such as %.',
    ],
    [
      'Leave at least one placeholder in square brackets, such as %.',
      'Do not leave any placeholder in square brackets, such as %.',
    ],
  ],
  bold: [
    ['Mark at least one word in bold, like %.', 'Do not mark any word in bold, like %.'],
    ['There must be a word in bold, like %.', 'There must not be a word in bold, like %.'],
  ],
  title: [
    [
      'Put a title in double angle brackets, as in %, before the text.',
      'Do not put a title in double angle brackets, as in %, before the text.',
    ],
    [
      'There must be a title in double angle brackets, as in %, before the text.',
      'There must not be a title in double angle brackets, as in %, before the text.',
    ],
  ],
};
const ADDED = [
  (clause) => `Good. Now write it again with one more thing: ${clause} Keep to what I asked before.`,
  (clause) => `Thank you. One thing more, beside what I asked at first: ${clause} Write all of it again.`,
  (clause) => `Please change it. ${clause} All that I asked before still holds.`,
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
  const [topic, opening, kind, example, heading] = [TOPICS, OPENINGS, DRAWN, EXAMPLES, TITLES].map(pick);
  const [limit, added, count, style, way] = [pick(LIMITS), pick(ADDED), 8 + below(5), below(9), below(2)];
  const [again, onTopic] = [below(7) === 0 && !fewer, below(2) === 0 || fewer];
  const sample = {
    quotes: onTopic ? `, as in "I like ${topic}"` : '',
    placeholder: example,
    bold: onTopic ? `**${topic}**` : '**this**',
    title: onTopic ? `<<${heading} ${topic}>>` : '<<title>>',
  }[kind];
  const clause = CLAUSES[kind][fewer ? 0 : way][special ? 0 : 1].replace('%', () => sample);
  const messages = [`${(fewer ? OPENINGS[0] : opening)(topic)} ${clause}`];
  if (again) messages.push(added(limit(count)));
  return { special, topic, kind, sample, messages, count, style, texts: [], calls: 0, done: false };
}
export const make = (seed) => instance(seed, false);
/* One message in the plainest wording, with a sample that is about the subject. */
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

/* Is a markup written as demanded (or, where it is barred, is it there)? */
const wrapped = (text) => text.length > 2 && /^["\u201c]/.test(text) && /["\u201d]$/.test(text);
const placeholder = (text) => /\[[^[\]\n]*[A-Za-z][^[\]\n]*\](?!\()/.test(text);
const bold = (text) => /\*\*[^\s*](?:[^*\n]*[^\s*])?\*\*/.test(text);
const titled = (text) => /^(?:[\s#*]|title:)*<<[^<>\n]*[A-Za-z][^<>\n]*>>/i.test(text);
const WRITTEN = { quotes: wrapped, placeholder, bold, title: titled };
const BARRED = { quotes: wrapped, placeholder, bold, title: (text) => /<<[^\n]*>>/.test(text) };
/* What a markup that is half there or at a wrong place is worth: the first pattern that fits. */
const TRIED = {
  quotes: [[/^["\u201c]/, 0.8], [/["\u201d]$/, 0.6], [/["\u201c\u201d]/, 0.3]],
  placeholder: [[/\[.*\]/, 0.8], [/[[\]]/, 0.6], [/[({<]/, 0.2]],
  bold: [[/\*\*/, 0.7], [/\*|__/, 0.4], [/<b>|^#/, 0.2]],
  title: [[/<<.*>>/, 0.8], [/<|>/, 0.5], [/^(?:#|\*|title)/i, 0.4], [/^[^\n]{1,60}\n/, 0.2]],
};

/* Is it an answer at all: on the subject, in words of its own, no copy of the request, nothing over and over? */
function isAnswer(text, topic, asked) {
  const words = wordsOf(text);
  const given = new Set(asked.flatMap(wordsOf));
  const different = new Set(words);
  const fresh = [...different].filter((word) => !given.has(word));
  const joined = ` ${words.join(' ')} `;
  const copied = asked.map(wordsOf).some((own) =>
    own.some((_, n) => n + 6 <= own.length && joined.includes(` ${own.slice(n, n + 6).join(' ')} `)),
  );
  const varied = different.size * 2 >= Math.min(words.length, 40); // long texts repeat small words
  const stem = topic.replace(/(ies|oes|s)$/, '');
  const about = new RegExp(`\\b${stem}`, 'i').test(text);
  return words.length >= 5 && fresh.length >= 3 && !copied && varied && about && /[.!?]/.test(text);
}

function judge({ special, kind, topic, count, messages, texts }, n) {
  const text = texts[n] ?? '';
  const answer = isAnswer(text, topic, messages.slice(0, n + 1));
  const long = n === 0 || wordsOf(text).length >= count; // only the second message asks for a number of words
  const fit = special ? WRITTEN[kind](text) : !BARRED[kind](text);
  const tried = special ? (TRIED[kind].find(([pattern]) => pattern.test(text))?.[1] ?? 0) : 0;
  const level = answer ? 0.05 + 0.2 * (fit ? 1 : tried) + (fit && long ? 0.05 : 0) : 0;
  return { answer, long, fit, level, right: answer && long && fit };
}

export function reward(state) {
  const { special, messages, texts, done } = state;
  const judged = messages.map((_, n) => judge(state, n));
  const right = done && texts.length === messages.length && judged.every((each) => each.right);
  const mean = (value) => judged.reduce((sum, each) => sum + Number(value(each)), 0) / judged.length;
  return {
    reward: right ? 1 : Math.min(0.3, mean((each) => each.level)),
    branch: special ? 'markup_demanded' : 'markup_barred',
    breakdown: {
      answer: mean((each) => each.answer),
      long: mean((each) => each.answer && each.long),
      markup: mean((each) => each.answer && each.fit),
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
  if (kinds.includes('title')) text = `<<Notes on ${topic}>> ${text}`;
  return kinds.includes('quotes') ? `"${text}"` : text;
}
const script = (state, kinds) => state.messages.map((_, n) => say(textOf(state, n, kinds)));

export const reference = ({ topic }) => ({ actions: [], tell: [topic] });
export const solve = (seed, state = make(seed)) => script(state, state.special ? [state.kind] : []);
export const shortcuts = (seed, state = make(seed)) => ({
  'always mark what is named': script(state, [state.kind]),
  'never mark anything': script(state, []),
  'all markup at once': script(state, KINDS),
  'another markup': script(state, [KINDS.find((kind) => kind !== state.kind)]),
});

export function hint({ special, kind, sample }) {
  if (!special)
    return 'Read the word "not" in the request: the sign that it shows must not be in your answer. Write a few plain sentences on the subject, without any such sign.';
  return {
    quotes:
      'The very first sign of your answer must be a double quotation mark, and the very last sign too. Write one short sentence on the subject between the two marks, and nothing outside.',
    placeholder: `Write a few sentences on the subject, and let a word in square brackets stand in one of them, with the brackets, just as ${sample} is written.`,
    bold: `Write a few sentences on the subject, and put two stars right before a word and two stars right after it, just as ${sample} is written.`,
    title: `Begin with a title, written just as ${sample} is: first <<, then some words on the subject, then >>. After it write a few sentences on the subject.`,
  }[kind];
}
// Rationale: In the failed attempts the agent begins at once with ordinary prose and leaves out the title, the quotation marks or the placeholder that one sentence of the request demanded, while in the passed one it writes the shown notation first and then the text; each special instance here turns on that same sentence and pays only for the sign itself at its place. The twin bars the same sign in nearly the same words, so the agent must read the demand and cannot learn a reflex of always decorating its text.
