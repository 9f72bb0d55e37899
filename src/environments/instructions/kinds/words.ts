/** Kinds about words, letters and lengths. */
import { linesOf, plainWords, stem, wordsOf } from '../text';
import type { Topic } from '../topics';
import { plainKind, type InstructionKind } from './kind';

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
