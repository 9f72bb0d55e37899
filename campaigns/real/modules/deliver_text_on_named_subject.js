const targetTools = {};
/*
 * Trains `deliver_text_on_named_subject`: the user names a subject and a length; the text is written at once and is about it,
 * also when the second message asks for it again without naming the subject.
 * Even seed (special): a lower limit, a full text on the subject is wanted.
 * Odd seed (twin): same subject and wording, an upper limit below the other's lower one: a full text is wrong, a brief one is right.
 */
const policy = "Follow the user's instructions exactly.";

/* phrase | how its word begins | words of its field (the first three are nouns for the solutions) */
const TOPICS = [
  'trains|train|station ticket engine rail track passenger locomotive travel transport carriage wagon coal steam conductor driver journey platform freight cargo speed fast vehicle commut cit',
  'libraries|librar|shelf book reader novel borrow quiet silen knowledge learn study studen stor literature author magazine newspaper resource education information catalog collect page',
  'coffee|coffee|cup bean mug roast brew drink drank caffein morning espresso milk aroma bitter sugar tast flavor flavour beverage energ hot cream latte plant smell',
  'owls|owl|night feather wing bird prey hunt fly flies flight eye silent mouse mice tree forest hoot nocturn nest head beak talon predator species animal wise',
  'candles|candle|wax flame wick light burn glow scent fire melt dark birthday cake warm lamp decorat romantic match smell lit',
  'whales|whale|ocean tail blubber sea mammal swim water fin marine fish dolphin large huge giant breath song dive krill species animal deep big',
  'islands|island|beach palm shore sea ocean water sand coast boat land tropical paradise wave continent ship isolated surround coral tourist vacation',
  'pianos|piano|key melody pedal music instrument play song note chord string sound concert finger compos musician hammer tune practice black',
  'deserts|desert|sand camel cactus dune dry sun hot oasis water heat arid climate sahara landscape temperature plant storm rainfall animal thirst',
  'clocks|clock|hour hand alarm minute second time tick tock wall pendulum watch tower number gear wake late digital mechanism',
  'boats|boat|harbour sail oar water sea river lake ocean row ship fish wave wind anchor captain crew float vessel harbor travel port',
  'bread|bread|flour oven crust bake baker bakery yeast dough loaf wheat slice butter eat food toast sandwich grain knead smell fresh meal',
  'snow|snow|flake sled frost cold white ice icy winter ski freez frozen temperature melt snowman weather fall cloud slippery blanket storm shovel',
  'horses|horse|saddle mane stable ride riding rider gallop run hoof hooves farm animal race hay pony field tail mammal strong domestic grass',
  'castles|castle|tower moat knight king queen stone wall armour fort prince lord dragon gate siege throne battle ancient royal build',
  'forests|forest|tree moss deer leaf leaves wood animal bird plant green path oxygen wildlife wild species ecosystem habitat bear fox shade branch',
  'honey|honey|hive jar nectar sweet flower sugar tast golden sticky syrup spoon beekeep comb food natural pollen bread eat',
  'lemons|lemon|peel juice grove sour citrus fruit yellow tree vitamin lemonade acid tast drink seed cook sugar tart bitter',
  'rivers|river|bank current valley water flow stream fish boat lake sea ocean swim source flood bridge rain delta fresh land',
  'elephants|elephant|trunk tusk herd ivory ear large animal mammal africa asia savanna gray grey memory big zoo huge giant wild calf',
  'umbrellas|umbrella|handle storm raincoat rain wet dry weather sun shade cloud fabric fold open protect shelter wind water',
  'maps|map|compass road border country countries city cities travel direction geograph world atlas route navigat location place land scale street explor',
  'tomatoes|tomato|vine salad sauce red fruit vegetable ripe juic soup pasta plant grow garden cook seed tast eat food pizza',
  'spiders|spider|web thread fly insect leg silk eight trap prey spin spun venom bite poison crawl arachnid creature species hunt animal',
  'chocolate|chocolate|cocoa bar cake sweet candy milk dark sugar tast eat dessert treat delicious cacao bean flavor flavour snack butter',
  'swimming|swim|pool lake coach water stroke breath exercise float dive diving sea ocean muscle sport arm leg fitness wet health body',
  'the ocean|ocean|wave shore tide water sea fish salt deep blue coral whale marine beach ship sand creature surface planet earth vast',
  'birthdays|birthday|cake candle gift party parties present celebrat friend famil balloon guest year age song invit sing wish born',
  'kitchens|kitchen|stove sink pan cook food meal oven fridge knife dish plate pot table eat chef recipe bake spoon dinner',
  'dancing|danc|music stage partner rhythm step ballet move moving song floor beat body perform feet foot waltz salsa express',
  'lighthouses|lighthouse|coast lamp keeper ship sea light tower sailor rock beam shore night boat guide storm harbor harbour fog ocean',
  'frogs|frog|pond lily tongue jump green water leap amphibian tadpole croak insect swamp skin leg egg hop lake toad fly animal',
  'hospitals|hospital|nurse doctor patient bed sick ill medic health care surg emergency treat heal clinic ambulance disease pain',
  'butterflies|butterfl|wing caterpillar flower insect color colour fly flies flight nectar garden pattern cocoon metamorph meadow bright pollinat species egg',
  'tigers|tiger|stripe jungle claw cat orange animal prey hunt roar wild india predator asia fur forest zoo strong endangered species',
  'farms|farm|barn field tractor cow animal crop farmer grow wheat vegetable milk chicken pig harvest land food plant soil agricult sheep',
  'guitars|guitar|string chord concert music play song instrument sound band strum melod electric acoustic pick rock musician wood tune note',
  'museums|museum|painting statue exhibit art history histor artist collect display artifact gallery visit cultur ancient ticket educat sculpture',
  'parrots|parrot|feather beak cage bird talk color colour tropical wing fly speak pet imitat sound mimic green species animal intelligent',
  'carrots|carrot|root soup rabbit orange vegetable garden crunch eat food vitamin soil salad sweet healthy eye plant cook grow nutri',
].map((line) => {
  const [phrase, stem, field] = line.split('|');
  return { phrase, stem, field: field.split(' ') };
});
const OPENINGS = [
  (topic) => `Write about ${topic}.`,
  (topic) => `Tell me about ${topic}.`,
  (topic) => `Write a short text about ${topic}.`,
  (topic) => `Please write about ${topic}.`,
  (topic) => `I would like to read something about ${topic}.`,
];
const LEAST = [(n) => `Use at least ${n} words.`, (n) => `Write ${n} words or more.`];
const MOST = [(n) => `Use at most ${n} words.`, (n) => `It must not be longer than ${n} words.`];
/* The second message: the first two ask for other words, the others add a limit that is easily kept. */
const LATER = [
  () => 'Now say it in other words. All that I asked before still holds.',
  () => 'Thank you. Can you put it differently? Keep to everything that I asked.',
  (extra) => `Good. Now write it again with one more thing: ${extra} Keep to what I asked before.`,
  (extra) => `Thank you. One thing more, beside what I asked at first: ${extra} Write all of it again.`,
  (extra) => `Please change it. ${extra} All that I asked before still holds.`,
];
const ANY = 1000000;

function randomOf(seed) {
  let a = Math.imul(seed + 1, 0x9e3779b1);
  return (limit) => {
    a = (a + 0x6d2b79f5) | 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  };
}

/* The target allows four messages; a solution takes two. */
export const describe = () => ({ policy, tools: [], maxSteps: 4 });

function instance(seed, fewer) {
  const special = seed % 2 === 0;
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same
  const { phrase, stem, field } = TOPICS[below(TOPICS.length)];
  const [opening, form, extraForm] = [below(OPENINGS.length), below(2), below(2)];
  const least = 24 + below(13);
  const most = least - 1 - below(3); // no length is right for both of a pair
  const [upper, lower] = [110 + 10 * below(5), 5 + below(5)];
  const [kind, pattern, tail] = [below(LATER.length), below(4), below(3)];
  const first = special ? LEAST[form](least) : MOST[form](most);
  const extra = special ? MOST[extraForm](upper) : LEAST[extraForm](lower);
  const reword = kind < 2;
  const limit = special ? { min: least, max: ANY } : { min: 1, max: most };
  const second = reword ? limit : special ? { min: least, max: upper } : { min: lower, max: most };
  const asked = [`${OPENINGS[fewer ? opening % 2 : opening](phrase)} ${first}`, LATER[kind](extra)];
  const turns = fewer ? 1 : 2;
  return {
    special,
    phrase,
    stem,
    field,
    asked: asked.slice(0, turns),
    limits: [limit, second].slice(0, turns),
    reword,
    pattern,
    tail,
    texts: [],
    calls: 0,
    done: false,
  };
}
export const make = (seed) => instance(seed, false);
/* One text only, and a direct first message. */
export const easier = (seed) => instance(seed, true);

export const start = ({ asked }) => [
  { role: 'system', content: policy },
  { role: 'user', content: asked[0] },
];

/* Sentences that talk about the task, offer help or ask what is wanted: they are no part of the text on the subject. */
const ABOUT_TASK = new RegExp(
  [
    'would you (like|prefer|want)',
    '(do|what) you (want|need)',
    '(can|could) you (please|tell|give|provide|clarify|specify|explain)',
    '(can|may|could) i (help|assist|do)',
    '(help|assist) you',
    'let me know',
    "(i'm|i am) (not sure|sorry|unable)",
    '(i|you) (have )?asked',
    'your (request|instructions?|message)',
    'the (instructions?|request|user)',
    'happy to (help|assist|tell|write)',
    "i (can't|cannot|will|can|could|must|should) (write|tell|say|help|provide)",
    "i'll (write|tell)",
    '(at least|at most|longer than) \\d+ words',
    '\\d+ words or more',
    'as an ai',
    'excuse me',
    'tell me',
    'please (provide|tell|specify|give|write)',
    'write (about|something|a (short )?text)',
  ]
    .map((each) => `\\b${each}\\b`)
    .join('|'),
);
const wordsOf = (text) => text.toLowerCase().match(/[a-z0-9]+(?:'[a-z]+)*/g) ?? [];
const lengthOf = (text) => text.split(/\s+/).filter((each) => /[a-z0-9]/i.test(each)).length;
const begins = (word, stem) => word.startsWith(stem) && word.length <= stem.length + 4;
const holds = (words, stems) => words.some((word) => stems.some((stem) => begins(word, stem)));
const copies = (words, message) => {
  const source = ` ${wordsOf(message).join(' ')} `;
  return words.some((_, n) => n + 6 <= words.length && source.includes(` ${words.slice(n, n + 6).join(' ')} `));
};

/* What is right about a text, the one that answers the message asked[turn]. */
function judge({ stem, field, asked, limits, reword, texts }, written) {
  const turn = texts.length;
  const text = written.slice(0, 20000).replace(/[\u2018\u2019]/g, "'");
  const words = wordsOf(text);
  const own = text.split(/(?<=[.!?:])\s+|\n+/).filter((sentence) => !ABOUT_TASK.test(sentence.toLowerCase()));
  const body = own.flatMap(wordsOf);
  const answer = body.length >= 5 && body.length * 2 >= words.length;
  const varied = new Set(words).size * 2 >= Math.min(words.length, 120);
  const copied = asked.slice(0, turn + 1).some((message) => copies(words, message));
  const about = answer && varied && !copied && holds(body, [stem]) && holds(body, field);
  const length = lengthOf(text) >= limits[turn].min && lengthOf(text) <= limits[turn].max;
  const plain = words.join(' ').slice(0, 5000);
  const fresh = turn === 0 || !reword || plain !== texts[0].plain;
  return { about, length, fresh, plain };
}

/* The user: asks once more after the first text, whatever it was, and says thanks after the last. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  if (calls.length > 0) {
    state.calls += 1;
    state.done = state.done || state.calls > 1;
    const messages = calls.map(({ id }) => ({ role: 'tool', toolCallId: id, content: 'Error: there is no such tool.' }));
    return { state, done: state.done, messages };
  }
  const content = typeof message.content === 'string' ? message.content : '';
  if (state.texts.length < state.asked.length) state.texts.push(judge(state, content));
  state.done = state.done || state.texts.length === state.asked.length;
  const answer = state.done ? 'Thank you.' : state.asked[state.texts.length];
  return { state, done: state.done, messages: [{ role: 'user', content: answer }] };
}

export function reward({ special, asked, texts, calls, done }) {
  const count = (key) => texts.filter((text) => text[key]).length / asked.length;
  const both = texts.filter(({ about, length }) => about && length).length / asked.length;
  const fresh = texts.every((text) => text.fresh);
  const right = done && calls === 0 && both === 1 && fresh;
  return {
    reward: right ? 1 : 0.2 * count('about') + 0.1 * both, // a length counts only in a text on the subject
    branch: special ? 'full_text' : 'brief_text',
    breakdown: { about: count('about'), length: count('length'), fresh: Number(fresh), calls },
  };
}

export const reference = ({ stem }) => ({ actions: [], tell: [stem] });

const BRIEF = [
  (t, a) => `${t} and the ${a} belong together, as many people here know.`,
  (t, a, b) => `${t}: first comes the ${a}, then the ${b}, and each has its place.`,
  (t, a, b) => `${t} bring two pictures to mind, the ${a} and the ${b}.`,
  (t, a, b) => `${t} always remind my family of the ${a} and the ${b}.`,
];
const TAILS = [
  (c) =>
    `My grandfather often spoke of the ${c}, and he said that nobody forgets it after one long day outside. Still, each visitor finds something different there, and that is why so many come back every year.`,
  (c) =>
    `As a child I saw the ${c} from very near, and nobody could pull me away from it until evening. Even today that picture comes back whenever somebody at home speaks of those early years.`,
  (c) =>
    `Old people in our village know more, because they lived with the ${c} for half a century. They explain it slowly, smile a little, and leave the best part for another quiet evening.`,
];
const say = (content) => ({ role: 'assistant', content });

/* One text for each message of the user, full or brief; the second has other words than the first. */
function script({ phrase, field, asked, pattern, tail }, full) {
  const title = phrase[0].toUpperCase() + phrase.slice(1);
  return asked.map((_, n) => {
    const [a, b, c] = [0, 1, 2].map((at) => field[(at + n) % 3]);
    const brief = BRIEF[(pattern + n) % BRIEF.length](title, a, b);
    return say(full ? `${brief} ${TAILS[(tail + n) % TAILS.length](c)}` : brief);
  });
}
export const solve = (seed, state = make(seed)) => script(state, state.special);
export const shortcuts = (seed, state = make(seed)) => ({
  'always a full text': script(state, true),
  'always a brief text': script(state, false),
  'asks what is wanted': state.asked.map(() =>
    say(`I am not sure what to tell you about ${state.phrase}. What would you like to know?`),
  ),
  'repeats the request': state.asked.map((message) => say(message)),
  'says the words of the subject only': state.asked.map(() => say(`${state.phrase} ${state.phrase} ${state.phrase}.`)),
});
export const hint = () =>
  'Nothing is missing from the request: it names a subject and a length. Write the text itself at once, with concrete things that belong to the subject, and do not talk about the request. Mind whether the length is a lower or an upper limit. If you are asked to write it again, stay on the same subject.';
// Rationale: In the failed attempts the agent repeated the form requirement or said that it did not know what to tell, although subject and form had been named, and went on so after the second message; the attempts that passed simply wrote about the subject. The instances put the same kinds of first and second messages before the agent and pay only for texts that are about the subject and keep to the stated length, so that delivering such a text at once becomes what it does in the target.
