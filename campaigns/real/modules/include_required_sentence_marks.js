const targetTools = {};
// History:
// Round 1: special instances solved 7%, twins 39%. Second messages and word limits made rarer, roundabout wordings replaced
//   by ones with an example, subjects that suit the sign, a hint about the instance's own demand, an easier `easier`.
/*
 * Trains `include_required_sentence_marks`: the text holds (or ends with) the question, exclamation or digits asked for.
 * Even seed: the request demands such a sentence or sign. Odd seed (twin): the same request in the same words, but it
 * demands the ordinary kind there (statements, periods, numbers in words), so that the special sign would break it.
 */
const policy = "Follow the user's instructions exactly.";
/* Subjects by the family of the sign: the sign comes up there easily, and in the twin it is the lure. */
const TOPICS_OF = {
  question: [
    'dreams', 'ghosts', 'happiness', 'luck', 'courage', 'patience', 'kindness', 'dinosaurs', 'the ocean', 'owls',
    'whales', 'dolphins', 'elephants', 'spiders', 'turtles', 'clouds', 'snow', 'homework', 'secrets', 'memories',
    'shadows', 'pyramids', 'mirrors', 'libraries', 'breakfast', 'islands', 'coffee', 'forests',
  ],
  exclamation: [
    'fireworks', 'a carnival', 'the circus', 'a festival', 'a parade', 'a picnic', 'a birthday', 'a wedding', 'pizza',
    'pancakes', 'chocolate', 'puppies', 'kittens', 'balloons', 'presents', 'holidays', 'a playground', 'a campfire',
    'football', 'adventures', 'sunshine', 'surfing', 'a treasure', 'butterflies', 'lemonade', 'a concert', 'cookies',
  ],
  number: [
    'trains', 'castles', 'museums', 'towers', 'rivers', 'planets', 'marathons', 'skyscrapers', 'railways', 'ships',
    'submarines', 'rockets', 'telescopes', 'calendars', 'tigers', 'whales', 'turtles', 'tunnels', 'lighthouses',
    'pyramids', 'elephants', 'horses', 'trucks', 'dinosaurs', 'elevators', 'stadiums', 'basketball', 'villages',
  ],
};
const TOPICS = [...new Set(Object.values(TOPICS_OF).flat())];
const DIRECT = (topic) => `Write a short text about ${topic}.`;
const OPENINGS = [
  ...[DIRECT, DIRECT],
  (topic) => `Write about ${topic}.`,
  (topic) => `Please write about ${topic}.`,
  (topic) => `Tell me about ${topic}.`,
  (topic) => `I would like to read something about ${topic}.`,
];
/* For each kind of demand: the wordings of the special instance, and those of the twin in the same order. */
const DEMANDS = {
  question: [['Ask at least one question in it.', 'There must be a question in it.'],
    ['Use only statements in it.', 'There must be only statements in it.']],
  exclamation: [['Use at least one exclamation mark.', 'There must be an exclamation mark in it.'],
    ['Use a period after every sentence.', 'There must be a period after every sentence in it.']],
  number: [['Include at least one number, written in digits.', 'There must be a number in it, written in digits.'],
    ['Include only numbers that are written in words.', 'If there is a number in it, it must be written in words.']],
  last_question: [['The last sentence must be a question.', 'End with a question.'],
    ['The last sentence must be a statement.', 'End with a statement.']],
  last_exclamation: [['The last sentence must end with an exclamation mark.', 'End with an exclamation mark.'],
    ['The last sentence must end with a period.', 'End with a period.']],
};
/* The third wording is the first with an example: those of the special instance, and those of the twin. */
const EXAMPLES = {
  question: [['"Why is that?"', '"Do you agree?"', '"Who knows?"', '"Is it true?"'],
    ['"That is why."', '"I agree."', '"Nobody knows."', '"It is true."']],
  exclamation: [['in "What fun!"', 'in "How nice!"', 'in "I love it!"', 'in "What a day!"'],
    ['in "That is fun."', 'in "That is nice."', 'in "I like it."', 'in "It was a day."']],
  number: [['12.', '3.', '40.', '100.'], ['twelve.', 'three.', 'forty.', 'one hundred.']],
};
const KINDS = Object.keys(DEMANDS);
/* A sign anywhere is asked for more often than one at the end. */
const DRAWN = [...KINDS, 'question', 'question', 'exclamation', 'exclamation', 'number', 'last_question'];
const isLast = (kind) => kind.startsWith('last_');
const familyOf = (kind) => kind.replace('last_', '');
const LIMITS = [(n) => `Use at most ${n} words.`, (n) => `It must not be longer than ${n} words.`];
const AGAIN = [
  'Now put it differently. All that I asked before still holds.',
  'Thank you. Now say it in other words. Keep to everything that I asked.',
  'Good. Can you say it in other words? Keep to what I asked before.',
];
const MORE = [
  (demand) => `Good. Now write it again with one more thing: ${demand} Keep to what I asked before.`,
  (demand) => `Thank you. One thing more, beside what I asked at first: ${demand} Write all of it again.`,
  (demand) => `Please change it. ${demand} All that I asked before still holds.`,
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
  const pick = (from) => from[below(from.length)];
  const drawn = pick(DRAWN);
  const kind = fewer ? familyOf(drawn) : drawn;
  const [topic, opening] = [pick(TOPICS_OF[familyOf(drawn)]), pick(OPENINGS)];
  const [wording, wording2, example, plan] = [below(3), below(3), below(4), below(16)];
  const [limited, limitText, number, limitFirst] = [below(5) === 0, pick(LIMITS), 80 + 5 * below(9), below(2) === 0];
  const [again, more, style, count] = [pick(AGAIN), pick(MORE), below(1000), 11 + below(80)];
  /* What a second message may add: another family, and not two demands on the last sentence. */
  const second = pick(KINDS.filter((each) => familyOf(each) !== familyOf(drawn) && !(isLast(each) && isLast(drawn))));
  const side = special ? 0 : 1;
  const demandOf = (each, n) => {
    const demands = DEMANDS[each][side];
    return n < 2 ? demands[n] : `${demands[0].slice(0, -1)}, such as ${EXAMPLES[familyOf(each)][side][example]}`;
  };
  const turnsTwice = !fewer && plan >= 14;
  const limit = !fewer && !turnsTwice && limited ? number : 0;
  const demands = [demandOf(kind, fewer ? 2 : wording)];
  if (limit > 0) demands.splice(limitFirst ? 0 : 1, 0, limitText(limit));
  const turns = [[(fewer ? DIRECT : opening)(topic), ...demands].join(' ')];
  const wanted = [[kind]]; // the kinds that hold for each text
  const rephrase = turnsTwice && plan === 14;
  if (turnsTwice) {
    turns.push(rephrase ? again : more(demandOf(second, wording2)));
    wanted.push(rephrase ? [kind] : [kind, second]);
  }
  return { special, topic, limit, turns, wanted, rephrase, style, count, texts: [], calls: 0, done: false };
}
export const make = (seed) => instance(seed, false);
/* One text, no word limit, no place in the text, and an example in the request. */
export const easier = (seed) => instance(seed, true);

export const start = ({ turns }) => [{ role: 'system', content: policy }, { role: 'user', content: turns[0] }];

export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  if (calls.length > 0) {
    state.calls += 1;
    state.done = state.calls >= 3;
    const messages = calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: 'Error: there is no such tool.' }));
    return { state, messages, done: state.done };
  }
  const text = typeof message.content === 'string' ? message.content : '';
  state.texts.push(text.length > 8000 ? `${text.slice(0, 4000)} ${text.slice(-4000)}` : text);
  const next = state.turns[state.texts.length];
  state.done = next === undefined;
  return { state, messages: [{ role: 'user', content: next ?? 'Thank you.' }], done: state.done };
}

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}'’]+/gu) ?? [];
const stemOf = (topic) => topic.replace(/^(the|a) /, '').replace(/(ies|y|s)$/, '');

/* The end marks of the sentences in order; '' where a text breaks off. What has no letter or digit is no sentence. */
const marksOf = (text) =>
  (text.match(/[^.?!…]+[.?!…]*/g) ?? [])
    .filter((piece) => /[\p{L}\p{N}]/u.test(piece))
    .map((piece) => piece.match(/[.?!…]+$/)?.[0] ?? '');
const hasDigits = (text) => /\d/.test(text.replace(/^\s*\d+[.)]\s+/gm, '')); // the numbers of a list do not count
const isPeriod = (mark) => /^[.…]+$/.test(mark);

function holds(kind, special, text) {
  const marks = marksOf(text);
  const last = marks.at(-1) ?? '';
  if (kind === 'number') return hasDigits(text) === special;
  if (kind === 'question') return marks.some((mark) => mark.includes('?')) === special;
  if (kind === 'last_question') return last.includes('?') === special;
  if (kind === 'exclamation') return special ? marks.some((mark) => mark.includes('!')) : marks.every(isPeriod);
  return special ? last.includes('!') : isPeriod(last);
}

/* A text of its own about the topic: no echo, no refusal, no list of everything, nothing said over and over. */
function isAnswer({ topic, turns }, text, turn) {
  const said = wordsOf(text);
  const asked = wordsOf(turns.slice(0, turn + 1).join(' '));
  const own = new Set(said.filter((word) => !asked.includes(word)));
  const varied = (part) => new Set(part).size * 2 >= part.length;
  const names = (each) => said.some((word) => word.startsWith(stemOf(each)));
  const request = ` ${asked.join(' ')} `;
  const copied = said.some((_, n) => n + 6 <= said.length && request.includes(` ${said.slice(n, n + 6).join(' ')} `));
  const refused = /^\W*(i'?m sorry|i am sorry|sorry|i (cannot|can't|can’t|am unable to) (help|write|do|assist))/i.test(text);
  const others = TOPICS.filter((each) => each !== topic && names(each)).length;
  const ended = marksOf(text).some((mark) => mark !== '');
  const long = said.length >= 8 && own.size >= 6 && varied(said.slice(0, 80)) && varied(said.slice(-80));
  return long && names(topic) && !copied && !refused && others <= 5 && ended;
}

function judge(state, turn) {
  const text = state.texts[turn] ?? '';
  const answer = isAnswer(state, text, turn);
  const held = state.wanted[turn].every((kind) => holds(kind, state.special, text));
  const near = state.special && state.wanted[turn].some((kind) => holds(familyOf(kind), true, text));
  const short = state.limit === 0 || text.trim().split(/\s+/).length <= state.limit;
  const plain = (each) => wordsOf(each ?? '').join(' ');
  const changed = turn === 0 || !state.rephrase || plain(text) !== plain(state.texts[0]);
  const right = answer && held && short && changed;
  const points = right ? 0.3 : answer ? (near ? 0.2 : 0.1) : 0;
  return { answer, held: answer && held, right, points };
}

export function reward(state) {
  const judged = state.wanted.map((_, turn) => judge(state, turn));
  const share = (field) => judged.reduce((sum, each) => sum + Number(each[field]), 0) / judged.length;
  const right = state.done && state.calls === 0 && judged.every((each) => each.right);
  return {
    reward: right ? 1 : share('points'),
    branch: state.special ? 'special_mark' : 'ordinary_marks',
    breakdown: { answers: share('answer'), held: share('held'), right: share('right'), done: Number(state.done) },
  };
}

const OPEN = [
  (topic) => `Many people are fond of ${topic}.`,
  (topic) => `My grandmother often talked of ${topic} after dinner.`,
  (topic) => `Some of our best stories have to do with ${topic}.`,
  (topic) => `Few things please me more than ${topic}.`,
];
const MIDDLE = [
  'A calm hour is enough to notice small details.',
  'Children love to hear such tales at bedtime.',
  'Poets have found plenty of ideas there.',
  'Each season brings another surprise.',
  'Old photographs show how much has changed.',
];
const CLOSE = ['That makes an ordinary week brighter.', 'We still talk of it now and then.', 'It stays with us for years.'];
const SPECIAL = {
  question: () => 'Who would not enjoy that with a good friend?',
  exclamation: () => 'How wonderful this can be!',
  number: (count) => `Our neighbour once counted ${count} different kinds.`,
};
function compose({ topic, style, count }, kinds, turn) {
  const at = style + turn;
  const made = (kind) => SPECIAL[familyOf(kind)](count);
  const inside = kinds.filter((kind) => !isLast(kind)).map(made);
  const ends = kinds.some(isLast) ? kinds.filter(isLast).map(made) : [CLOSE[at % CLOSE.length]];
  return [OPEN[at % OPEN.length](topic), ...inside, MIDDLE[at % MIDDLE.length], ...ends].join(' ');
}
const script = (state, kindsOf) =>
  state.wanted.map((kinds, turn) => ({ role: 'assistant', content: compose(state, kindsOf(kinds), turn) }));

export const reference = ({ topic }) => ({ actions: [], tell: [topic] });
export const solve = (seed, state = make(seed)) => script(state, (kinds) => (state.special ? kinds : []));
export const shortcuts = (seed, state = make(seed)) => ({
  'always the special sign': script(state, (kinds) => kinds),
  'plain statements always': script(state, () => []),
  'every sign in the middle': script(state, () => ['question', 'exclamation', 'number']),
  'a question at the end': script(state, () => ['last_question']),
  'an exclamation at the end': script(state, () => ['exclamation', 'number', 'last_exclamation']),
});
/* What to watch for with each kind: in the special instance, in the twin. */
const HINTS = {
  question: ['Ask the reader something in one of them, with a question mark.', 'None of them may be a question.'],
  exclamation: ['Sound excited in one of them, with an exclamation mark.', 'Each of them has to end with a period.'],
  number: ['Say how many, how old or how long something is, in digits.', 'Spell numbers out, or do without them.'],
  last_question: ['The last one has to ask the reader something.', 'The last one may not be a question.'],
  last_exclamation: ['The last one has to end with an exclamation mark.', 'The last one has to end with a period.'],
};
export const hint = ({ topic, wanted, special }) =>
  `Write a few sentences about ${topic}. ${HINTS[wanted[0][0]][special ? 0 : 1]}`;
// Rationale: In the failed attempts the agent wrote only declarative sentences ending in full stops, once where the last sentence had to be a question and once where an exclamation mark was demanded, while the passed attempt simply asked the reader something at the end; the special instances here put the same demands in the same kind of request, and only a text with that sign at its place pays. The twins ask for ordinary sentences in nearly the same words, so the agent learns to read which sign is demanded rather than to sprinkle signs everywhere.
