/**
 * Which instructions go together: of those that do there is a text of about fifty words that keeps them all, as the
 * scripted writer of the tests shows for every task.
 */
import type { Demands } from './kinds';
import { plainWords } from './text';

const SHAPES = ['sentences', 'paragraphs', 'bullets', 'numbered_list'];
const BEGINNINGS = ['title', 'heading', 'start_with', 'quoted'];
const ENDS = ['end_with', 'end_question', 'postscript', 'quoted'];

/** At most one of each row: they ask for the same part of the text, or say of it what can't both be. */
export const EXCLUSIVE: string[][] = [
  SHAPES,
  BEGINNINGS,
  ENDS,
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
