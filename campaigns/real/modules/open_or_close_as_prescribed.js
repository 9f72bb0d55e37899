// Rationale: In the failed attempts the agent was told with which words to begin and began with the topic itself instead, as it usually does, and in another attempt at one of these requests it did begin with the word; here both of a pair make that same demand in the same words, each with other opening words, so its usual beginning never pays and only taking the words from the request and building the first sentence around them does. The attempt that left out its prescribed last line shows the same neglect of a prescribed place, and reading the request for such a prescription before writing is what is rewarded on every instance.
const targetTools = {};
/*
 * Trains `open_or_close_as_prescribed`: the prescribed words stand at exactly the prescribed place of the text.
 * Even seed: the text must begin with given words. Odd seed (twin): the same topic and the same request, in which other
 * opening words stand at the same place. What is right for the one is wrong for the other, and a text that begins in
 * its own way is wrong for both. Some users bring the prescription only with a second message, some want another version.
 */
// History:
// Round 1: success 7% (opening 13%, closing 2%), easier ones no better. Most twins are now 'do not begin with' in place of an ending; opening words are common ones; fewer second turns and minimum lengths; hint by instance; a level for a later sentence that begins with the words.
// Round 3: success 25% (opening 19%, not_opening 34%), but closing 0%; openings with function words ('Many', 'It is') 0 of 8. Endings are left out, all twins are 'do not begin with'; all opening words are adverbial ones, a longer list, in easier instances too.
// Round 4: rejected by a person: negated twins reward the usual plain text. Twins now prescribe other opening words of the same list, in the same words; a sentence that begins with the pair's other words costs the success; topic and own words are looked for in the first 40 words, 8 words are enough, solutions are shorter.
const policy = "Follow the user's instructions exactly.";
const TOPICS = (
  'otters,owls,lighthouses,windmills,kites,coffee,bread,pumpkins,trains,ferries,tunnels,puppets,violins,clocks,candles,' +
  'umbrellas,blankets,pottery,mushrooms,strawberries,horses,squirrels,turtles,whales,snow,thunder,autumn,rivers,islands,' +
  'the lake,the library,the kitchen,the circus,the forest,a campfire,a picnic,a snowman,painting,dancing,fishing,hiking,' +
  'camels,museums,teachers,postcards,carpets,noodles,chocolate,lanterns,tea'
).split(',');
/* Words that a text can begin with, whatever it is about. */
const OPENERS = (
  'One day,Today,Years ago,Last summer,In the morning,At night,Sometimes,Once upon a time,As a child,Yesterday,' +
  'After school,At home,Last night,In spring,Once again,Tonight,One morning,One evening,Many years ago,For centuries,' +
  'In many countries,All over the world,In the past,This morning,Last week,On Sunday,In summer,Nowadays,Often'
).split(',');
const LEADS = [
  (topic) => `Write a short text about ${topic}.`,
  (topic) => `Tell me about ${topic}.`,
  (topic) => `Write about ${topic}.`,
  (topic) => `Please write about ${topic}.`,
  (topic) => `I would like to read something about ${topic}.`,
];
const OPENING = [(mark) => `Begin with "${mark}".`, (mark) => `It must begin with "${mark}".`];
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
  const [topic, special] = [one(TOPICS), one(OPENERS)];
  const [lead, opening] = [one(LEADS), one(OPENING)];
  const [again, later, turns] = [one(AGAIN), one(LATER), below(16)];
  const [limited, number, limit, limitFirst] = [below(6) === 0, 8 + below(8), one(LEAST), below(2) === 0];
  const pick = below(5);
  const twin = one(OPENERS.filter((each) => each !== special)); // drawn last: the special instances stay as they were
  const kind = seed % 2 === 0 ? 'opening' : 'other_opening';
  const [mark, other] = kind === 'opening' ? [special, twin] : [twin, special];
  const mode = fewer || turns > 1 ? 'single' : turns === 1 ? 'later' : 'again';
  const least = limited && !fewer ? number : 0;
  const clause = opening(mark);
  const clauses = mode === 'later' ? [] : [clause];
  if (least > 0) clauses.splice(limitFirst ? 0 : clauses.length, 0, limit(least));
  return {
    ...{ kind, mode, topic, mark, other, least, pick }, // other: what the other one of the pair asks for
    stem: topic.split(' ').pop().replace(/(ies|ing|s|y)$/, '').slice(0, 5),
    first: [(fewer ? LEADS[0] : lead)(topic), ...clauses].join(' '),
    second: mode === 'single' ? '' : mode === 'again' ? again : later(clause),
    ranks: [], // how good each text was, from 0 to 5
    ...{ said: '', idle: 0, done: false },
  };
}
export const make = (seed) => instance(seed, false);
/* One short text, no minimum of words, and no second message. */
export const easier = (seed) => instance(seed, true);

export const start = ({ first }) => [{ role: 'system', content: policy }, { role: 'user', content: first }];

const needed = ({ mode }) => (mode === 'single' ? 1 : 2);
const demanded = ({ mode }, turn) => mode !== 'later' || turn > 0;
const wordsOf = (text) => text.toLowerCase().match(/[a-z0-9]+(?:['’][a-z]+)*/g) ?? [];

/* Is it a text on the topic: with words of its own, no refusal, no copy of the request, not one thing over and over? */
function isAnswer({ stem, first, second }, turn, text) {
  const words = wordsOf(text);
  const early = words.slice(0, 40); // a longer text has no better chance
  const asked = wordsOf(turn > 0 ? `${first} ${second}` : first);
  const joined = ` ${words.join(' ')} `;
  const copied = asked.some((_, n) => n + 6 <= asked.length && joined.includes(` ${asked.slice(n, n + 6).join(' ')} `));
  const own = new Set(early.filter((word) => !asked.includes(word))).size;
  const varied = new Set(words).size * 2 >= Math.min(words.length, 80); // long texts repeat small words
  const refuses = /^ (i am |i'm |i’m )?(very )?(sorry|i cannot|i can't|i can’t|i will not|i won't|unfortunately i) /.test(joined);
  const named = early.some((word) => word.startsWith(stem));
  return words.length >= 8 && own >= 4 && varied && !copied && !refuses && named;
}

/* The text from its first letter on, without quotation marks or bold type before it. */
function bare(text) {
  let from = 0;
  while (from < text.length && ' "\'“”‘’*_#(>'.includes(text[from])) from += 1;
  return text.slice(from);
}
const apart = (letter) => letter === undefined || !/[a-z0-9]/.test(letter);
const opens = (text, mark) => text.startsWith(mark) && apart(text[mark.length]);

/* Where the words are: 3 as prescribed, 2 nearly (in quotation marks, in a later sentence's place), 1 somewhere. */
function placeOf(state, text) {
  const [mark, other] = [state.mark.toLowerCase(), state.other.toLowerCase()];
  const lower = text.trim().toLowerCase().replace(/\s+/g, ' ');
  const sentences = lower.split(/[.!?:]\s/).map(bare);
  /* What the other one of the pair asks for was not asked for here. */
  const both = sentences.some((sentence) => opens(sentence, other));
  if (opens(lower, mark)) return both ? 2 : 3;
  if (sentences.some((sentence) => opens(sentence, mark))) return 2;
  return ` ${wordsOf(lower).join(' ')} `.includes(` ${wordsOf(mark).join(' ')} `) ? 1 : 0;
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

export const reference = ({ mark }) => ({ actions: [], tell: [mark] });

const BODY = [
  (topic) => `People can tell a good story about ${topic}.`,
  (topic) => `Our neighbor keeps an old book about ${topic} next to the window.`,
  (topic) => `Experts always find something new to learn about ${topic}, even after decades.`,
  (topic) => `Children ask good questions when they hear about ${topic}.`,
  (topic) => `Nobody in our family gets tired of talking about ${topic}.`,
];

/* Two short sentences; the first one opens with the words `opener` if there are any. `more`: a sentence after them. */
function compose({ topic, pick }, turn, opener, more) {
  const body = (n) => BODY[(pick + turn + n) % BODY.length](topic);
  const open = opener === '' ? body(2) : `${opener}, somebody sang a lovely song about ${topic}.`;
  return { role: 'assistant', content: [open, body(0), ...(more === '' ? [] : [more])].join(' ') };
}
const script = (state, opener, more = '') =>
  Array.from({ length: needed(state) }, (_, turn) =>
    demanded(state, turn) ? compose(state, turn, opener, more) : compose(state, turn, '', ''),
  );

export const solve = (seed, state = make(seed)) => script(state, state.mark);

export function shortcuts(seed, state = make(seed)) {
  const { kind, topic, mark, other } = state;
  const [special, twin] = kind === 'opening' ? [mark, other] : [other, mark];
  return {
    'always open with the words of the special one': script(state, special),
    'always open with the words of the twin': script(state, twin),
    'open with the words of both': script(state, special, `${twin}, somebody else read a poem about ${topic}.`),
    'close with the words': script(state, '', `So we sit together and chat about ${topic}, ${mark.toLowerCase()}.`),
    'open in a way of its own': script(state, ''),
  };
}

export function hint({ mode, mark }) {
  if (mode === 'later') return 'See whether a request says how the text starts, and keep to it from the first word on.';
  return `The request says how the text starts. Let "${mark}" be the very first of your answer, without quotation marks, before anything else, and let the first sentence go on from there about the topic.`;
}
