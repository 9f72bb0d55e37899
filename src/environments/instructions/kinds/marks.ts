/** Kinds about letters' case, punctuation and markup. */
import { wordsOf } from '../text';
import { plainKind, spelled, type InstructionKind } from './kind';

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
