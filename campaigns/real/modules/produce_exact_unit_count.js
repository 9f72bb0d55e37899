// Rationale: In the failed attempts the agent wrote its usual one or two sentences of prose where another number of sentences, or separate bullet points, was demanded, while in the passed ones its count happened to be as demanded. Here the same short requests come in pairs that differ only in the number, so that neither habit nor one fixed length pays and the agent has to write as many units as are asked for, in the demanded form, and stop.
const targetTools = {};
/*
 * Trains `produce_exact_unit_count`: the request fixes how many sentences, bullet points, list items or
 * paragraphs the text has; exactly so many are written, each set off as demanded, and nothing after them.
 * Even seed (special): the larger number of a pair. Odd seed (twin): the same request with the smaller number,
 * where writing as many as in the special instance is wrong.
 */
// History:
// Round 1: success 8% (more_units 1%), 19% with hint and easier: too hard. Counts now at most three and mostly of
//   sentences, fewer second turns, easier is two against one in each form, more levels of credit, a shorter hint.
const policy = "Follow the user's instructions exactly.";
const NUMBERS = ['zero', 'one', 'two', 'three'];
const TOPICS = [
  'trains', 'candles', 'horses', 'mountains', 'rivers', 'coffee', 'bread', 'windows', 'ships', 'castles',
  'trees', 'music', 'kites', 'lamps', 'pencils', 'the piano', 'rabbits', 'onions', 'dolphins', 'islands',
  'lighthouses', 'umbrellas', 'turtles', 'carpets', 'blankets', 'drums', 'elephants', 'mirrors', 'kindness',
  'courage', 'patience', 'spiders', 'forests', 'the ocean', 'a volcano', 'chocolate', 'carrots', 'guitars',
  'tigers', 'dreams', 'hospitals', 'football', 'breakfast', 'a thunderstorm', 'bananas', 'kitchens', 'wool',
  'tractors', 'squirrels', 'a waterfall',
];
const PLACES = ['Harwick', 'Lindmoor', 'Ostervale', 'Brenton', 'Calder', 'Marwood', 'Tilford', 'Quenby'];
const TIMES = ['every autumn', 'each spring', 'on Sundays', 'after supper', 'during holidays', 'late at night'];
const OPENINGS = [
  (topic) => `Write about ${topic}.`,
  (topic) => `Tell me about ${topic}.`,
  (topic) => `Write a short text about ${topic}.`,
  (topic) => `Please write about ${topic}.`,
  (topic) => `I would like to read something about ${topic}.`,
];
const counted = (n, unit) => `${NUMBERS[n]} ${unit}${n === 1 ? '' : 's'}`;
/* For each form the pairs of numbers (larger, smaller), and how the count is worded. */
const FORMS = {
  sentences: {
    pairs: [[2, 1], [2, 1], [2, 1], [3, 1], [3, 2]],
    words: [
      (n) => `Use exactly ${counted(n, 'sentence')}.`,
      (n) => `It must have exactly ${counted(n, 'sentence')}.`,
    ],
  },
  bullets: {
    pairs: [[3, 2]],
    words: [
      (n) => `Use exactly ${counted(n, 'bullet point')}.`,
      (n) => `It must have exactly ${counted(n, 'bullet point')}.`,
    ],
  },
  items: {
    pairs: [[3, 2]],
    words: [(n) => `Write it as a numbered list of exactly ${counted(n, 'item')}.`],
  },
  paragraphs: {
    pairs: [[2, 1]],
    words: [
      (n) => `Use exactly ${counted(n, 'short paragraph')}.`,
      (n) => `It must have exactly ${counted(n, 'short paragraph')}.`,
    ],
  },
};
const DRAWN = [
  'sentences', 'sentences', 'sentences', 'sentences', 'sentences', 'sentences', 'sentences', 'sentences',
  'bullets', 'items', 'items', 'paragraphs',
];
const MODES = ['rewrite', 'later', 'single', 'single', 'single', 'single', 'single', 'single', 'single', 'single'];
const REWRITE = [
  'Now say it in other words. All that I asked before still holds.',
  'Thank you. Can you put it differently? Keep to everything that I asked.',
];
const LATER = [
  (count) => `Good. Now write it again with one more thing: ${count} Keep to what I asked before.`,
  (count) => `Thank you. One thing more, beside what I asked at first: ${count} Write all of it again.`,
  (count) => `Please change it. ${count} All that I asked before still holds.`,
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
  const [topic, form, drawnMode, drawnOpening] = [pick(TOPICS), pick(DRAWN), pick(MODES), pick(OPENINGS)];
  const [drawnPair, wording, rewrite, later] = [pick(FORMS[form].pairs), pick(FORMS[form].words), pick(REWRITE), pick(LATER)];
  const [place, when, offset] = [pick(PLACES), pick(TIMES), below(12)];
  const mode = fewer ? 'single' : drawnMode;
  const [many, few] = fewer ? [2, 1] : drawnPair;
  const n = special ? many : few;
  const opening = (fewer ? OPENINGS[0] : drawnOpening)(topic);
  const request = mode === 'later' ? opening : `${opening} ${wording(n)}`;
  const second = mode === 'later' ? later(wording(n)) : mode === 'rewrite' ? rewrite : '';
  const word = topic.split(' ').pop();
  return { special, mode, form, n, many, few, topic, word, request, second, place, when, offset, texts: [], bad: 0, done: false };
}
export const make = (seed) => instance(seed, false);
/* One turn, the plainest opening, two units against one. */
export const easier = (seed) => instance(seed, true);

export const start = ({ request }) => [
  { role: 'system', content: policy },
  { role: 'user', content: request },
];

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  if (calls.length > 0) {
    state.bad += 1;
    state.done = state.done || state.bad >= 3;
    const messages = calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: 'error unknown tool' }));
    return { state, messages, done: state.done };
  }
  const content = typeof message.content === 'string' ? message.content : '';
  if (!state.done) state.texts.push(content.slice(0, 12000));
  const more = !state.done && state.second !== '' && state.texts.length === 1;
  state.done = !more;
  return { state, messages: [{ role: 'user', content: more ? state.second : 'Thank you.' }], done: state.done };
}

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu) ?? [];
/* About the topic, with words of its own, no copy of the request, and not one thing over and over. */
function isAnswer({ word, request, second }, text) {
  const words = wordsOf(text);
  const asked = [...wordsOf(request), ...wordsOf(second)];
  const fresh = words.filter((each) => !asked.includes(each)).length;
  const stem = word.replace(/s$/, '');
  const joined = ` ${words.join(' ')} `;
  const copied = asked.some((_, at) => at + 6 <= asked.length && joined.includes(` ${asked.slice(at, at + 6).join(' ')} `));
  const varied = new Set(words).size >= Math.min(words.length, 80) / 2;
  return words.length >= 6 && fresh >= 4 && fresh * 3 >= words.length && words.some((each) => each.startsWith(stem)) && !copied && varied;
}

const BULLET = /^[-*•–]\s+\S/;
const NUMBER = /^\d+[.)]\s+\S/;
/* Dots of abbreviations end no sentence; a line break does. */
function sentencesOf(text) {
  return text
    .replace(/\b(mr|mrs|ms|dr|st|vs|e\.g|i\.e)\./gi, '$1')
    .replace(/\betc\.(?=\s+[a-z])/g, 'etc')
    .replace(/\b([A-Z])\.(?=[A-Z]\.)/g, '$1')
    .replace(/\b([A-Z]{2,})\.(?=\s+[a-z])/g, '$1')
    .split(/[.!?…]+["'”’)\]*_]*(?=\s|$)|\n+/)
    .filter((each) => /\p{L}/u.test(each));
}

/* The units of the demanded form, and whether the text is in that form and nothing else. */
function unitsOf(form, text) {
  const lines = text.split('\n').map((line) => line.trim()).filter((line) => line !== '');
  const plain = !lines.some((line) => BULLET.test(line) || NUMBER.test(line));
  if (form === 'sentences')
    return { units: sentencesOf(text), clean: plain && /[.!?…]["'”’)\]*_]*$/.test(text.trim()) };
  if (form === 'paragraphs') {
    const units = text.split(/\n\s*\n/).map((each) => each.trim()).filter((each) => each !== '');
    return { units, clean: plain && units.length > 0 };
  }
  const mark = form === 'bullets' ? BULLET : NUMBER;
  const units = lines.filter((line) => mark.test(line));
  const first = lines.findIndex((line) => mark.test(line)); // one line may introduce the list, none follows it
  const ordered = form === 'bullets' || units.every((line, at) => parseInt(line, 10) === at + 1);
  return { units, clean: units.length > 0 && first <= 1 && units.length === lines.length - first && ordered };
}

/* 0.25 for exactly the units that were asked for; less by how far the count is off, or where something else is beside. */
function scoreOf(state, text) {
  if (!isAnswer(state, text)) return 0;
  const { units, clean } = unitsOf(state.form, text);
  if (units.length === 0) return 0;
  const bodies = units.map((unit) => wordsOf(unit.replace(/^\d+[.)]\s+/, '')));
  const full = bodies.every((body) => body.length >= 2);
  const differ = new Set(bodies.map((body) => body.join(' '))).size === bodies.length;
  const off = Math.abs(units.length - state.n);
  if (!clean || !full || !differ) return off === 0 ? 0.08 : 0.04;
  return off === 0 ? 0.25 : off === 1 ? 0.14 : off === 2 ? 0.08 : 0.04;
}

export function reward(state) {
  const { special, mode, texts, done, second } = state;
  const turns = second === '' ? 1 : 2;
  const under = mode === 'later' ? [1] : mode === 'rewrite' ? [0, 1] : [0]; // the texts that fall under the count
  const scores = under.map((at) => (at < texts.length ? scoreOf(state, texts[at]) : 0));
  const exact = scores.filter((score) => score === 0.25).length;
  const answers = texts.filter((text) => isAnswer(state, text)).length;
  const again = mode === 'rewrite' && texts.length > 1 && wordsOf(texts[0]).join(' ') === wordsOf(texts[1]).join(' ');
  const right = done && texts.length === turns && answers === turns && exact === under.length && !again;
  const sum = scores.reduce((total, score) => total + score, 0) / under.length + (0.05 * Math.min(answers, turns)) / turns;
  return {
    reward: right ? 1 : Math.min(0.3, Math.round(sum * 1000) / 1000),
    branch: special ? 'more_units' : 'fewer_units',
    breakdown: { answers, exact, counted: under.length, again: Number(again) },
  };
}

export const reference = ({ word }) => ({ actions: [], tell: [word] });

const say = (content) => ({ role: 'assistant', content });
const PATTERNS = [
  (t, p) => `In ${p} many children learn about ${t} at school.`,
  (t, p, w) => `My grandmother often told stories of ${t} ${w}.`,
  (t, p) => `Some neighbours near ${p} care deeply for ${t}.`,
  (t) => `Painters and poets find fresh ideas in ${t}.`,
  (t) => `A quiet hour with ${t} will change your mood.`,
  (t) => `Scientists still discover new facts behind ${t}.`,
  (t, p) => `Travellers passing through ${p} remember ${t} fondly.`,
  (t) => `Without ${t} our daily life feels rather dull.`,
  (t) => `Old books describe ${t} with great respect.`,
  (t, p, w) => `Friends gather ${w} and speak of ${t}.`,
  (t) => `Nobody forgets the first encounter with ${t}.`,
  (t) => `Several museums show ${t} to curious visitors.`,
];

function compose({ topic, place, when, offset }, form, n, round) {
  const sentence = (at) => PATTERNS[(offset + 6 * round + at) % PATTERNS.length](topic, place, when);
  const each = Array.from({ length: n }, (_, at) => at);
  if (form === 'sentences') return each.map(sentence).join(' ');
  if (form === 'bullets') return each.map((at) => `- ${sentence(at)}`).join('\n');
  if (form === 'items') return each.map((at) => `${at + 1}. ${sentence(at)}`).join('\n');
  return each.map((at) => `${sentence(2 * at)} ${sentence(2 * at + 1)}`).join('\n\n');
}

function script(state, form, n) {
  if (state.mode === 'single') return [say(compose(state, form, n, 0))];
  const first = state.mode === 'later' ? compose(state, 'sentences', 2, 0) : compose(state, form, n, 0);
  return [say(first), say(compose(state, form, n, 1))];
}
export const solve = (seed, state = make(seed)) => script(state, state.form, state.n);
export const shortcuts = (seed, state = make(seed)) => ({
  'always the larger number': script(state, state.form, state.many),
  'always the smaller number': script(state, state.form, state.few),
  'always one sentence': script(state, 'sentences', 1),
  'always two sentences of prose': script(state, 'sentences', 2),
});

export function hint({ mode, form, n, topic }) {
  if (mode === 'later')
    return 'The user will ask for a change that says how many units the text must have. Write it all again with just so many, and then stop.';
  if (form === 'sentences')
    return `Write just ${counted(n, 'short sentence')} about ${topic}, no more and no fewer, and stop at the last full stop.`;
  if (form === 'bullets') return `Write just ${counted(n, 'short line')} about ${topic}, each with a dash and a blank in front, and then stop.`;
  if (form === 'items') return `Write just ${counted(n, 'short line')} about ${topic}, each with its number and a dot in front, and then stop.`;
  const gap = n === 1 ? 'Leave no empty line in it.' : 'Put an empty line between them.';
  return `Write just ${counted(n, 'short paragraph')} about ${topic}, and then stop. ${gap}`;
}
