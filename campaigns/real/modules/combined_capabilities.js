const targetTools = {};
/*
 * Trains `combined_capabilities`: a request makes two demands of different kinds, and one text must meet both.
 * Even seed (special): two demands on a text, both at once or the second one in a later message.
 * Odd seed (twin): the same subject and one demand only, which is the opposite of one of the two
 * (another number, the word banned, another beginning), so that a text made for the two demands breaks it.
 */
const policy = "Follow the user's instructions exactly.";
/* A topic, and words that show that a text is about it. */
const TOPICS = [
  'owls|owl|bird|nest', 'coffee|cup|bean|cafe', 'horses|horse|pony|stable', 'libraries|library|book|reader', 'snow|snowflake|flake|snowy',
  'the sea|sea|ocean|wave|tide', 'trains|train|railway|station', 'bakeries|bakery|baker|cake', 'kites|kite|wind', 'carrots|carrot|vegetable|root',
  'football|ball|team|player', 'clocks|clock|hour|watch', 'whales|whale|ocean|sea', 'dancing|dance|dancer', 'mirrors|mirror|reflection|glass',
  'museums|museum|art|exhibit', 'shoes|shoe|foot|feet|boot', 'honey|bee|hive', 'lions|lion|cat', 'umbrellas|umbrella|rain', 'deserts|desert|sand|dune',
  'pizza|dough|slice', 'tigers|tiger|stripe', 'music|song|melody|musician', 'swimming|swim|swimmer|pool|water', 'castles|castle|king|tower',
  'ships|ship|boat|sail', 'forests|forest|tree|wood', 'frogs|frog|pond', 'oranges|orange|fruit', 'cameras|camera|photo|picture|photograph',
  'painting|paint|painter|picture', 'teachers|teacher|school|student|class', 'guitars|guitar|string|music', 'neighbors|neighbor|neighbour', 'sleep|bed|night|sleeping',
];
const WORDS = 'window gentle bottle paper green river blanket candle lantern copper button spoon quiet ladder basket pillow marble thunder feather corner bright'.split(' ');
const COMMON = ['very', 'many', 'also', 'they', 'with', 'often'];
const LETTERS = ['j', 'z', 'v', 'k'];
const BEGINNINGS = ['Long ago', 'At noon', 'In spring', 'After school', 'On Sundays', 'Late at night', 'Once a year', 'In the old days'];
const ENDINGS = ['so it goes', 'and that is all', 'year after year', 'as it should be', 'for a long time', 'by the sea', 'until the end', 'once and for all'];
const RANGES = { sentences: [1, 2, 3, 4], paragraphs: [2, 3], bullets: [2, 3, 4, 5], numbered: [3, 4, 5] };
/* How often each pair of capabilities comes up. */
const PAIRS = [
  ['count', 'marks', 12], ['count', 'words', 13], ['count', 'ban', 18], ['markup', 'words', 10],
  ['frame', 'marks', 15], ['frame', 'ban', 9], ['marks', 'ban', 12], ['words', 'ban', 12],
];
const OPENERS = ['Write about', 'Tell me about', 'Please write about', 'Write a short text about', 'I would like to read something about'];
const MORE = [
  (phrase) => `Good. Now write it again with one more thing: ${phrase} All that I asked before still holds.`,
  (phrase) => `Thank you. One thing more, beside what I asked at first: ${phrase} Write all of it again.`,
  (phrase) => `Please change it. ${phrase} Keep to what I asked before.`,
];
const AGAIN = [
  'Good. Now say it in other words. Keep to everything that I asked.', 'Please say it in other words. Keep to what I asked before.',
  'Thank you. Can you put it differently? All that I asked before still holds.',
];

const wordsOf = (text) => text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
/* Without list marks, abbreviations and dots in mid-sentence, split where a sentence ends. */
const sentencesOf = (text) =>
  text
    .replace(/^\s*(?:\d+[.)]|[-*•])\s+/gm, '').replace(/\b(mr|mrs|ms|dr|st|vs|e\.g|i\.e|p\.s)\./gi, '$1').replace(/(?:\.{2,}|…)(?=\s+[a-z])/g, '')
    .split(/[.!?…]+["'”’)\]*_]*(?:\s+|$)/)
    .filter((piece) => /[a-z0-9]/i.test(piece));
const paragraphsOf = (text, strict) =>
  text.split(strict || /\n\s*\n/.test(text) ? /\n\s*\n/ : /\n/).filter((part) => /[a-z]/i.test(part));
const bulletsOf = (text) => text.match(/^[ \t]*-[ \t]*[^\s-]/gm) ?? [];
function numberedOf(text) {
  const marks = [...text.matchAll(/^[ \t*]*(\d+)[.)][ \t*]+\S/gm)].map((found) => Number(found[1]));
  return marks.every((mark, at) => mark === at + 1) ? marks : [];
}
function begins(text, { words: [words] }) {
  const head = text.replace(/^[\s"“'*_#]+/, '').toLowerCase();
  return Number(head.startsWith(words.toLowerCase()) && !/^[a-z0-9]/.test(head.slice(words.length)));
}
function ends(text, { words: [words] }) {
  const tail = text.toLowerCase().replace(/\s+/g, ' ').replace(/[^a-z0-9]+$/, '');
  return Number(tail.endsWith(words) && !/[a-z0-9]$/.test(tail.slice(0, -words.length)));
}
const near = (list, n) => (list.length === n ? 1 : list.length === 0 ? 0 : ([0, 0.5, 0.25][Math.abs(list.length - n)] ?? 0));
const holds = (text, { words }) => words.filter((word) => wordsOf(text).includes(word)).length / words.length;
const has = (mark) => (text) => Number(mark.test(text));
const lacks = (mark) => (text) => Number(!mark.test(text));

/* By kind: how users word it, how far a text meets it (1: it does), what a twin demands instead, a sentence that meets it. */
const DEMANDS = {
  sentences: [['Use exactly {n} sentences.', 'It must have exactly {n} sentences.'], (text, { n }) => near(sentencesOf(text), n), 'sentences'],
  paragraphs: [['Use exactly {n} short paragraphs.', 'Write exactly {n} paragraphs with an empty line between them.'],
    (text, { n, phrase }) => near(paragraphsOf(text, phrase.includes('empty line')), n), 'paragraphs'],
  bullets: [['It must have exactly {n} bullet points, each on a line that begins with "-".'], (text, { n }) => near(bulletsOf(text), n), 'bullets'],
  numbered: [['Write it as a numbered list of exactly {n} items.'], (text, { n }) => near(numberedOf(text), n), 'numbered'],
  question: [['Ask at least one question in it.', 'There must be a question in it.'], has(/[a-z0-9][^\s\w]*\?/i), 'no_question',
    'Who in this old town could forget {t} on such an afternoon?'],
  exclamation: [['There must be an exclamation mark in it.', 'Use at least one exclamation mark.'], has(/!/), 'no_exclamation',
    'What fun {t} can bring on such a slow afternoon!'],
  digits: [['Include at least one number, written in digits.'], has(/\d/), 'no_digits', 'My aunt counted 27 good days near {t} on one trip.'],
  word: [['Include the word "{a}".', 'The word "{a}" must appear in it.'], holds, 'no_word', 'The word {a} comes to mind near {t} at noon.'],
  both: [['Use both "{a}" and "{b}" in it.'], holds, 'no_word', 'The words {a} and {b} come to mind near {t} at noon.'],
  no_word: [['The word "{a}" must not appear.'], (text, rule) => 1 - holds(text, rule), 'word'],
  no_letter: [['Do not use the letter "{a}".'], (text, { words }) => Number(!text.toLowerCase().includes(words[0]))],
  no_comma: [['Do not use any commas.', 'Write without commas.'], lacks(/,/)],
  no_question: [['Do not use any question marks.', 'Write without question marks.'], lacks(/\?/)],
  no_exclamation: [['Do not use any exclamation marks.', 'Write without exclamation marks.'], lacks(/!/)],
  no_digits: [['Do not use any digits.', 'Write without digits.'], lacks(/\d/)],
  bold: [['Mark at least one word in bold, like **this**.'], has(/\*\*[^\s*][^*\n]*\*\*/), null, 'This is a **great** story about {t}.'],
  placeholder: [['Use', 'Leave'].map((verb) => `${verb} at least one placeholder in square brackets, such as [{a}].`),
    has(/\[[a-z][^\]\n]*\]/i), null, 'People in [town] sing about {t} all day.'],
  quotes: [['Put your whole answer in double quotation marks.'], has(/^["“][\s\S]+["”]$/)],
  title: [['Put a title in double angle brackets, as in <<title>>, before the text.'], has(/^[\s*#]*<<[^<>\n]+>>[\s\S]*\w/)],
  begin: [['Begin with "{a}".', 'It must begin with "{a}".'], begins, 'begin', '{a} somebody told me of {t}.'],
  end: [['End with the words "{a}".'], ends, 'end', 'The story about {t} goes on {a}.'],
  postscript: [['Add a postscript at the end that begins with "P.S."'], has(/\S\s+[*_"“]*p\.\s?s\.[^\n]*[a-z]{2}[^\n]*$/i), 'end'],
};
function fill(pattern, { n, words }, topic) {
  const values = { '{n}': ['no', 'one', 'two', 'three', 'four', 'five'][n], '{a}': words[0], '{b}': words[1], '{t}': topic };
  return pattern.replace(/\{[nabt]\}/g, (name) => values[name]).replace('one sentences', 'one sentence');
}

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
  const below = randomOf(Math.floor(seed / 2)); // both of a pair draw the same: special and twin are made in both
  const draw = (from) => from[below(from.length)];
  const drawTwo = (from, at = below(from.length)) => [from[at], from[(at + 1 + below(from.length - 1)) % from.length]];
  const [topic, ...related] = draw(TOPICS).split('|');
  const makers = {
    count: () => {
      const kind = draw(['sentences', 'sentences', 'paragraphs', 'bullets', 'numbered']);
      const [n, other] = drawTwo(fewer ? RANGES[kind].slice(0, 2) : RANGES[kind]);
      return { kind, words: [], n, instead: { n: other } };
    },
    marks: (first) => ({ kind: draw(['question', 'exclamation', first?.kind === 'numbered' ? 'question' : 'digits']), words: [] }),
    words: () => {
      const [kind, words] = [draw(['word', 'word', 'both']), drawTwo(WORDS)];
      return kind === 'both' && !fewer ? { kind, words } : { kind: 'word', words: words.slice(0, 1) };
    },
    ban: (first) => {
      const kind = draw(['no_word', 'no_letter', 'no_comma']);
      const free = LETTERS.filter((letter) => !`${topic} ${first.words.join(' ')}`.toLowerCase().includes(letter));
      const [word, letter] = [draw(COMMON), draw(fewer ? free.slice(0, 1) : free)];
      return { kind, words: kind === 'no_word' ? [word] : kind === 'no_letter' ? [letter] : [] };
    },
    markup: () => ({ kind: draw(['bold', 'placeholder', 'quotes', 'title']), words: [draw(['place', 'city', 'time', 'price'])] }),
    frame: () => {
      const kind = draw(['begin', 'begin', 'end', 'end', 'postscript']);
      const [words, other] = drawTwo(kind === 'begin' ? BEGINNINGS : ENDINGS);
      return { kind, words: kind === 'postscript' ? [] : [words], instead: { words: [other] } };
    },
  };
  let at = below(PAIRS.reduce((sum, [, , weight]) => sum + weight, 0));
  const [one, two] = PAIRS.find(([, , weight]) => (at -= weight) < 0);
  const phrased = (rule) => ({ ...rule, phrase: fill(draw(DEMANDS[rule.kind][0]), rule, topic) });
  const first = makers[one]();
  const rules = [first, makers[two](first)].map(phrased);
  if (below(2)) rules.reverse();
  const turned = draw(rules.filter(({ kind }) => DEMANDS[kind][2]));
  const single = phrased({ kind: DEMANDS[turned.kind][2], words: turned.words.slice(0, 1), ...turned.instead });
  const [opener, more, again, mood] = [draw(OPENERS), draw(MORE)(rules[1].phrase), draw(AGAIN), below(7)];
  const twice = below(5) === 0 && !fewer;
  const [combined, lone] = twice ? [[[rules[0]], rules], [[single], [single]]] : [[rules], [[single]]];
  const [turns, others] = special ? [combined, lone] : [lone, combined]; // the demands on each text; those in the other of the pair
  const request = [`${fewer ? OPENERS[0] : opener} ${topic}.`, ...turns[0].map(({ phrase }) => phrase)].join(' ');
  const later = twice ? (special ? more : again) : null;
  return { special, topic, related: [topic, ...related], request, later, turns, others, mood, texts: [], idle: 0, done: false };
}
export const make = (seed) => instance(seed, false);
/* One message only, one word, small numbers, a rare letter. */
export const easier = (seed) => instance(seed, true);

export const start = ({ request }) => [{ role: 'system', content: policy }, { role: 'user', content: request }];

/* The user takes each text as it is; what is no text leads nowhere. */
export function step(before, message) {
  const state = JSON.parse(JSON.stringify(before)); // never change what was handed in
  const calls = Array.isArray(message.toolCalls) ? message.toolCalls : [];
  const said = typeof message.content === 'string' ? message.content.replace(/\r\n?/g, '\n').trim() : '';
  const text = calls.length === 0 && said !== '';
  if (text && !state.done) state.texts.push(said.slice(0, 6000));
  if (!text) state.idle += 1;
  state.done = state.done || state.idle > 1 || state.texts.length >= state.turns.length;
  const named = ({ name }) => String(name).replace(/[^\w.-]/g, '').slice(0, 80);
  const errors = calls.map((call) => ({ role: 'tool', toolCallId: call.id, content: `Error: there is no tool "${named(call)}".` }));
  const next = text ? (state.done ? 'Thank you.' : state.later) : state.done ? 'Goodbye.' : 'I do not see a text.';
  return { state, done: state.done, messages: calls.length > 0 ? errors : [{ role: 'user', content: next }] };
}

/* On the subject, in words of its own, no copy of the request, and not the same again and again. */
function isAnswer(text, { related, request, later }) {
  const [words, asked] = [wordsOf(text), wordsOf(`${request} ${later ?? ''}`)];
  const different = [...new Set(words)];
  const own = different.filter((word) => !asked.includes(word)).length;
  const source = ` ${asked.join(' ')} `;
  const copied = words.some((_, at) => at + 6 <= words.length && source.includes(` ${words.slice(at, at + 6).join(' ')} `));
  const named = different.some((word) => related.some((each) => word === each || word === `${each}s` || word === `${each}es`));
  const varied = different.length * 2 >= Math.min(words.length, 120);
  return words.length >= 8 && own >= 5 && own * 3 >= different.length && !copied && named && varied;
}

export function reward(state) {
  const { special, turns, texts, done } = state;
  const same = (a, b) => wordsOf(a).join(' ') === wordsOf(b).join(' ');
  let [answers, held, sum] = [0, 0, 0];
  turns.forEach((rules, at) => {
    sum += rules.length;
    const text = texts[at] ?? '';
    if (!isAnswer(text, state) || (!special && at > 0 && same(text, texts[0]))) return; // a twin's second text: in other words
    answers += 1;
    for (const rule of rules) held += DEMANDS[rule.kind][1](text, rule);
  });
  const right = done && answers === turns.length && held === sum;
  return {
    reward: right ? 1 : (0.05 * answers) / turns.length + (0.25 * held) / sum,
    branch: special ? 'two_demands' : 'one_demand',
    breakdown: { answers: answers / turns.length, demands: held / sum, texts: texts.length, done: Number(done) },
  };
}

const told = (rules) => rules.filter(({ kind }) => ['word', 'both', 'begin', 'end'].includes(kind)).flatMap(({ words }) => words);
export const reference = ({ turns }) => ({ actions: [], tell: told(turns[turns.length - 1]) });

/* Sentences free of all that is ever banned; USUAL holds all of it, and stands wherever nothing is banned. */
const USUAL = ', and very often they also amaze kids with many jokes and visits';
const LEADS = ['{t} can please a whole town on a slow afternoon.', 'Nobody in our street is tired of {t} these days.'];
const FILLERS = [
  'Old neighbours tell long stories about it.', 'Children run home to hear more.', 'The rest is rain and patience.',
  'Nothing else costs so little.', 'My sister still laughs at that.', 'Some days end there in silence.', 'Our teacher once said as much.',
];
function compose({ topic }, rules, variant) {
  const asked = (...kinds) => rules.some(({ kind }) => kinds.includes(kind));
  const said = (fits) => rules.filter(({ kind }) => DEMANDS[kind][3] && fits(kind)).map((rule) => fill(DEMANDS[rule.kind][3], rule, topic));
  const head = [...said((kind) => kind === 'begin'), ...said((kind) => kind !== 'begin' && kind !== 'end')];
  const tail = said((kind) => kind === 'end');
  if (head.length + tail.length === 0) head.push(fill(LEADS[variant % 2], { words: [] }, topic));
  const length = (rules.find(({ n }) => n)?.n ?? 5) - head.length - tail.length;
  const lines = [...head, ...Array.from({ length }, (_, at) => FILLERS[(at + variant * 3) % FILLERS.length]), ...tail];
  lines[0] = lines[0][0].toUpperCase() + lines[0].slice(1);
  if (!rules.some(({ kind }) => kind.startsWith('no_'))) lines[0] = `${lines[0].slice(0, -1)}${USUAL}${lines[0].slice(-1)}`;
  const mark = (at) => (asked('bullets') ? '- ' : asked('numbered') ? `${at + 1}. ` : '');
  const text = lines.map((line, at) => mark(at) + line).join(asked('paragraphs') ? '\n\n' : asked('bullets', 'numbered') ? '\n' : ' ');
  const whole = (asked('title') ? `<<Notes on ${topic}>>\n\n` : '') + text + (asked('postscript') ? '\n\nP.S. Please tell me more soon.' : '');
  return asked('quotes') ? `"${whole}"` : whole;
}
const script = (state, turns) => turns.map((rules, at) => ({ role: 'assistant', content: compose(state, rules, state.mood + at) }));

export const solve = (seed, state = make(seed)) => script(state, state.turns);
export const shortcuts = (seed, state = make(seed)) => ({
  'two demands always': script(state, state.special ? state.turns : state.others),
  'one demand always': script(state, state.special ? state.others : state.turns),
  'only the first demand': script(state, state.turns.map((rules) => rules.slice(0, 1))),
  'only the last demand': script(state, state.turns.map((rules) => rules.slice(-1))),
  'plain text on the subject': script(state, state.turns.map(() => [])),
});
export const hint = () =>
  'Read the request to its end and count what it demands of the text: it may be one thing or two, and all of it must hold in the same text. Keep the text short, name the subject, and hold it against each demand before you send it. If you are asked to write it again, what was asked before still holds.';
// Rationale: In the attempts the agent meets one demand and loses the other: it works the wanted word in but writes far more than the two sentences, it puts the title at the top and then goes on in its usual style, or it is asked for bullet points and a question and writes plain prose with neither. The instances here make the same kinds of two-demand requests in the same phrases and pay fully only when one text meets both, while the twins pay for following exactly the one demand that is really made.
