const targetTools = {};
/*
 * Trains `open_or_close_as_prescribed`: the prescribed words stand at exactly the prescribed place of the text.
 * Even seed: the text must begin with given words. Odd seed (twin): the same topic and request, but the text must not
 * begin with them; in one pair of five they belong at the end (or a last line must begin with "P.S."). Opening with the
 * words is wrong in all twins. Some users bring the prescription only with a second message, some want another version.
 */
// History:
// Round 1: success 7% (opening 13%, closing 2%), easier ones no better. Most twins are now 'do not begin with' in place of an ending; opening words are common ones; fewer second turns and minimum lengths; hint by instance; a level for a later sentence that begins with the words.
const policy = "Follow the user's instructions exactly.";
const TOPICS = (
  'otters,owls,lighthouses,windmills,kites,coffee,bread,pumpkins,trains,ferries,tunnels,puppets,violins,clocks,candles,' +
  'umbrellas,blankets,pottery,mushrooms,strawberries,horses,squirrels,turtles,whales,snow,thunder,autumn,rivers,islands,' +
  'the lake,the library,the kitchen,the circus,the forest,a campfire,a picnic,a snowman,painting,dancing,fishing,hiking,' +
  'camels,museums,teachers,postcards,carpets,noodles,chocolate,lanterns,tea'
).split(',');
/* Words that texts often begin with, and how a first sentence may go on after them. */
const COMMON = {
  When: (topic) => ` evening comes, somebody in our street sings a song about ${topic}.`,
  There: (topic) => ` was once a famous song about ${topic} in our street.`,
  In: (topic) => ` our street, somebody sings a song about ${topic}.`,
  As: (topic) => ` evening comes, somebody in our street sings a song about ${topic}.`,
  It: (topic) => ` makes everybody happy to hear a song about ${topic}.`,
  If: (topic) => ` we listen closely, somebody sings a song about ${topic}.`,
};
const STARTS = {
  ...COMMON,
  'There is': (topic) => ` a famous song about ${topic} in our street.`,
  'In a': (topic) => ` street near us, somebody sings a song about ${topic}.`,
  'It is': (topic) => ` a joy to hear somebody sing a song about ${topic}.`,
  'When I': (topic) => ` come home, somebody in our street sings a song about ${topic}.`,
  Many: (topic) => ` singers in our street know a song about ${topic}.`,
  My: (topic) => ` uncle sings a song about ${topic} in our street.`,
};
const ADVERBS = (
  'One day,Today,Years ago,Last summer,In the morning,At night,Sometimes,Once upon a time,As a child,Yesterday,' +
  'After school,At home,Last night,In spring,Once again,Tonight'
).split(',');
const OPENERS = [...Object.keys(STARTS), ...ADVERBS];
const LEADS = [
  (topic) => `Write a short text about ${topic}.`,
  (topic) => `Tell me about ${topic}.`,
  (topic) => `Write about ${topic}.`,
  (topic) => `Please write about ${topic}.`,
  (topic) => `I would like to read something about ${topic}.`,
];
/* Each with its opposite. */
const OPENING = [
  (mark, not) => `${not ? 'Do not begin' : 'Begin'} with "${mark}".`,
  (mark, not) => `It must ${not ? 'not ' : ''}begin with "${mark}".`,
];
const POSTSCRIPT = ['Add a postscript at the end that begins with "P.S."', 'Close with a last line that begins with "P.S."'];
const LEAST = [(n) => `Write ${n} words or more.`, (n) => `Use at least ${n} words.`];
const AGAIN = [
  'Thank you. Now say it in other words. Keep to everything that I asked.',
  'Good. Can you put it differently? All that I asked before still holds.',
];
const LATER = [
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
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const one = (list) => list[below(list.length)];
  const topic = one(TOPICS);
  const [swap, postscript] = [below(5) === 0, below(2) === 0];
  const [opener, adverb, common] = [one(OPENERS), one(ADVERBS), one(Object.keys(COMMON))];
  const [lead, opening, closer] = [one(LEADS), one(OPENING), one(POSTSCRIPT)];
  const [again, later, turns] = [one(AGAIN), one(LATER), below(16)];
  const [limited, number, limit, limitFirst] = [below(6) === 0, 8 + below(8), one(LEAST), below(2) === 0];
  const pick = below(5);
  const kind = seed % 2 === 0 ? 'opening' : swap ? 'closing' : 'not_opening';
  const mode = fewer || turns > 1 ? 'single' : turns === 1 ? 'later' : 'again';
  const least = limited && !fewer ? number : 0;
  const words = swap ? adverb : fewer ? common : opener;
  const mark = kind !== 'closing' ? words : postscript ? 'P.S.' : words.toLowerCase();
  const ending = postscript ? closer : `End with the words "${mark}".`;
  const clause = kind === 'closing' ? ending : opening(mark, kind === 'not_opening');
  const clauses = mode === 'later' ? [] : [clause];
  if (least > 0) clauses.splice(limitFirst ? 0 : clauses.length, 0, limit(least));
  return {
    ...{ kind, postscript, mode, topic, mark, least, pick },
    stem: topic.split(' ').pop().replace(/(ies|ing|s|y)$/, '').slice(0, 5),
    first: [(fewer ? LEADS[0] : lead)(topic), ...clauses].join(' '),
    second: mode === 'single' ? '' : mode === 'again' ? again : later(clause),
    ranks: [], // how good each text was, from 0 to 5
    ...{ said: '', idle: 0, done: false },
  };
}
export const make = (seed) => instance(seed, false);
/* One short text, no minimum of words, and one of the commonest first words. */
export const easier = (seed) => instance(seed, true);

export const start = ({ first }) => [{ role: 'system', content: policy }, { role: 'user', content: first }];

const needed = ({ mode }) => (mode === 'single' ? 1 : 2);
const demanded = ({ mode }, turn) => mode !== 'later' || turn > 0;
const wordsOf = (text) => text.toLowerCase().match(/[a-z0-9]+(?:['’][a-z]+)*/g) ?? [];

/* Is it a text on the topic: of words of its own, no refusal, no copy of the request, not one thing over and over? */
function isAnswer({ stem, first, second }, turn, text) {
  const words = wordsOf(text);
  const asked = wordsOf(turn > 0 ? `${first} ${second}` : first);
  const joined = ` ${words.join(' ')} `;
  const copied = asked.some((_, n) => n + 6 <= asked.length && joined.includes(` ${asked.slice(n, n + 6).join(' ')} `));
  const own = new Set(words.filter((word) => !asked.includes(word))).size;
  const varied = new Set(words).size * 2 >= Math.min(words.length, 80); // long texts repeat small words
  const refuses = /^ (i am |i'm |i’m )?(very )?(sorry|i cannot|i can't|i can’t|i will not|i won't|unfortunately i) /.test(joined);
  return own >= 7 && varied && !copied && !refuses && words.some((word) => word.startsWith(stem));
}

function strip(text, lead, tail) {
  let [from, to] = [0, text.length];
  while (from < to && lead.includes(text[from])) from += 1;
  while (to > from && tail.includes(text[to - 1])) to -= 1;
  return text.slice(from, to);
}
const LEAD = ' "\'“”‘’*_#(>';
const apart = (letter) => letter === undefined || !/[a-z0-9]/.test(letter);
const opens = (text, mark) => text.startsWith(mark) && apart(text[mark.length]);
const closes = (text, mark) => text.endsWith(mark) && apart(text[text.length - mark.length - 1]);

/* Where the words are: 3 as prescribed, 2 nearly (in quotation marks, at both ends, a later sentence), 1 somewhere. */
function placeOf({ kind, postscript, mark: written }, text) {
  const mark = written.toLowerCase();
  const lower = text.trim().toLowerCase().replace(/\s+/g, ' ');
  const held = ` ${wordsOf(lower).join(' ')} `.includes(` ${wordsOf(mark).join(' ')} `) ? 1 : 0;
  if (kind === 'closing' && postscript) {
    const lines = text.toLowerCase().split('\n').map((line) => line.trim()).filter((line) => line !== '');
    const last = lines.pop() ?? '';
    const body = wordsOf(lines.join(' ')).length >= 5 && !lines.some((line) => line.startsWith(mark));
    if (body && last.startsWith(mark) && wordsOf(last.slice(mark.length)).length >= 2) return 3;
    return lower.lastIndexOf(mark) > 0 ? 2 : held;
  }
  const loose = strip(lower, LEAD, ' .!?…"\'“”‘’*_)');
  const [atStart, atEnd] = [opens(loose, mark), closes(loose, mark)];
  if (kind === 'not_opening') return atStart ? 0 : 3;
  if (kind === 'closing') return !atEnd ? held : closes(strip(lower, '', ' .!?…'), mark) && !atStart ? 3 : 2;
  if (opens(lower, mark) && !atEnd) return 3;
  return lower.split(/[.!?:]\s/).some((sentence) => opens(strip(sentence, LEAD, ''), mark)) ? 2 : held;
}

/* 0 no answer, 1 an answer, 2 with the words, 3 nearly at their place, 4 as prescribed, 5 all is right. */
function rankOf(state, text) {
  const turn = state.ranks.length;
  if (text.length > 12000 || !isAnswer(state, turn, text)) return 0;
  const enough = text.split(/\s+/).length >= state.least;
  if (!demanded(state, turn)) return enough ? 5 : 1;
  const place = placeOf(state, text);
  if (place < 3) return 1 + place;
  const fresh = state.mode !== 'again' || turn === 0 || wordsOf(text).join(' ').slice(0, 4000) !== state.said;
  return enough && fresh ? 5 : 4;
}

/* The user: takes each text, asks for a second one where it wants one, then says thanks. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  const text = typeof message?.content === 'string' ? message.content.trim() : '';
  const answer = (content, done) => ({ state: { ...state, done }, done, messages: [{ role: 'user', content }] });
  if (calls.length > 0) {
    state.idle += 1;
    state.done = state.done || state.idle > 2;
    const content = 'error: there is no such tool';
    return { state, done: state.done, messages: calls.map((call) => ({ role: 'tool', toolCallId: call.id, content })) };
  }
  if (state.done) return answer('Goodbye.', true);
  if (text === '') {
    state.idle += 1;
    return state.idle > 1 ? answer('Goodbye.', true) : answer('Please write the text.', false);
  }
  state.ranks.push(rankOf(state, text));
  if (state.ranks.length >= needed(state)) return answer('Thanks.', true);
  state.said = wordsOf(text.slice(0, 12000)).join(' ').slice(0, 4000);
  return answer(state.second, false);
}

const CREDIT = [0, 0.05, 0.1, 0.17, 0.25, 0.3];

export function reward(state) {
  const { kind, ranks, done } = state;
  const all = needed(state);
  const right = done && ranks.length === all && ranks.every((rank) => rank === 5);
  const credit = (rank, turn) => (demanded(state, turn) ? CREDIT[rank] / all : rank === 5 ? 0.05 : 0);
  const partial = ranks.reduce((sum, rank, turn) => sum + credit(rank, turn), 0);
  const share = (from) => ranks.filter((rank) => rank >= from).length / all;
  const breakdown = { answers: share(1), held: share(2), placed: share(4), right: share(5) };
  return { reward: right ? 1 : Math.min(0.3, partial), breakdown, branch: kind };
}

export const reference = ({ kind, mark }) => ({ actions: [], tell: kind === 'not_opening' ? [] : [mark] });

const BODY = [
  (topic) => `People can tell a good story about ${topic}.`,
  (topic) => `Our neighbor keeps an old book about ${topic} next to the window.`,
  (topic) => `Experts always find something new to learn about ${topic}, even after decades.`,
  (topic) => `Children ask good questions when they hear about ${topic}.`,
  (topic) => `Nobody in our family gets tired of talking about ${topic}.`,
];

function compose({ topic, mark, pick, postscript, kind }, turn, atStart, atEnd) {
  const middle = [0, 1].map((n) => BODY[(pick + 2 * turn + n) % BODY.length](topic)).join(' ');
  const goesOn = STARTS[mark] ?? ((about) => `, somebody in our street sang a song about ${about}.`);
  const note = `\n\nP.S. Ask my aunt about ${topic}, she knows a lot.`;
  const close = ` So we sit together and chat about ${topic}, ${mark.toLowerCase()}.`;
  const last = kind === 'closing' && postscript ? note : close;
  return { role: 'assistant', content: `${atStart ? `${mark}${goesOn(topic)} ` : ''}${middle}${atEnd ? last : ''}` };
}
const script = (state, atStart, atEnd) =>
  Array.from({ length: needed(state) }, (_, turn) =>
    compose(state, turn, demanded(state, turn) && atStart, demanded(state, turn) && atEnd),
  );

export const solve = (seed, state = make(seed)) => script(state, state.kind === 'opening', state.kind === 'closing');
export const shortcuts = (seed, state = make(seed)) => ({
  'always open with the words': script(state, true, false),
  'always close with the words': script(state, false, true),
  'both ends': script(state, true, true),
  'at no end': script(state, false, false),
});
export function hint({ kind, postscript, mode, mark }) {
  if (mode === 'later') return 'See whether a request says how the text starts or stops, and keep to it from the first word to the last.';
  if (kind === 'opening')
    return `The request says how the text starts. Let "${mark}" be the very first of your answer, without quotation marks, before anything else, and let the first sentence go on from there.`;
  if (kind === 'not_opening')
    return `The request says how the text does not start. Start with anything but "${mark}", and write about the topic.`;
  return postscript
    ? 'The request says how the text stops. Write a sentence or two, then begin a new line with "P.S." and say one thing more there.'
    : `The request says how the text stops. Write a sentence or two, let the last one stop with "${mark}", and write nothing after it.`;
}
// Rationale: In the failed attempts the agent read a request that prescribed the first words and still began with the subject ("The ..."), or stopped without the prescribed last line; these instances put the same short requests before the same first word, with words from many values, and only the text that has them there (or, in the twin, avoids them there or puts them last) is rewarded. Since attempts at one such request ended both ways in the target, as they do on common first words here, the comparison of attempts teaches the agent to take its first and last words from the request in place of its own habit.
