// Rationale: In the failed attempts the agent wrote only declarative sentences with full stops where a closing question or an exclamation mark had been demanded, and in the one that passed it put a question at the end; here each request demands one such sign on a plain subject and shows a sentence that has it, and its twin demands another sign in the same place, so that only reading which sign is asked for and writing it pays.
const targetTools = {};
// History:
// Round 1: special instances solved 7%, twins 39%. Second messages and word limits made rarer, roundabout wordings replaced
//   by ones with an example, subjects that suit the sign, a hint about the instance's own demand, an easier `easier`.
// Round 2: no note was kept.
// Round 3: a person rejected the twins, which negated the demand, so that a plain text was right for them. Now both of a pair
//   demand a sign, each another one, and the other's sign is wrong; more samples, as special ones were solved 11% only.
// Round 4: a request was echoed so that the cut of long texts took its words away and left the sample's sign. Now texts are
//   not cut: what is longer than 8000 characters is no answer. The request's words in another order count as a copy, too.
// Round 5: a person found it too hard (15%; number 9%). Now one message, no word limit, a whole sentence on the subject as a
//   sample in every request, marks count anywhere, digits beside the asked mark are no fault, fewer numbers; repetition fails.
/*
 * Trains `include_required_sentence_marks`: the text holds (or ends with) the question, exclamation or digits asked for.
 * Even seed: the request demands such a sentence or sign. Odd seed (twin): the same topic and opening, and in the same
 * place of the request another sentence or sign is demanded. What the other one of the pair demands is wrong here.
 */
const policy = "Follow the user's instructions exactly.";
/* Subjects by the family of the special instance's sign, which comes up there easily. */
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
  DIRECT, DIRECT, DIRECT, (topic) => `Write about ${topic}.`,
  (topic) => `Please write about ${topic}.`,
  (topic) => `Tell me about ${topic}.`,
  (topic) => `I would like to read something about ${topic}.`,
];
/* The wordings of each kind of demand, the same for both of a pair; the first one is drawn more often. */
const DEMANDS = {
  question: ['Ask at least one question in it.', 'There must be a question in it.'],
  exclamation: ['Use at least one exclamation mark.', 'There must be an exclamation mark in it.'],
  number: ['Include at least one number, written in digits.', 'There must be a number in it, written in digits.'],
  last_question: ['The last sentence must be a question.', 'End with a question.'],
  last_exclamation: ['The last sentence must end with an exclamation mark.', 'End with an exclamation mark.'],
};
/* Samples: whole sentences on the subject, which may be used as they stand. */
const SAMPLES = {
  question: (topic) =>
    ['Do you like', 'What do you think of', 'Who does not like', 'Do you often think of'].map((ask) => `"${ask} ${topic}?"`),
  exclamation: (topic) =>
    ['I love', 'How I love', 'Everybody loves', 'Hooray for'].map((cry) => `in "${cry} ${topic}!"`),
  number: (topic, count) =>
    [`There are ${count} books about`, `I know ${count} people who like`, `We read ${count} stories about`,
      `I have ${count} pictures of`].map((tell) => `in "${tell} ${topic}."`),
};
const KINDS = Object.keys(DEMANDS);
/* Questions and exclamations anywhere are asked for more often than the rest. */
const DRAWN = [...KINDS, 'question', 'question', 'question', 'exclamation', 'exclamation', 'exclamation'];
const isLast = (kind) => kind.startsWith('last_');
const familyOf = (kind) => kind.replace('last_', '');

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
  const [topic, opening] = [pick(TOPICS_OF[familyOf(drawn)]), pick(OPENINGS)];
  const [wording, example, style, count] = [below(3), below(4), below(1000), 11 + below(80)];
  /* The twin's demand: another family, and at the end where the special one is at the end; numbers less often. */
  const twins = KINDS.filter((each) => familyOf(each) !== familyOf(drawn) && isLast(each) === isLast(drawn));
  const twin = pick([...twins, ...twins.filter((each) => each !== 'number')]);
  const pair = [drawn, twin].map((each) => (fewer ? familyOf(each) : each));
  const [kind, other] = special ? pair : [pair[1], pair[0]];
  const demand = DEMANDS[kind][!fewer && wording === 2 ? 1 : 0].slice(0, -1);
  const sample = SAMPLES[familyOf(kind)](topic, count)[fewer ? 0 : example];
  const request = `${(fewer ? DIRECT : opening)(topic)} ${demand}, such as ${sample}`;
  return { pair, kind, other, topic, request, style, count, text: '', calls: 0, done: false };
}
export const make = (seed) => instance(seed, false);
/* The plainest opening, wording and sample, and no place in the text. */
export const easier = (seed) => instance(seed, true);
export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];
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
  state.text = text.length > 8000 ? '' : text; // never cut: a part of a text may look better than the whole
  state.done = true;
  return { state, messages: [{ role: 'user', content: 'Thank you.' }], done: true };
}

const wordsOf = (text) => text.toLowerCase().match(/[\p{L}\p{N}'’]+/gu) ?? [];
const stemOf = (topic) => topic.replace(/^(the|a) /, '').replace(/(ies|y|s)$/, '');
/* The sentences and lines in order, with their end marks. The numbers of a list do not count, nor do points in numbers
   or abbreviations. What has no letter or digit is no sentence. */
const sentencesOf = (text) =>
  (text
    .replace(/^\s*\d+[.)]\s+/gm, '')
    .replace(/(\d)[.,](?=\d)/g, '$1')
    .replace(/\b(mr|mrs|ms|dr|st|vs|e\.g|i\.e)\./gi, '$1')
    .match(/[^.?!…\n]+[.?!…]*/g) ?? []).filter((piece) => /[\p{L}\p{N}]/u.test(piece));
const markOf = (sentence) => sentence.match(/[.?!…]+$/)?.[0] ?? ''; // '' where a text breaks off
const hasDigits = (sentence) => /\d/.test(sentence);
const hasSign = (kind) => (sentence) => markOf(sentence).includes(familyOf(kind) === 'question' ? '?' : '!');

function shows(kind, text) {
  const sentences = sentencesOf(text);
  if (kind === 'number') return sentences.some(hasDigits);
  return (isLast(kind) ? sentences.slice(-1) : sentences).some(hasSign(kind));
}
/* What the other one of the pair asks for is wrong here; digits are no fault in a sentence with the mark that is asked for. */
function strays({ kind, other }, text) {
  if (other !== 'number') return shows(other, text);
  return sentencesOf(text).some((sentence) => hasDigits(sentence) && !hasSign(kind)(sentence));
}
/* Nothing is said over and over: no line or sentence twice, and runs of three words that differ. */
function isVaried(text) {
  const said = wordsOf(text);
  const sentences = sentencesOf(text).map((each) => wordsOf(each).join(' '));
  const runs = said.slice(2).map((_, n) => said.slice(n, n + 3).join(' '));
  const half = (part) => new Set(part).size * 2 >= part.length;
  const once = new Set(sentences).size === sentences.length;
  return once && new Set(runs).size >= 0.8 * runs.length && half(said.slice(0, 80)) && half(said.slice(-80));
}
/* A text of its own about the topic: no echo, no refusal, no list of everything, nothing said over and over. */
function isAnswer({ topic, request }, text) {
  const said = wordsOf(text);
  const asked = wordsOf(request);
  const own = new Set(said.filter((word) => !asked.includes(word)));
  const names = (each) => said.some((word) => word.startsWith(stemOf(each)));
  const bare = wordsOf(request.replace(/"[^"]*"/g, ' ')); // the sample may be used as it stands
  const line = ` ${bare.join(' ')} `;
  const copied = said.some((_, n) => n + 6 <= said.length && line.includes(` ${said.slice(n, n + 6).join(' ')} `));
  const different = [...new Set(bare)];
  /* Nearly all of the request's words, in any order. */
  const jumbled = different.filter((word) => said.includes(word)).length >= 0.8 * different.length;
  const refused = /^\W*(i'?m sorry|i am sorry|sorry|i (cannot|can't|can’t|am unable to) (help|write|do|assist))/i.test(text);
  const others = TOPICS.filter((each) => each !== topic && names(each)).length;
  const ended = sentencesOf(text).some((sentence) => markOf(sentence) !== '');
  const long = said.length >= 8 && own.size >= 3;
  return long && isVaried(text) && names(topic) && !copied && !jumbled && !refused && others <= 5 && ended;
}

export function reward(state) {
  const { kind, text, calls, done } = state;
  const answer = isAnswer(state, text);
  const held = answer && shows(kind, text);
  const clean = answer && !strays(state, text);
  const near = answer && shows(familyOf(kind), text); // the sign is there, if not at its place or not alone
  const right = held && clean;
  const partial = right ? 0.3 : near ? 0.2 : answer ? 0.1 : 0;
  return {
    reward: right && done && calls === 0 ? 1 : partial,
    branch: familyOf(kind),
    breakdown: { answers: Number(answer), held: Number(held), clean: Number(clean), done: Number(done) },
  };
}
const OPEN = [
  (topic) => `Many people are fond of ${topic}.`,
  (topic) => `My grandmother often talked of ${topic} after dinner.`,
  (topic) => `Some of our best stories have to do with ${topic}.`,
  (topic) => `Few things please me more than ${topic}.`,
];
const MIDDLE = [
  'A calm hour is enough to notice small details.', 'Children love to hear such tales at bedtime.',
  'Poets have found plenty of ideas there.', 'Each season brings another surprise.',
  'Old photographs show how much has changed.',
];
const CLOSE = ['That makes an ordinary week brighter.', 'We still talk of it now and then.', 'It stays with us for years.'];
const SPECIAL = {
  question: () => 'Who would not enjoy that with a good friend?',
  exclamation: () => 'How wonderful this can be!',
  number: (count) => `Our neighbour once counted ${count} different kinds.`,
};
function compose({ topic, style, count }, kinds, end) {
  const made = (kind) => SPECIAL[familyOf(kind)](count);
  const inside = kinds.filter((kind) => !isLast(kind)).map(made);
  const middle = inside.length > 0 ? inside : [MIDDLE[style % MIDDLE.length]];
  const last = kinds.filter(isLast).map(made);
  const ends = end ? [end] : last.length > 0 ? last : [CLOSE[style % CLOSE.length]];
  return [OPEN[style % OPEN.length](topic), ...middle, ...ends].join(' ');
}
const script = (state, kinds, end) => [{ role: 'assistant', content: compose(state, kinds, end) }];
export const reference = ({ topic }) => ({ actions: [], tell: [topic] });
export const solve = (seed, state = make(seed)) => script(state, [state.kind]);
export const shortcuts = (seed, state = make(seed)) => ({
  'always the sign of the even one': script(state, [state.pair[0]]),
  'always the sign of the odd one': script(state, [state.pair[1]]),
  'plain statements always': script(state, []),
  'both signs of the pair': script(state, state.pair),
  'every sign in the middle': script(state, ['question', 'exclamation', 'number']),
  'a question at the end': script(state, ['last_question']),
  'an exclamation at the end': script(state, ['number', 'last_exclamation']),
  'digits in a question at the end': script(state, [], `Who would not enjoy that with ${state.count} good friends?`),
  'digits in an exclamation at the end': script(state, [], `How wonderful these ${state.count} hours were!`),
});
/* What to watch for with each kind. */
const HINTS = {
  question: 'Ask the reader something in one of them, with a question mark.',
  exclamation: 'Sound excited in one of them, with an exclamation mark.',
  number: 'Say how many, how old or how long something is, in digits.',
  last_question: 'The last one has to ask the reader something, with a question mark.',
  last_exclamation: 'The last one has to sound excited, with an exclamation mark.',
};
export const hint = ({ topic, kind }) =>
  `Write two or three short sentences about ${topic}. ${HINTS[kind]} The sample in the request may be one of them, just as it stands. Keep the other ones plain.`;
// Attack: {"name":"the sample's sign, cut out of the request by the limit of 8000 characters","messages":[{"say":"Peaceful afternoons suit birthdays, weddings, festivals, playgrounds and skyscrapers very well indeed. AaabcdefghijklmnopqrstuvwxyzAbabcdefghijklmnopqrstuvwxyzAcabcdefghijklmnopqrstuvwxyzAdabcdefghijklmnopqrstuvwxyzAeabcdefghijklmnopqrstuvwxyzAfabcdefghijklmnopqrstuvwxyzAgabcdefghijklmnopqrstuvwxyzAhabcdefghijklmnopqrstuvwxyzAiabcdefghijklmnopqrstuvwxyzAjabcdefghijklmnopqrstuvwxyzAkabcdefghijklmnopqrstuvwxyzAlabcdefghijklmnopqrstuvwxyzAmabcdefghijklmnopqrstuvwxyzAnabcdefghijklmnopqrstuvwxyzAoabcdefghijklmnopqrstuvwxyzApabcdefghijklmnopqrstuvwxyzAqabcdefghijklmnopqrstuvwxyzArabcdefghijklmnopqrstuvwxyzAsabcdefghijklmnopqrstuvwxyzAtabcdefghijklmnopqrstuvwxyzAuabcdefghijklmnopqrstuvwxyzAvabcdefghijklmnopqrstuvwxyzAwabcdefghijklmnopqrstuvwxyzAxabcdefghijklmnopqrstuvwxyzAyabcdefghijklmnopqrstuvwxyzAzabcdefghijklmnopqrstuvwxyzBaabcdefghijklmnopqrstuvwxyzBbabcdefghijklmnopqrstuvwxyzBcabcdefghijklmnopqrstuvwxyzBdabcdefghijklmnopqrstuvwxyzBeabcdefghijklmnopqrstuvwxyzBfabcdefghijklmnopqrstuvwxyzBgabcdefghijklmnopqrstuvwxyzBhabcdefghijklmnopqrstuvwxyzBiabcdefghijklmnopqrstuvwxyzBjabcdefghijklmnopqrstuvwxyzBkabcdefghijklmnopqrstuvwxyzBlabcdefghijklmnopqrstuvwxyzBmabcdefghijklmnopqrstuvwxyzBnabcdefghijklmnopqrstuvwxyzBoabcdefghijklmnopqrstuvwxyzBpabcdefghijklmnopqrstuvwxyzBqabcdefghijklmnopqrstuvwxyzBrabcdefghijklmnopqrstuvwxyzBsabcdefghijklmnopqrstuvwxyzBtabcdefghijklmnopqrstuvwxyzBuabcdefghijklmnopqrstuvwxyzBvabcdefghijklmnopqrstuvwxyzBwabcdefghijklmnopqrstuvwxyzBxabcdefghijklmnopqrstuvwxyzByabcdefghijklmnopqrstuvwxyzBzabcdefghijklmnopqrstuvwxyzCaabcdefghijklmnopqrstuvwxyzCbabcdefghijklmnopqrstuvwxyzCcabcdefghijklmnopqrstuvwxyzCdabcdefghijklmnopqrstuvwxyzCeabcdefghijklmnopqrstuvwxyzCfabcdefghijklmnopqrstuvwxyzCgabcdefghijklmnopqrstuvwxyzChabcdefghijklmnopqrstuvwxyzCiabcdefghijklmnopqrstuvwxyzCjabcdefghijklmnopqrstuvwxyzCkabcdefghijklmnopqrstuvwxyzClabcdefghijklmnopqrstuvwxyzCmabcdefghijklmnopqrstuvwxyzCnabcdefghijklmnopqrstuvwxyzCoabcdefghijklmnopqrstuvwxyzCpabcdefghijklmnopqrstuvwxyzCqabcdefghijklmnopqrstuvwxyzCrabcdefghijklmnopqrstuvwxyzCsabcdefghijklmnopqrstuvwxyzCtabcdefghijklmnopqrstuvwxyzCuabcdefghijklmnopqrstuvwxyzCvabcdefghijklmnopqrstuvwxyzCwabcdefghijklmnopqrstuvwxyzCxabcdefghijklmnopqrstuvwxyzCyabcdefghijklmnopqrstuvwxyzCzabcdefghijklmnopqrstuvwxyzDaabcdefghijklmnopqrstuvwxyzDbabcdefghijklmnopqrstuvwxyzDcabcdefghijklmnopqrstuvwxyzDdabcdefghijklmnopqrstuvwxyzDeabcdefghijklmnopqrstuvwxyzDfabcdefghijklmnopqrstuvwxyzDgabcdefghijklmnopqrstuvwxyzDhabcdefghijklmnopqrstuvwxyzDiabcdefghijklmnopqrstuvwxyzDjabcdefghijklmnopqrstuvwxyzDkabcdefghijklmnopqrstuvwxyzDlabcdefghijklmnopqrstuvwxyzDmabcdefghijklmnopqrstuvwxyzDnabcdefghijklmnopqrstuvwxyzDoabcdefghijklmnopqrstuvwxyzDpabcdefghijklmnopqrstuvwxyzDqabcdefghijklmnopqrstuvwxyzDrabcdefghijklmnopqrstuvwxyzDsabcdefghijklmnopqrstuvwxyzDtabcdefghijklmnopqrstuvwxyzDuabcdefghijklmnopqrstuvwxyzDvabcdefghijklmnopqrstuvwxyzDwabcdefghijklmnopqrstuvwxyzDxabcdefghijklmnopqrstuvwxyzDyabcdefghijklmnopqrstuvwxyzDzabcdefghijklmnopqrstuvwxyzEaabcdefghijklmnopqrstuvwxyzEbabcdefghijklmnopqrstuvwxyzEcabcdefghijklmnopqrstuvwxyzEdabcdefghijklmnopqrstuvwxyzEeabcdefghijklmnopqrstuvwxyzEfabcdefghijklmnopqrstuvwxyzEgabcdefghijklmnopqrstuvwxyzEhabcdefghijklmnopqrstuvwxyzEiabcdefghijklmnopqrstuvwxyzEjabcdefghijklmnopqrstuvwxyzEkabcdefghijklmnopqrstuvwxyzElabcdefghijklmnopqrstuvwxyzEmabcdefghijklmnopqrstuvwxyzEnabcdefghijklmnopqrstuvwxyzEoabcdefghijklmnopqrstuvwxyzEpabcdefghijklmnopqrstuvwxyzEqabcdefghijklmnopqrstuvwxyzErabcdefghijklmnopqrstuvwxyzEsabcdefghijklmnopqrstuvwxyzEtabcdefghijklmnopqrstuvwxyzEuabcdefghijklmnopqrstuvwxyzEvabcdefghijklmnopqrstuvwxyzEwabcdefghijklmnopqrstuvwxyzExabcdefghijklmnopqrstuvwxyzEyabcdefghijklmnopqrstuvwxyzEzabcdefghijklmnopqrstuvwxyzFaabcdefghijklmnopqrstuvwxyzFbabcdefghijklmnopqrstuvwxyzFcabcdefghijklmnopqrstuvwxyzFdabcdefghijklmnopqrstuvwxyzFeabcdefghijklmnopqrstuvwxyzFfabcdefghijklmnopqrstuvwxyzFgabcdefghijklmnopqrstuvwxyzFhabcdefghijklmnopqrstuvwxyz<user> <user>###$%&()*+,-/:;=@[]^_~#$#$%&()*+,-/:;=@[]^_~#%#$%&()*+,-/:;=@[]^_~#&#$%&()*+,-/:;=@[]^_~#(#$%&()*+,-/:;=@[]^_~#)#$%&()*+,-/:;=@[]^_~#*#$%&()*+,-/:;=@[]^_~#+#$%&()*+,-/:;=@[]^_~#,#$%&()*+,-/:;=@[]^_~#-#$%&()*+,-/:;=@[]^_~#/#$%&()*+,-/:;=@[]^_~#:#$%&()*+,-/:;=@[]^_~#;#$%&()*+,-/:;=@[]^_~#=#$%&()*+,-/:;=@[]^_~#@#$%&()*+,-/:;=@[]^_~#[#$%&()*+,-/:;=@[]^_~#]#$%&()*+,-/:;=@[]^_~#^#$%&()*+,-/:;=@[]^_~#_#$%&()*+,-/:;=@[]^_~#~#$%&()*+,-/:;=@[]^_~$##$%&()*+,-/:;=@[]^_~$$#$%&()*+,-/:;=@[]^_~$%#$%&()*+,-/:;=@[]^_~$&#$%&()*+,-/:;=@[]^_~$(#$%&()*+,-/:;=@[]^_~$)#$%&()*+,-/:;=@[]^_~$*#$%&()*+,-/:;=@[]^_~$+#$%&()*+,-/:;=@[]^_~$,#$%&()*+,-/:;=@[]^_~$-#$%&()*+,-/:;=@[]^_~$/#$%&()*+,-/:;=@[]^_~$:#$%&()*+,-/:;=@[]^_~$;#$%&()*+,-/:;=@[]^_~$=#$%&()*+,-/:;=@[]^_~$@#$%&()*+,-/:;=@[]^_~$[#$%&()*+,-/:;=@[]^_~$]#$%&()*+,-/:;=@[]^_~$^#$%&()*+,-/:;=@[]^_~$_#$%&()*+,-/:;=@[]^_~$~#$%&()*+,-/:;=@[]^_~%##$%&()*+,-/:;=@[]^_~%$#$%&()*+,-/:;=@[]^_~%%#$%&()*+,-/:;=@[]^_~%&#$%&()*+,-/:;=@[]^_~%(#$%&()*+,-/:;=@[]^_~%)#$%&()*+,-/:;=@[]^_~%*#$%&()*+,-/:;=@[]^_~%+#$%&()*+,-/:;=@[]^_~%,#$%&()*+,-/:;=@[]^_~%-#$%&()*+,-/:;=@[]^_~%/#$%&()*+,-/:;=@[]^_~%:#$%&()*+,-/:;=@[]^_~%;#$%&()*+,-/:;=@[]^_~%=#$%&()*+,-/:;=@[]^_~%@#$%&()*+,-/:;=@[]^_~%[#$%&()*+,-/:;=@[]^_~%]#$%&()*+,-/:;=@[]^_~%^#$%&()*+,-/:;=@[]^_~%_#$%&()*+,-/:;=@[]^_~%~#$%&()*+,-/:;=@[]^_~&##$%&()*+,-/:;=@[]^_~&$#$%&()*+,-/:;=@[]^_~&%#$%&()*+,-/:;=@[]^_~&&#$%&()*+,-/:;=@[]^_~&(#$%&()*+,-/:;=@[]^_~&)#$%&()*+,-/:;=@[]^_~&*#$%&()*+,-/:;=@[]^_~&+#$%&()*+,-/:;=@[]^_~&,#$%&()*+,-/:;=@[]^_~&-#$%&()*+,-/:;=@[]^_~&/#$%&()*+,-/:;=@[]^_~&:#$%&()*+,-/:;=@[]^_~&;#$%&()*+,-/:;=@[]^_~&=#$%&()*+,-/:;=@[]^_~&@#$%&()*+,-/:;=@[]^_~&[#$%&()*+,-/:;=@[]^_~&]#$%&()*+,-/:;=@[]^_~&^#$%&()*+,-/:;=@[]^_~&_#$%&()*+,-/:;=@[]^_~&~#$%&()*+,-/:;=@[]^_~(##$%&()*+,-/:;=@[]^_~($#$%&()*+,-/:;=@[]^_~(%#$%&()*+,-/:;=@[]^_~(&#$%&()*+,-/:;=@[]^_~((#$%&()*+,-/:;=@[]^_~()#$%&()*+,-/:;=@[]^_~(*#$%&()*+,-/:;=@[]^_~(+#$%&()*+,-/:;=@[]^_~(,#$%&()*+,-/:;=@[]^_~(-#$%&()*+,-/:;=@[]^_~(/#$%&()*+,-/:;=@[]^_~(:#$%&()*+,-/:;=@[]^_~(;#$%&()*+,-/:;=@[]^_~(=#$%&()*+,-/:;=@[]^_~(@#$%&()*+,-/:;=@[]^_~([#$%&()*+,-/:;=@[]^_~(]#$%&()*+,-/:;=@[]^_~(^#$%&()*+,-/:;=@[]^_~(_#$%&()*+,-/:;=@[]^_~(~#$%&()*+,-/:;=@[]^_~)##$%&()*+,-/:;=@[]^_~)$#$%&()*+,-/:;=@[]^_~)%#$%&()*+,-/:;=@[]^_~)&#$%&()*+,-/:;=@[]^_~)(#$%&()*+,-/:;=@[]^_~))#$%&()*+,-/:;=@[]^_~)*#$%&()*+,-/:;=@[]^_~)+#$%&()*+,-/:;=@[]^_~),#$%&()*+,-/:;=@[]^_~)-#$%&()*+,-/:;=@[]^_~)/#$%&()*+,-/:;=@[]^_~):#$%&()*+,-/:;=@[]^_~);#$%&()*+,-/:;=@[]^_~)=#$%&()*+,-/:;=@[]^_~)@#$%&()*+,-/:;=@[]^_~)[#$%&()*+,-/:;=@[]^_~)]#$%&()*+,-/:;=@[]^_~)^#$%&()*+,-/:;=@[]^_~)_#$%&()*+,-/:;=@[]^_~)~#$%&()*+,-/:;=@[]^_~*##$%&()*+,-/:;=@[]^_~*$#$%&()*+,-/:;=@[]^_~*%#$%&()*+,-/:;=@[]^_~*&#$%&()*+,-/:;=@[]^_~*(#$%&()*+,-/:;=@[]^_~*)#$%&()*+,-/:;=@[]^_~**#$%&()*+,-/:;=@[]^_~*+#$%&()*+,-/:;=@[]^_~*,#$%&()*+,-/:;=@[]^_~*-#$%&()*+,-/:;=@[]^_~*/#$%&()*+,-/:;=@[]^_~*:#$%&()*+,-/:;=@[]^_~*;#$%&()*+,-/:;=@[]^_~*=#$%&()*+,-/:;=@[]^_~*@#$%&()*+,-/:;=@[]^_~*[#$%&()*+,-/:;=@[]^_~*]#$%&()*+,-/:;=@[]^_~*^#$%&()*+,-/:;=@[]^_~*_#$%&()*+,-/:;=@[]^_~*~#$%&()*+,-/:;=@[]^_~+##$%&()*+,-/:;=@[]^_~+$#$%&()*+,-/:;=@[]^_~+%#$%&()*+,-/:;=@[]^_~+&#$%&()*+,-/:;=@[]^_~+(#$%&()*+,-/:;=@[]^_~+)#$%&()*+,-/:;=@[]^_~+*#$%&()*+,-/:;=@[]^_~++#$%&()*+,-/:;=@[]^_~+,#$%&()*+,-/:;=@[]^_~+-#$%&()*+,-/:;=@[]^_~+/#$%&()*+,-/:;=@[]^_~+:#$%&()*+,-/:;=@[]^_~+;#$%&()*+,-/:;=@[]^_~+=#$%&()*+,-/:;=@[]^_~+@#$%&()*+,-/:;=@[]^_~+[#$%&()*+,-/:;=@[]^_~+]#$%&()*+,-/:;=@[]^_~+^#$%&()*+,-/:;=@[]^_~+_#$%&()*+,-/:;=@[]^_~+~#$%&()*+,-/:;=@[]^_~,##$%&()*+,-/:;=@[]^_~,$#$%&()*+,-/:;=@[]^_~,%#$%&()*+,-/:;=@[]^_~,&#$%&()*+,-/:;=@[]^_~,(#$%&()*+,-/:;=@[]^_~,)#$%&()*+,-/:;=@[]^_~,*#$%&()*+,-/:;=@[]^_~,+#$%&()*+,-/:;=@[]^_~,,#$%&()*+,-/:;=@[]^_~,-#$%&()*+,-/:;=@[]^_~,/#$%&()*+,-/:;=@[]^_~,:#$%&()*+,-/:;=@[]^_~,;#$%&()*+,-/:;=@[]^_~,=#$%&()*+,-/:;=@[]^_~,@#$%&()*+,-/:;=@[]^_~,[#$%&()*+,-/:;=@[]^_~,]#$%&()*+,-/:;=@[]^_~,^#$%&()*+,-/:;=@[]^_~,_#$%&()*+,-/:;=@[]^_~,~#$%&()*+,-/:;=@[]^_~-#$%&()*+,-/:;=@[]^_~"}]}
