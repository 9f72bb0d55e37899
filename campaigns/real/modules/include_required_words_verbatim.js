// Rationale: In the failed attempts the agent wrote an ordinary text on the subject in which the demanded word was missing or stood only in a related form, and in the passed ones it worked the exact word into one of its first sentences; here, too, only the very word that this request quotes is right, as often as demanded, and the twin demands another word of the same subject. Since a text that says one thing over and over now earns nothing, what is learned is to put the word into an ordinary text, as in the passed attempts.
const targetTools = {};
/*
 * Trains `include_required_words_verbatim`: a quoted word that must appear is put into the text, in exactly that form
 * and as often as demanded.
 * Even seed (word_wanted): the quoted word must appear, or must appear at least twice.
 * Odd seed (other_word): the same subject, opening and demand, with another word of the same subject in it. What is
 * right for the one is wrong for the other, a text with both words is wrong for both, and so is a plain text.
 */
// History:
// Round 1: success 9%, wanted words 1%, single bans about 8% with mostly no credit. Words that fit the subject, no
//   pairs of words, fewer second turns and limits, a shorter ban, credit in more levels, a hint that says how to begin.
// Round 2: no finding is recorded here.
// Round 3: twins that forbid the word teach a plain text. Twins that demand another word of the subject, the other
//   one's word is wrong, only the first 40 words count, shorter solutions, second turns in one of ten.
// Round 4: no finding is recorded here.
// Round 5: the test of an answer took a line or phrase that comes again and again. A line or sentence that comes twice,
//   under four in five different runs of three words, or under 8 words beside the demanded one is no answer; a text
//   that repeats earns nothing, and line breaks are kept so that lines can be told apart.
const policy = "Follow the user's instructions exactly.";
/* subject : how its words begin : close words, for counting : words that fit but are rarely there by chance */
const TOPICS = [
  'lighthouses:lighthouse:sea light:harbor storm island', 'kites:kite:wind sky:string beach summer',
  'libraries:librar:books knowledge:silence letter teacher', 'trains:train:travel station:village ticket valley',
  'candles:candle:light flame:evening kitchen dinner', 'violins:violin:music sound:concert dance memory',
  'owls:owl:night forest:silence branch feather', 'deserts:desert:sand heat:camel river night',
  'pancakes:pancake:breakfast butter:morning kitchen friend', 'umbrellas:umbrella:weather storm:pocket street yellow',
  'horses:horse:strength farm:meadow saddle friend', 'islands:island:ocean beach:boat summer secret',
  'clocks:clock:time hour:tower school morning', 'pottery:pott:clay art:table flower village',
  'honey:honey:sweet nature:flower spoon breakfast', 'volcanoes:volcan:lava earth:ash village smoke',
  'dolphins:dolphin:ocean water:friend boat dance', 'glaciers:glacier:ice water:valley river blue',
  'snails:snail:shell slow:leaf morning kitchen', 'whales:whale:ocean song:boat giant journey',
  'carpets:carpet:floor color:home pattern dance', 'castles:castle:stone history:king tower secret',
  'spiders:spider:web silk:corner morning shadow', 'chocolate:chocolat:sweet cocoa:gift dinner memory',
  'tunnels:tunnel:dark light:valley city secret', 'lemons:lemon:yellow fruit:kitchen summer sugar',
  'tigers:tiger:forest power:river shadow silence', 'tractors:tractor:farm work:farmer mud morning',
  'waterfalls:waterfall:water nature:valley journey music',
].map((each) => each.split(':'));
const OPENERS = [
  (topic) => `Write a short text about ${topic}.`,
  (topic) => `Tell me about ${topic}.`,
  (topic) => `Write about ${topic}.`,
  (topic) => `Please write about ${topic}.`,
  (topic) => `I would like to read something about ${topic}.`,
];
const MUST = [(word) => `Include the word "${word}".`, (word) => `The word "${word}" must appear in it.`];
/* Wide limits, which an ordinary text keeps. */
const LIMITS = [
  (n) => ({ min: 8 + n, max: 9999, text: `Use at least ${8 + n} words.` }),
  (n) => ({ min: 8 + n, max: 9999, text: `Write ${8 + n} words or more.` }),
  (n) => ({ min: 0, max: 150 + 10 * n, text: `Use at most ${150 + 10 * n} words.` }),
  (n) => ({ min: 0, max: 150 + 10 * n, text: `It must not be longer than ${150 + 10 * n} words.` }),
];
const NO_LIMIT = { min: 0, max: 9999, text: '' };
const AGAIN = [
  'Now say it in other words. All that I asked before still holds.',
  'Thank you. Can you put it differently? Keep to everything that I asked.',
];
const ADD = [
  (rule) => `Good. Now write it again with one more thing: ${rule} Keep to what I asked before.`,
  (rule) => `Thank you. One thing more, beside what I asked at first: ${rule} Write all of it again.`,
  (rule) => `Please change it. ${rule} All that I asked before still holds.`,
];
/* One of ten has a second message. */
const KINDS = [...Array.from({ length: 9 }, () => ['single', 'count']).flat(), 'again', 'added'];
/* A wanted word stands in the first words of the text: a longer text has no better chance. */
const HEAD = 40;

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

/* A rule: `word` occurs at least `min` times; `other` is what the other one of the pair asks for, as often. */
const wants = ([word, other], form) => ({ word, other, min: 1, text: MUST[form](word) });
const wantsTwo = ([word, other]) => ({ word, other, min: 2, text: `Use the word "${word}" at least twice.` });

function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const [topic, stem, close, fitting] = pick(TOPICS);
  const [closeWord, fittingWord] = [pick(close.split(' ')), pick(fitting.split(' '))];
  const drawnKind = pick(KINDS);
  const form = below(3) === 2 ? 1 : 0;
  const opener = pick(OPENERS)(topic);
  const drawnLimit = pick(LIMITS)(below(6));
  const [limited, limitFirst] = [below(4) === 0, below(2) === 1];
  const [again, add, style] = [pick(AGAIN), pick(ADD), below(3)];
  const rest = (list, word) => pick(list.split(' ').filter((each) => each !== word));
  const [otherClose, otherFitting] = [rest(close, closeWord), rest(fitting, fittingWord)];

  const kind = fewer && drawnKind !== 'count' ? 'single' : drawnKind;
  const limit = limited && !fewer ? drawnLimit : NO_LIMIT;
  const ordered = (first, second) => (special ? [first, second] : [second, first]);
  const rule =
    kind === 'count' ? wantsTwo(ordered(closeWord, otherClose)) : wants(ordered(fittingWord, otherFitting), form);
  const rules = kind === 'added' ? [] : [rule]; // what is asked at first
  const asked = rules.map((each) => each.text);
  const parts = limitFirst ? [opener, limit.text, ...asked] : [opener, ...asked, limit.text];
  const turns = [{ say: parts.filter((part) => part !== '').join(' '), rules, reworded: false }];
  if (kind === 'again') turns.push({ say: again, rules, reworded: true });
  if (kind === 'added') turns.push({ say: add(rule.text), rules: [rule], reworded: false });
  return { special, kind, topic, stem, limit, turns, style, texts: [], idle: 0, done: false };
}
export const make = (seed) => instance(seed, false);
/* One turn, no limit. */
export const easier = (seed) => instance(seed, true);

export const start = ({ turns }) => [{ role: 'system', content: policy }, { role: 'user', content: turns[0].say }];

/* Whatever text comes is the text that was asked for; then the user asks once more, or says thanks. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message?.toolCalls) ? message.toolCalls : [];
  const content = typeof message?.content === 'string' ? message.content : '';
  const lines = content.split(/[\r\n\u2028\u2029]+/).map((line) => line.replace(/[\s\u0000-\u001f\u007f]+/g, ' ').trim());
  const text = lines.filter((line) => line !== '').join('\n').slice(0, 8000);
  if (calls.length > 0) {
    state.idle += 1;
    state.done = state.done || state.idle >= 3;
    const messages = calls.map((call) => ({ role: 'tool', toolCallId: call?.id ?? '', content: 'error: no such tool' }));
    return { state, done: state.done, messages };
  }
  const answer = (said) => ({ state, done: state.done, messages: [{ role: 'user', content: said }] });
  if (state.done) return answer('Goodbye.');
  if (text === '') {
    state.idle += 1;
    state.done = state.idle >= 3;
    return answer(state.done ? 'Goodbye.' : 'You have not written anything.');
  }
  state.texts.push(text);
  state.done = state.texts.length >= state.turns.length;
  return answer(state.done ? 'Thank you.' : state.turns[state.texts.length].say);
}

/* Words that only comment on the request: a text has others beside them. */
const COMMENT = (
  'here is are a an the this that it i you your of for in on and with without to not does do can will short text texts ' +
  'sentence word words use used using include includes included including contain contains containing sure about'
).split(' ');
const tokensOf = (text) => text.toLowerCase().replace(/’/g, "'").match(/[a-z0-9]+(?:'[a-z]+)*/g) ?? [];
const countOf = (tokens, word) => tokens.filter((each) => each === word || each.startsWith(`${word}'`)).length;
const runsOf = (tokens, n) => tokens.slice(n - 1).map((_, at) => tokens.slice(at, at + n).join(' '));

/* Does a line or sentence come twice, or are fewer than four in five runs of three words different? */
const ABBREVIATION = /\b(mr|mrs|ms|dr|st|mt|prof|vs|[a-z])\./gi;
const plainOf = (part) => part.replace(/^\s*\d+\s*[):-]/, '').toLowerCase().replace(/[^\p{L}\p{N}]+/gu, ' ').trim();
function repeats(text) {
  const whole = text.replace(ABBREVIATION, '$1 ');
  const twice = [/[\n.!?…]+/, /[.!?…]+/].some((end) => { // a sentence may go on in the next line
    const parts = whole.split(end).map(plainOf).filter((part) => /\p{L}/u.test(part));
    return new Set(parts).size < parts.length;
  });
  const runs = runsOf(tokensOf(text), 3);
  return twice || new Set(runs).size * 5 < runs.length * 4;
}

/* Is it a text on the subject in words of its own (essay), long enough and no copy (answer)? Never one that repeats. */
function formOf({ stem, turns, texts }, turn) {
  const tokens = tokensOf(texts[turn]);
  const distinct = new Set(tokens);
  const requests = turns.slice(0, turn + 1).map(({ say }) => tokensOf(say));
  const known = new Set([...requests.flat(), ...COMMENT]);
  const copied = new Set(requests.flatMap((each) => runsOf(each, 6)));
  const touches = (list) => list.some((each) => each.startsWith(stem));
  const former = turn > 0 ? tokensOf(texts[turn - 1]) : [];
  const goesOn = touches(former) && tokens.some((each) => each.length > 5 && former.includes(each));
  const holdsWanted = turns[turn].rules.some((rule) => countOf(tokens, rule.word) > 0);
  const own = [...distinct].filter((each) => !known.has(each)).length;
  const varied = distinct.size * 2 >= tokens.length || distinct.size >= 40;
  const beside = turns[turn].rules.reduce((left, { word }) => left - countOf(tokens, word), tokens.length);
  const onSubject = touches(tokens) || goesOn || holdsWanted;
  const essay = tokens.length >= 8 && own >= 4 && onSubject && !repeats(texts[turn]);
  return { essay, answer: essay && beside >= 8 && varied && !runsOf(tokens, 6).some((run) => copied.has(run)) };
}

/* How far a rule is kept, from 0 to 1; a related form of a wanted word is a beginning. */
function shareOf({ word, min }, head, stem) {
  const count = countOf(head, word);
  const root = word.length > 4 ? word.slice(0, -1) : word;
  const related = head.some((each) => each.startsWith(root) && !each.startsWith(stem));
  return count > 0 ? Math.min(count, min) / min : related ? 0.3 : 0;
}

function judge(state, turn) {
  const text = state.texts[turn];
  const { essay, answer } = text === undefined ? { essay: false, answer: false } : formOf(state, turn);
  if (!answer) return { essay: Number(essay), answer: 0, share: 0, unasked: 0, right: 0 };
  const tokens = tokensOf(text);
  const head = tokens.slice(0, HEAD);
  const { rules, reworded } = state.turns[turn];
  const length = text.split(/\s+/).length;
  const fits = length >= state.limit.min && length <= state.limit.max;
  const fresh = !reworded || tokens.join(' ') !== tokensOf(state.texts[turn - 1]).join(' ');
  const share = Math.min(1, ...rules.map((rule) => shareOf(rule, head, state.stem)));
  const unasked = rules.some(({ other, min }) => countOf(head, other) >= min); // what the other one of the pair asks for
  const right = share === 1 && !unasked && fits && fresh;
  return { essay: 1, answer: 1, share, unasked: Number(unasked), right: Number(right) };
}

export function reward(state) {
  const judged = state.turns.map((_, turn) => judge(state, turn));
  const mean = (field) => judged.reduce((sum, each) => sum + each[field], 0) / judged.length;
  const right = state.done && judged.every((each) => each.right === 1);
  return {
    reward: right ? 1 : 0.04 * mean('essay') + 0.1 * mean('answer') + 0.15 * mean('share'),
    branch: state.special ? 'word_wanted' : 'other_word',
    breakdown: {
      essays: mean('essay'), answers: mean('answer'), words: mean('share'),
      unasked: mean('unasked'), right_texts: mean('right'),
    },
  };
}

const wordsIn = ({ rules }) => rules.map((rule) => rule.word);
export const reference = ({ turns }) => ({ actions: [], tell: wordsIn(turns[turns.length - 1]) });

const BASES = [
  (topic) => `Whoever knows ${topic} well has a story or two worth hearing and gladly shares it.`,
  (topic) => `There is much to learn from ${topic}, even on an ordinary afternoon with nothing else planned.`,
  (topic) => `My grandmother used to talk about ${topic} whenever guests came over for tea and cake.`,
];
const EXTRAS = [(words) => `One thought stays with me here: ${words}.`, (words) => `So I keep saying ${words} out loud.`];

/* A text for each turn, in which wordsOf(rule) stands as often as the rule says; not at all where it is ''. */
const script = ({ topic, turns, style }, wordsOf) =>
  turns.map(({ rules }, turn) => {
    const words = rules.flatMap((rule) => Array.from({ length: rule.min }, () => wordsOf(rule)));
    const extras = words.filter((each) => each !== '').map((each, n) => EXTRAS[n % EXTRAS.length](each));
    return { role: 'assistant', content: [BASES[(style + turn) % BASES.length](topic), ...extras].join(' ') };
  });
export const solve = (seed, state = make(seed)) => script(state, ({ word }) => word);
export const shortcuts = (seed, state = make(seed)) => ({
  'the word of the even seed, always': script(state, ({ word, other }) => (state.special ? word : other)),
  'the word of the odd seed, always': script(state, ({ word, other }) => (state.special ? other : word)),
  'both words, always': script(state, ({ word, other }) => `${word} and ${other}`),
  'no quoted word ever': script(state, () => ''),
});
export const hint = () =>
  'Write two short, plain sentences about the subject itself, and say nothing about the request. Look for the word in ' +
  'quotation marks and use that very word, spelled the same, in the first of your sentences. If it is wanted twice, ' +
  'use it in the second sentence as well.';
