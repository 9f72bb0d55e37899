/** The kinds of instructions: about words and lengths, about layout, and about case, punctuation and markup. */
import type { Random } from '../shop/random';
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
} from './text';
import type { Topic } from './topics';

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
  draw(o: { rng: Random; topic: Topic }): Demands;
  say(demands: Demands): string[];
  holds(text: string, demands: Demands): boolean;
}

const NUMBERS = ['zero', 'one', 'two', 'three', 'four', 'five'];
const spelled = (n: number): string => NUMBERS[n] ?? String(n);

function plainKind(o: {
  name: string;
  weight: number;
  say: string[];
  holds: (text: string) => boolean;
}): InstructionKind {
  return { ...o, draw: () => ({ flags: [o.name] }), say: () => o.say };
}

/** Words that fit a text about anything. */
const WANTED = (
  'river window yellow morning quiet simple travel music happy together silver winter friend bright story history ' +
  'energy color dream paper journey secret future kitchen gentle careful mountain surprise number money'
).split(' ');
const UNWANTED = 'very people also many can will make most just like good world'.split(' ');
const LETTERS = 'j q x z'.split(' ');

const BEGINNINGS = [
  'Today',
  'Every day',
  'In my opinion',
  'Long ago',
  'I believe',
  'Imagine',
  'Let me tell you',
  'Most of us',
];
const ENDINGS = [
  'the end',
  'thank you for reading',
  'see you soon',
  'and that is all',
  'have a nice day',
  'what a world',
];

/** The word as it is, in any case; `rivers` is not `river`. */
const timesIn = (text: string, word: string): number => plainWords(text).filter((one) => one === word).length;

/** Not what a text about the topic has anyhow. */
const wantedFor = ({ own, related }: Topic): string[] => {
  const known = new Set([...own, ...related].map(stem));
  return WANTED.filter((word) => !known.has(stem(word)));
};

const bare = (text: string): string => plainWords(text).join(' ');

export const wordKinds: InstructionKind[] = [
  {
    name: 'include_word',
    weight: 9,
    draw: ({ rng, topic }) => ({ include: [rng.pick(wantedFor(topic))] }),
    say: ({ include = [] }) => [
      `Include the word "${include[0]}".`,
      `Use the word "${include[0]}" somewhere.`,
      `The word "${include[0]}" must appear in it.`,
    ],
    holds: (text, { include = [] }) => include.every((word) => timesIn(text, word) > 0),
  },
  {
    name: 'include_two_words',
    weight: 1,
    draw: ({ rng, topic }) => ({ include: rng.sample(wantedFor(topic), 2) }),
    say: ({ include = [] }) => [
      `Include the words "${include[0]}" and "${include[1]}".`,
      `Use both "${include[0]}" and "${include[1]}" in it.`,
    ],
    holds: (text, { include = [] }) => include.every((word) => timesIn(text, word) > 0),
  },
  {
    name: 'word_twice',
    weight: 2,
    draw: ({ rng, topic }) => ({ twice: rng.pick(wantedFor(topic)) }),
    say: ({ twice }) => [
      `Use the word "${twice}" at least twice.`,
      `The word "${twice}" must appear two times or more.`,
    ],
    holds: (text, { twice = '' }) => timesIn(text, twice) >= 2,
  },
  {
    name: 'avoid_word',
    weight: 5,
    draw: ({ rng }) => ({ avoid: rng.pick(UNWANTED) }),
    say: ({ avoid }) => [`Do not use the word "${avoid}".`, `The word "${avoid}" must not appear.`],
    holds: (text, { avoid = '' }) => timesIn(text, avoid) === 0,
  },
  {
    name: 'avoid_letter',
    weight: 5,
    draw: ({ rng, topic }) => ({
      letter: rng.pick(LETTERS.filter((letter) => !topic.own.some((word) => word.includes(letter)))),
    }),
    say: ({ letter }) => [`Do not use the letter "${letter}".`, `Avoid every word that has the letter "${letter}".`],
    holds: (text, { letter = '' }) => !text.toLowerCase().includes(letter),
  },
  {
    name: 'most_words',
    weight: 5,
    draw: ({ rng }) => ({ most: rng.pick([10, 15, 20, 30, 40, 50]) }),
    say: ({ most }) => [`Use at most ${most} words.`, `It must not be longer than ${most} words.`],
    holds: (text, { most = 0 }) => wordsOf(text).length <= most,
  },
  {
    name: 'least_words',
    weight: 6,
    draw: ({ rng }) => ({ least: rng.pick([15, 20, 25, 30, 40]) }),
    say: ({ least }) => [`Use at least ${least} words.`, `Write ${least} words or more.`],
    holds: (text, { least = 0 }) => wordsOf(text).length >= least,
  },
  {
    name: 'start_with',
    weight: 4,
    draw: ({ rng }) => ({ start: rng.pick(BEGINNINGS) }),
    say: ({ start }) => [`Begin with "${start}".`, `It must begin with "${start}".`],
    holds: (text, { start = '' }) => `${bare(linesOf(text)[0] ?? '')} `.startsWith(`${bare(start)} `),
  },
  {
    name: 'end_with',
    weight: 1,
    draw: ({ rng }) => ({ end: rng.pick(ENDINGS) }),
    say: ({ end }) => [`End with the words "${end}".`, `The last words must be "${end}".`],
    holds: (text, { end = '' }) => ` ${bare(linesOf(text).at(-1) ?? '')}`.endsWith(` ${bare(end)}`),
  },
  plainKind({
    name: 'no_commas',
    weight: 6,
    say: ['Do not use any commas.', 'Write without commas.'],
    holds: (text) => !/[,，、]/.test(text),
  }),
  plainKind({
    name: 'with_number',
    weight: 4,
    say: ['Include at least one number, written in digits.', 'Use digits for at least one number in it.'],
    // The number before an item of a list is none.
    holds: (text) => linesOf(text).some((line) => /\d/.test(line.replace(/^\d+[.)]\s/, ''))),
  }),
];

const OPENING = ['"', '“'];
const CLOSING = ['"', '”'];
const TITLE = /^<<([^<>\n]+)>>/;
const POSTSCRIPT = /^p\.\s?s\.?[:,]?\s*(.+)/i;

export const layoutKinds: InstructionKind[] = [
  {
    name: 'sentences',
    weight: 4,
    draw: ({ rng }) => ({ sentences: rng.pick([1, 2, 2, 3, 3]) }),
    say: ({ sentences = 0 }) => {
      const many = `${spelled(sentences)} sentence${sentences === 1 ? '' : 's'}`;
      return [`Use exactly ${many}.`, `It must have exactly ${many}.`];
    },
    // One that is cut off is a sentence, but no whole one.
    holds: (text, { sentences = 0 }) => sentencesOf(text).length === sentences && isFinished(text),
  },
  {
    name: 'paragraphs',
    weight: 2,
    draw: () => ({ paragraphs: 2 }),
    say: () => ['Write exactly two paragraphs with an empty line between them.', 'Use exactly two short paragraphs.'],
    holds: (text, { paragraphs = 0 }) => paragraphsOf(text).length === paragraphs,
  },
  {
    name: 'bullets',
    weight: 4,
    draw: ({ rng }) => ({ bullets: rng.pick([2, 3, 3, 4]) }),
    say: ({ bullets = 0 }) => [
      `Use exactly ${spelled(bullets)} bullet points.`,
      `It must have exactly ${spelled(bullets)} bullet points, each on a line that begins with "-".`,
    ],
    holds: (text, { bullets = 0 }) => bulletsOf(text).length === bullets,
  },
  {
    name: 'numbered_list',
    weight: 3,
    draw: ({ rng }) => ({ numbered: rng.pick([2, 3, 3, 4]) }),
    say: ({ numbered = 0 }) => [
      `Write it as a numbered list of exactly ${spelled(numbered)} items.`,
      `Use a list of exactly ${spelled(numbered)} items, numbered from 1 to ${numbered}.`,
    ],
    holds: (text, { numbered = 0 }) =>
      numbersOf(text).join() === Array.from({ length: numbered }, (_, n) => n + 1).join(),
  },
  plainKind({
    name: 'title',
    weight: 5,
    say: [
      'Start with a title in double angle brackets, such as <<title>>.',
      'Put a title in double angle brackets, as in <<title>>, before the text.',
    ],
    holds: (text) => wordsOf(TITLE.exec(text.trim())?.[1] ?? '').length > 0 && linesOf(text).join(' ').length > 0,
  }),
  plainKind({
    name: 'heading',
    weight: 2,
    say: ['Begin with a heading line that starts with "#".', 'Put a heading above it: a line that starts with "#".'],
    holds: (text) => /^#{1,6}[^\S\n]*[^\s#]/.test(text.trim()) && linesOf(text).length > 1,
  }),
  plainKind({
    name: 'quoted',
    weight: 1,
    say: ['Put your whole answer in double quotation marks.', 'Wrap all of it in double quotation marks.'],
    holds: (text) => {
      const [first = '', last = ''] = [text.trim().at(0), text.trim().at(-1)];
      return wordsOf(text).length > 0 && OPENING.includes(first) && CLOSING.includes(last);
    },
  }),
  plainKind({
    name: 'postscript',
    weight: 1,
    say: ['Add a postscript at the end that begins with "P.S."', 'Close with a last line that begins with "P.S."'],
    holds: (text) => wordsOf(POSTSCRIPT.exec(linesOf(text).at(-1) ?? '')?.[1] ?? '').length > 0,
  }),
];

const CLOSERS = /["'”’)\]*_\s]+$/u;
const lastMark = (text: string): string => text.replace(CLOSERS, '').at(-1) ?? '';

/** `NASA` and `BEES`, but not `I` and `A`. */
const isCapital = (word: string): boolean => /\p{Lu}{2}/u.test(word) && !/\p{Ll}/u.test(word);

export const markKinds: InstructionKind[] = [
  plainKind({
    name: 'lowercase',
    weight: 1,
    say: ['Use only lowercase letters.', 'Write everything in lowercase letters, without capitals.'],
    holds: (text) => /\p{Ll}/u.test(text) && !/\p{Lu}/u.test(text),
  }),
  plainKind({
    name: 'uppercase',
    weight: 1,
    say: ['Use only capital letters.', 'Write everything in capital letters.'],
    holds: (text) => /\p{Lu}/u.test(text) && !/\p{Ll}/u.test(text),
  }),
  {
    name: 'capital_words',
    weight: 2,
    draw: ({ rng }) => ({ capitals: rng.pick([1, 1, 2]) }),
    say: ({ capitals = 1 }) => {
      const many = `${spelled(capitals)} word${capitals === 1 ? '' : 's'}`;
      return [`Write at least ${many} in all capital letters.`, `At least ${many} must be in CAPITALS.`];
    },
    holds: (text, { capitals = 0 }) => wordsOf(text).filter(isCapital).length >= capitals,
  },
  plainKind({
    name: 'question',
    weight: 2,
    say: ['Ask at least one question in it.', 'There must be a question in it.'],
    holds: (text) => /[^\s?]\s?\?/.test(text),
  }),
  plainKind({
    name: 'end_question',
    weight: 2,
    say: ['End with a question.', 'The last sentence must be a question.'],
    holds: (text) => lastMark(text) === '?',
  }),
  plainKind({
    name: 'exclamation',
    weight: 3,
    say: ['Use at least one exclamation mark.', 'There must be an exclamation mark in it.'],
    holds: (text) => /[^\s!]\s?!/.test(text),
  }),
  plainKind({
    name: 'parentheses',
    weight: 1,
    say: ['Put something in parentheses.', 'Use parentheses at least once.'],
    holds: (text) => /\([^()]*[\p{L}\d][^()]*\)/u.test(text),
  }),
  plainKind({
    name: 'bold',
    weight: 3,
    say: [
      'Put at least one word in bold with two asterisks on each side, like **this**.',
      'Mark at least one word in bold, like **this**.',
    ],
    holds: (text) => /\*\*[^*\n]*[\p{L}\d][^*\n]*\*\*/u.test(text),
  }),
  plainKind({
    name: 'placeholder',
    weight: 4,
    say: [
      'Leave at least one placeholder in square brackets, such as [name].',
      'Use at least one placeholder in square brackets, such as [date].',
    ],
    holds: (text) => /\[[^[\]\n]*\p{L}[^[\]\n]*\]/u.test(text),
  }),
];
