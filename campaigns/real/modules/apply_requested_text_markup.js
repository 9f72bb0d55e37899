// Rationale: In the failed attempts the agent starts at once with fluent prose on the subject and leaves out the title, or the placeholder, that the last sentence of a short request demands, and the one that passed wrote the notation literally before its text; here the same kind of request demands one of three notations, plain prose and the wrong notation both fail, and only writing the demanded one literally, at its place and beside a real text on the subject, is rewarded.
const targetTools = {};
/*
 * Trains `apply_requested_text_markup`: a demanded markup is written literally and at its place.
 * Even seed (special): the request demands one markup (a title in <<>>, a [placeholder] or a **bold** word).
 * Odd seed (twin): the same request on the same subject demands another one of these in the same place.
 * So what is right for one of the pair is wrong for the other, and plain prose is wrong for both.
 */
// History:
// Round 1: passed the self-test, but markup_demanded was solved in 3% only: markup in the second message, limits, couples.
//   Now one markup, in the first message; samples on the subject; finer credit; milder test of an answer; hint by kind.
// Round 2: rejected by a person: twins negated the demand, so plain text was right for them and was what was learned.
//   Now the twin demands another kind; a kind not asked for is wrong; no quotation marks around the whole (hardly ever
//   solved); placeholder and bold in the first 40 words; second messages rarer.
// Round 3: bold_word was solved in 4% only (angle_title 57%, bracket_placeholder 13%).
//   Now the sample for bold is the start of a sentence on the subject in half of the requests and in all easier ones; the
//   hint for bold says to begin with it; a markup has to begin in the first 40 words; an answer needs no final mark.
// Round 4: rejected by a person (solved in 34%): the agent learned the markup with hardly a text beside it, and to repeat.
//   Now an answer has 10 words beside the markup, the topic or a word of its field among them (whole words, from a list
//   for each topic); no line or sentence twice; four in five runs of three words differ. All else is as it was.
// Round 5: rejected by a person (solved in 26%; titles 53%, placeholders 13%, bold 5%): the test of an answer was too hard.
//   Now for bold and placeholder 8 words beside the markup are enough, the topic or field word may be inside of it, it may
//   stand anywhere, and the sample is on the topic, mostly a short sentence to be used as it is. Titles are as they were.
const policy = "Follow the user's instructions exactly.";
/* The topics, each with words of its field: one of them, or the topic, must stand in the text (beside the markup, if that is a title). */
const FIELDS = {
  owls: 'bird night nocturnal wing feather nest prey hunt eye hoot fly flight wise forest animal creature predator', volcanoes: 'volcanic lava magma erupt eruption ash mountain crater earth rock smoke fire hot heat', trains: 'rail railway railroad station track travel journey passenger engine locomotive transport transportation ride', coffee: 'cup drink bean morning brew caffeine roast beverage espresso cafe aroma flavor taste mug milk', candles: 'wax flame light wick burn glow scent fire warm warmth melt dark darkness', kites: 'wind sky string fly flying flight tail air soar colorful breeze toy',
  lighthouses: 'light sea ship coast sailor tower shore beacon ocean lamp harbor rock water guide', honey: 'bee sweet hive nectar sugar taste golden food syrup jar flavor sweetness comb beekeeper', castles: 'king queen knight tower wall stone medieval fortress moat royal palace history noble siege building', rivers: 'water stream flow fish sea bank bridge boat current valley ocean lake mountain', snow: 'snowflake winter cold white ice flake freeze frozen ski snowman frost fall weather sled', dolphins: 'sea ocean swim swimming swam fish water marine mammal intelligent dive fin pod animal creature wave',
  horses: 'ride riding rider gallop mane stable animal farm saddle hoof hooves pony foal mare creature race', bread: 'flour bake baking loaf loaves dough yeast oven crust eat food wheat butter slice toast', clouds: 'sky rain weather white air sun water storm float drift vapor atmosphere wind gray', guitars: 'string music musical musician play chord sound instrument song strum melody acoustic electric band', pianos: 'key music musical musician play sound instrument song melody pianist keyboard note concert string', umbrellas: 'rain wet dry weather storm rainy sun shade cover protect protection handle',
  carpets: 'floor rug room wool weave woven soft fabric pattern home thread house textile color', clocks: 'time hour minute hand tick second watch day alarm wall pendulum dial', deserts: 'sand hot dry heat dune camel sun water cactus arid oasis rain cacti', forests: 'tree leaf leaves wood animal green plant nature wildlife shade bird path oak pine woodland', islands: 'sea ocean beach water sand coast land shore palm boat tropical coral wave', lemons: 'fruit sour yellow juice lemonade citrus tree taste peel vitamin acid tart zest drink',
  tomatoes: 'red fruit vegetable salad garden sauce plant juicy ripe food eat soup taste cook grow', spiders: 'web leg silk insect spin bite prey venom arachnid creature crawl weave fly animal eight', turtles: 'shell slow sea water swim reptile egg beach ocean animal creature tortoise swimming', elephants: 'trunk tusk animal large big herd ivory ear africa african mammal creature giant calf', camels: 'desert hump sand water animal caravan dry heat ride creature mammal', butterflies: 'wing caterpillar flower insect color colour colorful flutter fly garden cocoon beautiful creature nectar',
  frogs: 'pond jump water leap croak green amphibian tadpole insect hop swamp animal creature tongue', music: 'musical musician song sound melody listen dance rhythm instrument sing singing tune band concert note', football: 'ball game team player goal play sport match field stadium fan kick coach touchdown league', tennis: 'ball racket court player game play sport match serve net tournament racquet', windmills: 'wind blade energy power turn grain mill electricity farm sail turbine flour grind', libraries: 'book shelf shelves reader reading quiet borrow librarian knowledge learn study story stories student',
  maps: 'road route travel world country countries land journey traveler geography direction location guide navigate', boats: 'water sea sail sailor ship river lake fish fishing ocean wave row float harbor', cats: 'pet purr kitten fur furry paw animal meow feline mouse mice creature whisker tail play', rabbits: 'ear fur furry hop carrot animal bunny burrow pet tail soft creature bunnies garden grass', bears: 'forest fur animal honey cub fish wild mammal winter hibernate cave creature claw paw', flowers: 'garden petal bloom blossom rose color colour colorful plant bee smell scent spring beautiful fragrance',
  trees: 'leaf leaves forest branch wood root plant shade green oak trunk nature grow oxygen fruit', schools: 'student teacher learn class classroom education child children lesson teach study pupil knowledge', birds: 'wing fly flight feather nest sing song sky egg animal beak creature flies flying soar', books: 'page reader reading story stories author novel writer library knowledge learn chapter literature bookshelf', cars: 'drive driving driver road wheel engine vehicle speed fast traffic travel transport transportation fuel', hats: 'wear worn head cap fashion style sun brim straw clothes accessory accessories',
  eggs: 'chicken hen shell breakfast yolk bird food cook eat hatch boil fry fried nest protein', onions: 'vegetable cook cooking layer tear cry soup food peel flavor taste smell kitchen garlic eat',
};
const TOPICS = Object.keys(FIELDS);
const OPENINGS = [
  ...['Write a short text about', 'Tell me about', 'Write about', 'Please write about'],
  ...['I would like to read something about', 'Write something about'],
].map((words) => (topic) => `${words} ${topic}.`);
const LIMITS = [(n) => `Use at least ${n} words.`, (n) => `Write ${n} words or more.`];
/* Samples in a whole sentence: five words at most, so that using one as it stands is no copy of the request. */
const EXAMPLES = ['Since [date] I like %.', '[name] likes %.', 'I found % in [place].', '[city] is known for %.'];
const ENDINGS = ['worth a look', 'special to many', 'worth knowing', 'never dull']; // for bold: **Topic** is ...
const TITLES = ['All about', 'Thoughts on', 'A word on'];
const KINDS = ['placeholder', 'title', 'bold'];
/* For each kind: how it is demanded; the sample stands at %. SHOWN is for samples that are a whole sentence. */
const CLAUSES = {
  placeholder: ['Use', 'Leave'].map((verb) => `${verb} at least one placeholder in square brackets, such as %.`),
  bold: ['Mark at least one word in bold, like %.', 'There must be a word in bold, like %.'],
  title: ['Put', 'There must be'].map((verb) => `${verb} a title in double angle brackets, as in %, before the text.`),
};
const SHOWN = {
  placeholder: ['Use', 'Leave'].map((verb) => `${verb} at least one placeholder in square brackets, as in: %`),
  bold: ['Mark at least one word in bold, as in: %', 'There must be a word in bold, as in: %'],
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
const verbOf = (topic) => (/[^i]s$/.test(topic) ? 'are' : 'is');
const capital = (word) => word[0].toUpperCase() + word.slice(1);

export const describe = () => ({ policy, tools: [], maxSteps: 4 });

function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const pick = (list) => list[below(list.length)];
  const [topic, opening, first, example, heading] = [TOPICS, OPENINGS, KINDS, EXAMPLES, TITLES].map(pick);
  const [limit, added, count, style, way] = [pick(LIMITS), pick(ADDED), 8 + below(5), below(9), below(2)];
  const [again, drawn] = [below(12) === 0 && !fewer, below(4)];
  const second = pick(KINDS.filter((each) => each !== first)); // what the twin asks for
  const ending = pick(ENDINGS);
  const [kind, other] = special ? [first, second] : [second, first];
  const turn = fewer ? 3 : drawn; // how much the sample gives
  const whole = turn >= 1; // for bold and placeholder: a whole sentence
  const sample = {
    placeholder: whole ? example.replace('%', topic) : `[${topic}]`,
    bold: whole ? `**${capital(topic)}** ${verbOf(topic)} ${ending}.` : `**${topic}**`,
    title: turn % 2 === 1 ? `<<${heading} ${topic}>>` : '<<title>>',
  }[kind];
  const clauses = (whole && SHOWN[kind]) || CLAUSES[kind];
  const clause = clauses[fewer ? 0 : way].replace('%', () => sample);
  const messages = [`${(fewer ? OPENINGS[0] : opening)(topic)} ${clause}`];
  if (again) messages.push(added(limit(count)));
  return { special, topic, kind, other, sample, messages, count, style, texts: [], calls: 0, done: false };
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

/* Is a markup written as demanded? A title stands before the text, the others anywhere in it. */
const PLACEHOLDER = /\[(?=[^[\]\n]*[A-Za-z])[^[\]\n]+\](?!\()/;
const BOLD = /\*\*[^\s*](?:[^*\n]*[^\s*])?\*\*/;
const titled = (text) => /^(?:[\s#*]|title:)*<<(?=[^<>\n]*[A-Za-z])[^<>\n]+>>[^A-Za-z]*[A-Za-z]/i.test(text);
const WRITTEN = { placeholder: (text) => PLACEHOLDER.test(text), bold: (text) => BOLD.test(text), title: titled };
/* Is it there at all, where it was not asked for? Stars around a whole title are taken as part of the title. */
const FOUND = {
  placeholder: (text) => PLACEHOLDER.test(text),
  bold: (text) => BOLD.test(text.replace(/\*\*(<<[^<>\n]*>>)\*\*/g, '$1')),
  title: (text) => /<<[^<>\n]*>>/.test(text),
};
/* What a markup that is half there or at a wrong place is worth: the first pattern that fits. */
const TRIED = {
  placeholder: [[/\[[^[\n]*\]/, 0.8], [/[[\]]/, 0.6], [/[({<]/, 0.2]],
  bold: [[/\*\*/, 0.7], [/\*|__/, 0.4], [/<b>|^#/, 0.2]],
  title: [[/<<[^<\n]*>>/, 0.8], [/<|>/, 0.5], [/^(?:#|\*|title)/i, 0.4], [/^[^\n]{1,60}\n/, 0.2]],
};

/* The text beside the markup: bold words, titles and placeholders are taken out with all that is in them. */
const besideOf = (text) =>
  [new RegExp(BOLD, 'g'), /<<[^<>\n]*>>/g, /\[[^[\]\n]*\]/g].reduce((rest, each) => rest.replace(each, ' '), text);
/* Does a line or a sentence of so many words or more come twice? */
function twice(text, least) {
  const parts = text.split(/\n|[.!?]+(?=[\s"'*)\u2019\u201d]|$)/).map(wordsOf);
  const said = parts.filter((words) => words.length >= least).map((words) => words.join(' '));
  return new Set(said).size < said.length;
}
/* Are at least four in five runs of three words different? */
function fewRuns(text) {
  const words = wordsOf(text);
  const runs = words.slice(2).map((_, n) => words.slice(n, n + 3).join(' '));
  return new Set(runs).size * 5 >= runs.length * 4;
}
function onSubject(text, topic) {
  const stem = topic.replace(/(ies|oes|s)$/, '');
  const field = FIELDS[topic].replaceAll(' ', '|');
  return new RegExp(`\\b(?:${stem}(?:e?s|y|ies|o|oe?s)?|(?:${field})(?:e?s|e?d|ing|ers?|y)?)\\b`, 'i').test(text);
}
/* Is it an answer at all: on the subject, with words of its own beside the markup, no copy of the request, no repetition? */
function isAnswer(text, kind, topic, asked) {
  const strict = kind === 'title'; // there the subject must be in the text too, and the text is a little longer
  const beside = besideOf(text);
  const words = wordsOf(beside);
  const given = new Set(asked.flatMap(wordsOf));
  const different = new Set(words);
  const fresh = [...different].filter((word) => !given.has(word));
  const joined = [text, beside].map((each) => ` ${wordsOf(each).join(' ')} `).join('|');
  const copied = asked.map(wordsOf).some((own) =>
    own.some((_, n) => n + 6 <= own.length && joined.includes(` ${own.slice(n, n + 6).join(' ')} `)),
  );
  const varied = different.size * 2 >= Math.min(words.length, 40); // long texts repeat small words
  const repeats = twice(text, 1) || twice(beside, 4) || !fewRuns(text) || !fewRuns(beside);
  const enough = words.length >= (strict ? 10 : 8) && fresh.length >= 3;
  return enough && !copied && varied && !repeats && onSubject(strict ? beside : text, topic);
}

function judge({ kind, topic, count, messages, texts }, n) {
  const text = texts[n] ?? '';
  const answer = isAnswer(text, kind, topic, messages.slice(0, n + 1));
  const long = n === 0 || wordsOf(text).length >= count; // only the second message asks for a number of words
  const fit = WRITTEN[kind](text);
  const clean = KINDS.every((each) => each === kind || !FOUND[each](text)); // nothing that was not asked for
  const tried = TRIED[kind].find(([pattern]) => pattern.test(text))?.[1] ?? 0;
  const worth = fit ? (clean ? 1 : 0.5) : clean ? tried : 0;
  const level = answer ? 0.05 + 0.2 * worth + (fit && clean && long ? 0.05 : 0) : 0;
  return { answer, long, fit, clean, level, right: answer && long && fit && clean };
}

export function reward(state) {
  const { kind, messages, texts, done } = state;
  const judged = messages.map((_, n) => judge(state, n));
  const right = done && texts.length === messages.length && judged.every((each) => each.right);
  const mean = (value) => judged.reduce((sum, each) => sum + Number(value(each)), 0) / judged.length;
  const branch = { placeholder: 'bracket_placeholder', bold: 'bold_word', title: 'angle_title' }[kind];
  const [answer, long] = [mean((each) => each.answer), mean((each) => each.answer && each.long)];
  const [markup, clean] = [mean((each) => each.answer && each.fit), mean((each) => each.answer && each.clean)];
  const partial = Math.min(0.3, mean((each) => each.level));
  return { reward: right ? 1 : partial, branch, breakdown: { answer, long, markup, clean } };
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
  return kinds.includes('title') ? `<<Notes on ${topic}>> ${text}` : text;
}
const script = (state, kinds) => state.messages.map((_, n) => say(textOf(state, n, kinds)));

export const reference = ({ topic }) => ({ actions: [], tell: [topic] });
export const solve = (seed, state = make(seed)) => script(state, [state.kind]);
export const shortcuts = (seed, state = make(seed)) => ({
  'what the special one asks for': script(state, [state.special ? state.kind : state.other]),
  'what the twin asks for': script(state, [state.special ? state.other : state.kind]),
  'what the other one of the pair asks for': script(state, [state.other]),
  'both of the pair at once': script(state, [state.kind, state.other]),
  'never mark anything': script(state, []),
  'all markup at once': script(state, KINDS),
  'always a title': script(state, ['title']),
  'always a placeholder': script(state, ['placeholder']),
  'always bold': script(state, ['bold']),
});

export function hint({ kind, sample }) {
  const shown = sample.replace(/\.$/, '');
  return {
    placeholder: `Begin your text with what the request shows, just as it stands there, with both square brackets: ${shown}. Then write one or two more sentences on the subject, each in words of its own.`,
    bold: `Begin your text with what the request shows, just as it stands there, with two stars right before the word and two stars right after it: ${shown}. Then write one or two more sentences on the subject, each in words of its own.`,
    title: `Begin with a title, written just as ${sample} is: first <<, then some words on the subject, then >>. After it write a few sentences on the subject.`,
  }[kind];
}
// Attack: {"name":"the cut at 20000 characters leaves only the sample of the copied request; all topics listed","messages":[{"say":"<<a00abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst01abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst02abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst03abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst04abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst05abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst06abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst07abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst08abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst09abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst10abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst11abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst12abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst13abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst14abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst15abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst16abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst17abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst18abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst19abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst20abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst21abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst22abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst23abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst24abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst25abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst26abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst27abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst28abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst29abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst30abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst31abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst32abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst33abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst34abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst35abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst36abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst37abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst38abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst39abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst40abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst41abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst42abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst43abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst44abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst45abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst46abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst47abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst48abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst49abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst50abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst51abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst52abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst53abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst54abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst55abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst56abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst57abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst58abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst59abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst60abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst61abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst62abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst63abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst64abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst65abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst66abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst67abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst68abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst69abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst70abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst71abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst72abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst73abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst74abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst75abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst76abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst77abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst78abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst79abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst80abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst81abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst82abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst83abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst84abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst85abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst86abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst87abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst88abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst89abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst90abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst91abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst92abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst93abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst94abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst95abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst96abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst97abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst98abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst99abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst<user> owls volcanoes trains coffee candles kites lighthouses honey castles rivers snow dolphins horses bread clouds guitars pianos umbrellas carpets clocks deserts forests islands lemons tomatoes spiders turtles elephants camels butterflies frogs music football tennis windmills libraries maps boats cats rabbits bears flowers trees schools birds books cars hats eggs onions so on 00abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst01abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst02abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst03abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst04abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst05abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst06abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst07abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst08abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst09abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst10abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst11abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst12abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst13abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst14abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst15abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst16abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst17abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst18abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst19abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst20abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst21abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst22abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst23abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst24abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst25abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst26abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst27abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst28abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst29abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst30abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst31abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst32abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst33abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst34abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst35abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst36abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst37abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst38abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst39abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst40abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst41abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst42abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst43abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst44abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst45abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst46abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst47abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst48abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst49abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst50abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst51abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst52abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst53abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst54abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst55abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst56abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst57abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst58abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst59abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst60abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst61abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst62abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst63abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst64abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst65abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst66abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst67abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst68abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst69abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst70abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst71abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst72abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst73abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst74abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst75abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst76abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst77abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst78abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst79abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst80abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst81abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst82abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst83abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst84abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst85abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst86abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst87abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst88abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst89abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst90abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst91abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst92abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst93abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst94abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst95abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrst"}]}
