/** The checkers of the target `instructions`: each kind with texts that keep it and texts that don't. */
import { type Demands, EXCLUSIVE, goTogether, kindNamed, KINDS } from '../../../src/environments/instructions/kinds';
import {
  bulletsOf,
  numbersOf,
  paragraphsOf,
  plainWords,
  sentencesOf,
  stem,
  wordsOf,
  TOPICS,
} from '../../../src/environments/instructions/topics';
import { random } from '../../../src/environments/in-process';

type Case = [kind: string, demands: Demands, keep: string[], broken: string[]];

const cases: Case[] = [
  [
    'include_word',
    { include: ['river'] },
    ['By the River.', '- a **river**', 'It is the river’s bed and the river'],
    ['Rivers flow.', 'A riverbed', ''],
  ],
  ['include_two_words', { include: ['river', 'money'] }, ['Money, river'], ['River river', 'money only']],
  ['word_twice', { twice: 'quiet' }, ['Quiet, so quiet!', 'quiet quiet quiet'], ['quiet', 'quiet, unquiet']],
  ['avoid_word', { avoid: 'is' }, ['This island', "It's fine", ''], ['It IS.', 'is']],
  ['avoid_letter', { letter: 'k' }, ['A cat'], ['Kites', 'a book']],
  [
    'most_words',
    { most: 4 },
    ['One two three four.', "It's well-known, isn't it?", '- one\n- two'],
    ['One two three four five', '<<One two>> three four five'],
  ],
  ['least_words', { least: 3 }, ['one, two, three', '1 2 3'], ['well-known word', '... ! - ?']],
  [
    'start_with',
    { start: 'In my opinion' },
    ['In my opinion, yes', '"In my opinion" it is', '\n**In my opinion** it is'],
    ['Well, in my opinion', 'In my opinions', 'In my', ''],
  ],
  [
    'end_with',
    { end: 'the end' },
    ['It was good. The end.', 'so **the end**!', 'and the end'],
    ['The end. Really.', 'the endless', 'bathe end', ''],
  ],
  ['no_commas', {}, ['One; two.', ''], ['One, two', '1,000']],
  ['with_number', {}, ['In 2020 it rained', '1. of 3 things'], ['two of three', '1. one\n2. two']],
  [
    'sentences',
    { sentences: 2 },
    [
      'Bees fly. They hum!',
      'Mr. Smith has 3.5 bees, e.g. two. Is it so?',
      'he came at 5 p.m. and left. it rained.',
      '"Bees fly." They hum.',
      'Wait... what is it? A bee.',
      'Bees fly\n\nThey hum.',
      'See J. Smith. He knows.',
    ],
    ['Bees fly.', 'Bees fly. They hum', 'One. Two. Three.', '', '. .', 'It was I. You saw. It rained.'],
  ],
  ['sentences', { sentences: 1 }, ['Bees, wasps and ants fly.'], ['Bees fly and', 'Oh! Bees.']],
  [
    'paragraphs',
    { paragraphs: 2 },
    ['One.\n\nTwo.', 'One.\n  \n\n\nTwo.', 'One.\r\n\r\nTwo.'],
    ['One.\nTwo.', 'One.\n\nTwo.\n\nThree.', 'One.\n\n---'],
  ],
  [
    'bullets',
    { bullets: 2 },
    ['- one\n- two', 'Look:\n* one\n\n* two\nSo.', '• a\n  • b'],
    ['- one', '- a\n- b\n- c', '1. a\n2. b', 'a - b - c', '**a**\n**b**', '-\n-'],
  ],
  [
    'numbered_list',
    { numbered: 2 },
    ['1. one\n2. two', 'Look:\n1) a\n\n2) b'],
    ['1. a\n2. b\n3. c', '2. a\n1. b', '1. a', '1 and 2', '- a\n- b', '1. a\n1. b'],
  ],
  ['title', {}, ['<<Bees>>\nThey hum.', ' <<The bees>> hum'], ['Bees\n<<Bees>>', '<<>> bees', '<Bees>', '<<Bees']],
  ['heading', {}, ['# Bees\nThey hum.', '### Bees\n\nHum'], ['# Bees', 'Bees\n# Bees', '#\nBees']],
  ['quoted', {}, ['"Bees hum."', ' “Bees” and “more”\n'], ['"Bees" hum.', 'Bees', '"', '""']],
  [
    'postscript',
    {},
    ['Bees.\nP.S. More soon.', 'Bees.\n\nP.S.: more'],
    ['Bees. P.S. More', 'P.S. More\nBees.', 'Bees\nP.S.'],
  ],
  ['lowercase', {}, ['bees hum.', 'b2'], ['Bees hum.', '123', '']],
  ['uppercase', {}, ['BEES HUM!', 'A1'], ['BEES hum', '123', '']],
  ['capital_words', { capitals: 2 }, ['BEES and WASPS', 'THE BEES'], ['BEES only', 'I saw A bee', 'Bees Hum']],
  ['question', {}, ['Is it? Yes.', 'so ("why")?'], ['Is it.', '? yes', '']],
  ['end_question', {}, ['Bees hum. Do they?', '"Do they?"', 'Do they?**'], ['Do they? Yes.', '']],
  ['exclamation', {}, ['Bees! They hum.', '**Bees**!'], ['Bees.', '! bees', '']],
  ['parentheses', {}, ['Bees (wasps) hum', '(1)'], ['Bees () hum', '(bees', 'bees)', '[bees]']],
  ['bold', {}, ['The **bee** hums', '**The bee**'], ['*bee*', '** bees', '****', 'a ** b']],
  ['placeholder', {}, ['Dear [name],', 'on [the date]'], ['[]', '[1]', '(name)', '[name']],
];

test('every kind has texts that keep it and texts that break it', () => {
  expect([...new Set(cases.map(([kind]) => kind))].sort()).toEqual(KINDS.map(({ name }) => name).sort());
  expect(KINDS.length).toBeGreaterThanOrEqual(16);
});

test.each(cases)('%s %j', (kind, demands, keep, broken) => {
  const { holds } = kindNamed(kind);
  expect(keep.filter((text) => !holds(text, demands))).toEqual([]);
  expect(broken.filter((text) => holds(text, demands))).toEqual([]);
});

test('what is asked for is said, with its parameters, and in several ways', () => {
  for (const { name, draw, say } of KINDS) {
    const demands = draw(random(name), TOPICS.train[0]!);
    const ways = say(demands);
    expect(new Set(ways).size).toBeGreaterThan(1);
    for (const text of ways) expect(text).not.toMatch(/undefined|NaN|zero/);
    for (const value of [demands.include, demands.twice, demands.avoid, demands.start, demands.end].flat())
      if (value !== undefined) for (const text of ways) expect(text).toContain(`"${value}"`);
  }
});

describe('which go together', () => {
  const one = (kind: string, demands: Demands = {}) => ({ kind, demands });
  const start = one('start_with', { start: 'Imagine' });
  const sentences = (n: number) => one('sentences', { sentences: n });
  const least = one('least_words', { least: 40 });

  test('the table names kinds that there are', () => {
    const names = KINDS.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(EXCLUSIVE.flat()));
  });

  test.each([
    ['one with itself', false, [one('bold'), one('bold')]],
    ['one with what it excludes', false, [one('lowercase'), one('question'), one('uppercase')]],
    ['others', true, [one('lowercase'), one('question'), one('title')]],
    ['a word that holds the letter', false, [start, one('avoid_letter', { letter: 'g' })]],
    ['a word without the letter', true, [start, one('avoid_letter', { letter: 'k' })]],
    ['the same word', false, [one('include_word', { include: ['can'] }), one('avoid_word', { avoid: 'can' })]],
    ['one sentence of forty words', false, [sentences(1), least]],
    ['three sentences of forty words', true, [sentences(3), least]],
    ['three sentences in ten words', false, [sentences(3), one('most_words', { most: 10 })]],
  ])('%s: %p', (_, together, instructions) => expect(goTogether(instructions)).toBe(together));
});

test('words, lines and stems are counted as a reader counts', () => {
  const words = ["Don't", 'stop', 'well-known', '1,000.5', 'U2', 'naïve', 'word'];
  expect(wordsOf("Don't stop: well-known 1,000.5 (U2)… naïve_word")).toEqual(words);
  expect(plainWords('It’s HERE')).toEqual(["it's", 'here']);
  expect(sentencesOf('1. Bees fly.\n2. They hum\n- and sting')).toEqual(['Bees fly.', 'They hum', 'and sting']);
  expect(sentencesOf('bees fly... then they hum.')).toHaveLength(2);
  expect(sentencesOf('Bees fly... then they hum.')).toHaveLength(1);
  expect(bulletsOf('- a\n-b\n– c')).toEqual(['a', 'c']);
  expect(numbersOf('1. a\n2.b\n10) c')).toEqual([1, 10]);
  expect(paragraphsOf('\n\n a \n\n')).toEqual(['a']);
  const stems = (text: string) => text.split(' ').map(stem);
  const same = ["bees bee's stories swimming danced horses", 'bee bee story swim dance horse'] as const;
  expect(stems(same[0])).toEqual(stems(same[1]));
  for (const pair of ['bee be', 'star start', 'ship shop']) expect(new Set(stems(pair)).size).toBe(2);
});
