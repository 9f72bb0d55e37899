/**
 * The kinds of instructions, about words and lengths, about layout, and about case, punctuation and markup; and which
 * of them go together.
 */
import type { Random } from '../in-process';
import {
  bulletsOf,
  isFinished,
  linesOf,
  numbersOf,
  paragraphsOf,
  plainWords,
  sentencesOf,
  stem,
  wordsOf,
  type Topic,
} from './topics';

/** What a task's instructions ask for; each field belongs to one kind, or to kinds of which a task has at most one. */
export interface Demands {
  include?: string[];
  twice?: string;
  avoid?: string;
  letter?: string;
  least?: number;
  most?: number;
  sentences?: number;
  paragraphs?: number;
  bullets?: number;
  numbered?: number;
  capitals?: number;
  start?: string;
  end?: string;
  /** What is asked for in the same way each time. */
  flags?: string[];
}

export interface InstructionKind {
  name: string;
  /** How often it is drawn, beside the others. */
  weight: number;
  draw(rng: Random, topic: Topic): Demands;
  /** The ways to say it. */
  say(demands: Demands): string[];
  holds(text: string, demands: Demands): boolean;
}

/** What is asked for in the same way each time. */
const flag = (name: string, weight: number, ways: string[], holds: (text: string) => boolean): InstructionKind => ({
  name,
  weight,
  draw: () => ({ flags: [name] }),
  say: () => ways,
  holds,
});

/** What is asked for with a value, which is the field of that name in the demands. */
function valued<Field extends keyof Demands>(
  name: string,
  weight: number,
  field: Field,
  o: {
    draw(rng: Random, topic: Topic): Demands[Field];
    say(value: NonNullable<Demands[Field]>): string[];
    holds(text: string, value: NonNullable<Demands[Field]>): boolean;
  },
): InstructionKind {
  return {
    name,
    weight,
    draw: (rng, topic) => ({ [field]: o.draw(rng, topic) }),
    say: (demands) => o.say(demands[field]!),
    holds: (text, demands) => o.holds(text, demands[field]!),
  };
}

const NUMBERS = ['zero', 'one', 'two', 'three', 'four', 'five'];
const counted = (n: number, noun: string): string => `${NUMBERS[n]} ${noun}${n === 1 ? '' : 's'}`;

/** Words that fit a text about anything. */
const WANTED = (
  'river window yellow morning quiet simple travel music happy together silver winter friend bright story history ' +
  'energy color dream paper journey secret future kitchen gentle careful mountain surprise number money'
).split(' ');
const UNWANTED = 'very people also many can will make most just like good world'.split(' ');
const LETTERS = 'j q x z'.split(' ');
const BEGINNINGS = 'Today/Every day/In my opinion/Long ago/I believe/Imagine/Let me tell you/Most of us'.split('/');
const ENDINGS = 'the end/thank you for reading/see you soon/and that is all/have a nice day/what a world'.split('/');

/** The word as it is, in any case; `rivers` is not `river`. */
const timesIn = (text: string, word: string): number => plainWords(text).filter((one) => one === word).length;
const hasAll = (text: string, words: readonly string[]): boolean => words.every((word) => timesIn(text, word) > 0);
const bare = (text = ''): string => plainWords(text).join(' ');

/** Not what a text about the topic has anyhow. */
function wantedFor({ own, related }: Topic): string[] {
  const known = new Set([...own, ...related].map(stem));
  return WANTED.filter((word) => !known.has(stem(word)));
}

const TITLE = /^<<([^<>\n]+)>>/;
const POSTSCRIPT = /^p\.\s?s\.?[:,]?\s*(.+)/i;
const CLOSERS = /["'”’)\]*_\s]+$/u;

/** `NASA` and `BEES`, but not `I` and `A`. */
const isCapital = (word: string): boolean => /\p{Lu}{2}/u.test(word) && !/\p{Ll}/u.test(word);

/** In the order in which they are drawn: another order is other tasks. */
export const KINDS: readonly InstructionKind[] = [
  valued('include_word', 9, 'include', {
    draw: (rng, topic) => [rng.pick(wantedFor(topic))],
    say: ([word]) => [
      `Include the word "${word}".`,
      `Use the word "${word}" somewhere.`,
      `The word "${word}" must appear in it.`,
    ],
    holds: hasAll,
  }),
  valued('include_two_words', 1, 'include', {
    draw: (rng, topic) => rng.sample(wantedFor(topic), 2),
    say: ([one, other]) => [`Include the words "${one}" and "${other}".`, `Use both "${one}" and "${other}" in it.`],
    holds: hasAll,
  }),
  valued('word_twice', 2, 'twice', {
    draw: (rng, topic) => rng.pick(wantedFor(topic)),
    say: (word) => [`Use the word "${word}" at least twice.`, `The word "${word}" must appear two times or more.`],
    holds: (text, word) => timesIn(text, word) >= 2,
  }),
  valued('avoid_word', 5, 'avoid', {
    draw: (rng) => rng.pick(UNWANTED),
    say: (word) => [`Do not use the word "${word}".`, `The word "${word}" must not appear.`],
    holds: (text, word) => timesIn(text, word) === 0,
  }),
  valued('avoid_letter', 5, 'letter', {
    draw: (rng, { own }) => rng.pick(LETTERS.filter((letter) => !own.some((word) => word.includes(letter)))),
    say: (letter) => [`Do not use the letter "${letter}".`, `Avoid every word that has the letter "${letter}".`],
    holds: (text, letter) => !text.toLowerCase().includes(letter),
  }),
  valued('most_words', 5, 'most', {
    draw: (rng) => rng.pick([10, 15, 20, 30, 40, 50]),
    say: (most) => [`Use at most ${most} words.`, `It must not be longer than ${most} words.`],
    holds: (text, most) => wordsOf(text).length <= most,
  }),
  valued('least_words', 6, 'least', {
    draw: (rng) => rng.pick([15, 20, 25, 30, 40]),
    say: (least) => [`Use at least ${least} words.`, `Write ${least} words or more.`],
    holds: (text, least) => wordsOf(text).length >= least,
  }),
  valued('start_with', 4, 'start', {
    draw: (rng) => rng.pick(BEGINNINGS),
    say: (start) => [`Begin with "${start}".`, `It must begin with "${start}".`],
    holds: (text, start) => `${bare(linesOf(text)[0])} `.startsWith(`${bare(start)} `),
  }),
  valued('end_with', 1, 'end', {
    draw: (rng) => rng.pick(ENDINGS),
    say: (end) => [`End with the words "${end}".`, `The last words must be "${end}".`],
    holds: (text, end) => ` ${bare(linesOf(text).at(-1))}`.endsWith(` ${bare(end)}`),
  }),
  flag('no_commas', 6, ['Do not use any commas.', 'Write without commas.'], (text) => !/[,，、]/.test(text)),
  flag(
    'with_number',
    4,
    ['Include at least one number, written in digits.', 'Use digits for at least one number in it.'],
    // The number before an item of a list is none.
    (text) => linesOf(text).some((line) => /\d/.test(line.replace(/^\d+[.)]\s/, ''))),
  ),

  valued('sentences', 4, 'sentences', {
    draw: (rng) => rng.pick([1, 2, 2, 3, 3]),
    say: (n) => [`Use exactly ${counted(n, 'sentence')}.`, `It must have exactly ${counted(n, 'sentence')}.`],
    // One that is cut off is a sentence, but no whole one.
    holds: (text, n) => sentencesOf(text).length === n && isFinished(text),
  }),
  valued('paragraphs', 2, 'paragraphs', {
    draw: () => 2,
    say: () => ['Write exactly two paragraphs with an empty line between them.', 'Use exactly two short paragraphs.'],
    holds: (text, n) => paragraphsOf(text).length === n,
  }),
  valued('bullets', 4, 'bullets', {
    draw: (rng) => rng.pick([2, 3, 3, 4]),
    say: (n) => [
      `Use exactly ${counted(n, 'bullet point')}.`,
      `It must have exactly ${counted(n, 'bullet point')}, each on a line that begins with "-".`,
    ],
    holds: (text, n) => bulletsOf(text).length === n,
  }),
  valued('numbered_list', 3, 'numbered', {
    draw: (rng) => rng.pick([2, 3, 3, 4]),
    say: (n) => [
      `Write it as a numbered list of exactly ${counted(n, 'item')}.`,
      `Use a list of exactly ${counted(n, 'item')}, numbered from 1 to ${n}.`,
    ],
    holds: (text, n) => numbersOf(text).join() === Array.from({ length: n }, (_, at) => at + 1).join(),
  }),
  flag(
    'title',
    5,
    [
      'Start with a title in double angle brackets, such as <<title>>.',
      'Put a title in double angle brackets, as in <<title>>, before the text.',
    ],
    (text) => wordsOf(TITLE.exec(text.trim())?.[1] ?? '').length > 0,
  ),
  flag(
    'heading',
    2,
    ['Begin with a heading line that starts with "#".', 'Put a heading above it: a line that starts with "#".'],
    (text) => /^#{1,6}[^\S\n]*[^\s#]/.test(text.trim()) && linesOf(text).length > 1,
  ),
  flag(
    'quoted',
    1,
    ['Put your whole answer in double quotation marks.', 'Wrap all of it in double quotation marks.'],
    (text) => wordsOf(text).length > 0 && /^["“][^]*["”]$/.test(text.trim()),
  ),
  flag(
    'postscript',
    1,
    ['Add a postscript at the end that begins with "P.S."', 'Close with a last line that begins with "P.S."'],
    (text) => wordsOf(POSTSCRIPT.exec(linesOf(text).at(-1) ?? '')?.[1] ?? '').length > 0,
  ),

  flag(
    'lowercase',
    1,
    ['Use only lowercase letters.', 'Write everything in lowercase letters, without capitals.'],
    (text) => /\p{Ll}/u.test(text) && !/\p{Lu}/u.test(text),
  ),
  flag(
    'uppercase',
    1,
    ['Use only capital letters.', 'Write everything in capital letters.'],
    (text) => /\p{Lu}/u.test(text) && !/\p{Ll}/u.test(text),
  ),
  valued('capital_words', 2, 'capitals', {
    draw: (rng) => rng.pick([1, 1, 2]),
    say: (n) => [
      `Write at least ${counted(n, 'word')} in all capital letters.`,
      `At least ${counted(n, 'word')} must be in CAPITALS.`,
    ],
    holds: (text, n) => wordsOf(text).filter(isCapital).length >= n,
  }),
  flag('question', 2, ['Ask at least one question in it.', 'There must be a question in it.'], (text) =>
    /[^\s?]\s?\?/.test(text),
  ),
  flag('end_question', 2, ['End with a question.', 'The last sentence must be a question.'], (text) =>
    text.replace(CLOSERS, '').endsWith('?'),
  ),
  flag('exclamation', 3, ['Use at least one exclamation mark.', 'There must be an exclamation mark in it.'], (text) =>
    /[^\s!]\s?!/.test(text),
  ),
  flag('parentheses', 1, ['Put something in parentheses.', 'Use parentheses at least once.'], (text) =>
    /\([^()]*[\p{L}\d][^()]*\)/u.test(text),
  ),
  flag(
    'bold',
    3,
    [
      'Put at least one word in bold with two asterisks on each side, like **this**.',
      'Mark at least one word in bold, like **this**.',
    ],
    (text) => /\*\*[^*\n]*[\p{L}\d][^*\n]*\*\*/u.test(text),
  ),
  flag(
    'placeholder',
    4,
    [
      'Leave at least one placeholder in square brackets, such as [name].',
      'Use at least one placeholder in square brackets, such as [date].',
    ],
    (text) => /\[[^[\]\n]*\p{L}[^[\]\n]*\]/u.test(text),
  ),
];

export function kindNamed(name: string): InstructionKind {
  const kind = KINDS.find((one) => one.name === name);
  if (kind) return kind;
  throw new Error(`instructions: there is no kind "${name}": it is one of ${KINDS.map((one) => one.name).join()}`);
}

const SHAPES = ['sentences', 'paragraphs', 'bullets', 'numbered_list'];
const FIRST_PARTS = ['title', 'heading', 'start_with', 'quoted'];
const LAST_PARTS = ['end_with', 'end_question', 'postscript', 'quoted'];

/**
 * At most one of each row: they ask for the same part of the text, or say of it what can't both be. Of those that go
 * together there is a text of about fifty words that keeps them all, as the scripted writer of the tests shows.
 */
export const EXCLUSIVE: string[][] = [
  SHAPES,
  FIRST_PARTS,
  LAST_PARTS,
  ['lowercase', 'uppercase', 'capital_words'],
  ['least_words', 'most_words'],
  ['include_word', 'include_two_words', 'word_twice'],
  ['question', 'end_question', 'exclamation'],
  // What has capitals by itself.
  ...['start_with', 'postscript'].map((kind) => [kind, 'lowercase']),
  ...['start_with', 'end_with', 'placeholder', 'include_two_words', 'word_twice'].map((kind) => [kind, 'uppercase']),
  // Is it a sentence, a paragraph? Does it begin before the first item's mark?
  ...['title', 'heading', 'postscript', 'quoted'].flatMap((kind) => [
    [kind, 'sentences'],
    [kind, 'paragraphs'],
  ]),
  ...['bullets', 'numbered_list'].flatMap((kind) => [
    [kind, 'quoted'],
    [kind, 'start_with'],
  ]),
  // What takes room.
  ...['paragraphs', 'bullets', 'numbered_list', 'postscript', 'include_two_words', 'word_twice'].map((kind) => [
    kind,
    'most_words',
  ]),
  ['uppercase', 'least_words'],
];

const together = (one: string, other: string): boolean =>
  one !== other && !EXCLUSIVE.some((row) => row.includes(one) && row.includes(other));

export const merged = (all: readonly Demands[]): Demands => ({
  ...Object.assign({}, ...all),
  flags: all.flatMap(({ flags = [] }) => flags),
});

/** Words that must be in a text don't hold what must not, and there is room for as many as are asked for. */
function isSound({
  include = [],
  twice,
  start,
  end,
  avoid,
  letter,
  least = 0,
  most = Infinity,
  sentences,
  flags = [],
}: Demands) {
  const wanted = plainWords([...include, twice, twice, start, end].join(' '));
  const clean = wanted.every((word) => word !== avoid && !(letter !== undefined && word.includes(letter)));
  const [fewest, many] = sentences === undefined ? [1, Infinity] : [sentences, 15 * sentences];
  return clean && least <= many && most >= wanted.length + 5 * fewest + 2 * flags.length;
}

/** Whether a text can keep all of these. */
export function goTogether(instructions: readonly { kind: string; demands: Demands }[]): boolean {
  const pairs = instructions.flatMap((one, n) =>
    instructions.slice(n + 1).map((other) => [one.kind, other.kind] as const),
  );
  return pairs.every(([one, other]) => together(one, other)) && isSound(merged(instructions.map((i) => i.demands)));
}
