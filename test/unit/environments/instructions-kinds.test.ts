/** The checkers of the target `instructions`: each kind with texts that keep it and texts that don't. */
import { EXCLUSIVE, goTogether, kindNamed, KINDS } from '../../../src/environments/instructions/combinations';
import type { Demands } from '../../../src/environments/instructions/kinds';
import {
  bulletsOf,
  numbersOf,
  paragraphsOf,
  plainWords,
  sentencesOf,
  stem,
  wordsOf,
} from '../../../src/environments/instructions/text';
import { TOPICS } from '../../../src/environments/instructions/topics';
import { random } from '../../../src/environments/shop/random';

interface Case {
  demands?: Demands;
  keep: string[];
  break: string[];
}

const cases: Record<string, Case[]> = {
  include_word: [
    {
      demands: { include: ['river'] },
      keep: ['By the River.', '- a **river**', 'It is the river’s bed and the river'],
      break: ['Rivers flow.', 'A riverbed', ''],
    },
  ],
  include_two_words: [
    { demands: { include: ['river', 'money'] }, keep: ['Money, river'], break: ['River river', 'money only'] },
  ],
  word_twice: [
    {
      demands: { twice: 'quiet' },
      keep: ['Quiet, so quiet!', 'quiet quiet quiet'],
      break: ['quiet', 'quiet, unquiet'],
    },
  ],
  avoid_word: [{ demands: { avoid: 'is' }, keep: ['This island', "It's fine", ''], break: ['It IS.', 'is'] }],
  avoid_letter: [{ demands: { letter: 'k' }, keep: ['A cat'], break: ['Kites', 'a book'] }],
  most_words: [
    {
      demands: { most: 4 },
      keep: ['One two three four.', "It's well-known, isn't it?", '- one\n- two'],
      break: ['One two three four five', '<<One two>> three four five'],
    },
  ],
  least_words: [{ demands: { least: 3 }, keep: ['one, two, three', '1 2 3'], break: ['well-known word', '... ! - ?'] }],
  start_with: [
    {
      demands: { start: 'In my opinion' },
      keep: ['In my opinion, yes', '"In my opinion" it is', '\n**In my opinion** it is'],
      break: ['Well, in my opinion', 'In my opinions', 'In my', ''],
    },
  ],
  end_with: [
    {
      demands: { end: 'the end' },
      keep: ['It was good. The end.', 'so **the end**!', 'and the end'],
      break: ['The end. Really.', 'the endless', 'bathe end', ''],
    },
  ],
  no_commas: [{ keep: ['One; two.', ''], break: ['One, two', '1,000'] }],
  with_number: [{ keep: ['In 2020 it rained', '1. of 3 things'], break: ['two of three', '1. one\n2. two'] }],
  sentences: [
    {
      demands: { sentences: 2 },
      keep: [
        'Bees fly. They hum!',
        'Mr. Smith has 3.5 bees, e.g. two. Is it so?',
        'he came at 5 p.m. and left. it rained.',
        '"Bees fly." They hum.',
        'Wait... what is it? A bee.',
        'Bees fly\n\nThey hum.',
        'See J. Smith. He knows.',
      ],
      break: ['Bees fly.', 'Bees fly. They hum', 'One. Two. Three.', '', '. .', 'It was I. You saw. It rained.'],
    },
    { demands: { sentences: 1 }, keep: ['Bees, wasps and ants fly.'], break: ['Bees fly and', 'Oh! Bees.'] },
  ],
  paragraphs: [
    {
      demands: { paragraphs: 2 },
      keep: ['One.\n\nTwo.', 'One.\n  \n\n\nTwo.', 'One.\r\n\r\nTwo.'],
      break: ['One.\nTwo.', 'One.\n\nTwo.\n\nThree.', 'One.\n\n---'],
    },
  ],
  bullets: [
    {
      demands: { bullets: 2 },
      keep: ['- one\n- two', 'Look:\n* one\n\n* two\nSo.', '• a\n  • b'],
      break: ['- one', '- a\n- b\n- c', '1. a\n2. b', 'a - b - c', '**a**\n**b**', '-\n-'],
    },
  ],
  numbered_list: [
    {
      demands: { numbered: 2 },
      keep: ['1. one\n2. two', 'Look:\n1) a\n\n2) b'],
      break: ['1. a\n2. b\n3. c', '2. a\n1. b', '1. a', '1 and 2', '- a\n- b', '1. a\n1. b'],
    },
  ],
  title: [
    { keep: ['<<Bees>>\nThey hum.', ' <<The bees>> hum'], break: ['Bees\n<<Bees>>', '<<>> bees', '<Bees>', '<<Bees'] },
  ],
  heading: [{ keep: ['# Bees\nThey hum.', '### Bees\n\nHum'], break: ['# Bees', 'Bees\n# Bees', '#\nBees'] }],
  quoted: [{ keep: ['"Bees hum."', ' “Bees” and “more”\n'], break: ['"Bees" hum.', 'Bees', '"', '""'] }],
  postscript: [
    {
      keep: ['Bees.\nP.S. More soon.', 'Bees.\n\nP.S.: more'],
      break: ['Bees. P.S. More', 'P.S. More\nBees.', 'Bees\nP.S.'],
    },
  ],
  lowercase: [{ keep: ['bees hum.', 'b2'], break: ['Bees hum.', '123', ''] }],
  uppercase: [{ keep: ['BEES HUM!', 'A1'], break: ['BEES hum', '123', ''] }],
  capital_words: [
    { demands: { capitals: 2 }, keep: ['BEES and WASPS', 'THE BEES'], break: ['BEES only', 'I saw A bee', 'Bees Hum'] },
  ],
  question: [{ keep: ['Is it? Yes.', 'so ("why")?'], break: ['Is it.', '? yes', ''] }],
  end_question: [{ keep: ['Bees hum. Do they?', '"Do they?"', 'Do they?**'], break: ['Do they? Yes.', ''] }],
  exclamation: [{ keep: ['Bees! They hum.', '**Bees**!'], break: ['Bees.', '! bees', ''] }],
  parentheses: [{ keep: ['Bees (wasps) hum', '(1)'], break: ['Bees () hum', '(bees', 'bees)', '[bees]'] }],
  bold: [{ keep: ['The **bee** hums', '**The bee**'], break: ['*bee*', '** bees', '****', 'a ** b'] }],
  placeholder: [{ keep: ['Dear [name],', 'on [the date]'], break: ['[]', '[1]', '(name)', '[name'] }],
};

test('every kind has texts that keep it and texts that break it', () => {
  expect(Object.keys(cases).sort()).toEqual(KINDS.map(({ name }) => name).sort());
  expect(KINDS.length).toBeGreaterThanOrEqual(16);
});

test.each(Object.entries(cases))('%s', (name, list) => {
  const { holds } = kindNamed(name);
  for (const { demands = {}, keep, break: broken } of list)
    expect({
      kept: keep.filter((text) => holds(text, demands)),
      broken: broken.filter((text) => holds(text, demands)),
    }).toEqual({ kept: keep, broken: [] });
});

test('what is asked for is said, with its parameters, and in several ways', () => {
  for (const { name, draw, say } of KINDS) {
    const demands = draw({ rng: random(name), topic: TOPICS.train[0]! });
    const ways = say(demands);
    expect(new Set(ways).size).toBeGreaterThan(1);
    for (const text of ways) expect(text).not.toMatch(/undefined|NaN|zero/);
    for (const value of [demands.include, demands.twice, demands.avoid, demands.start, demands.end].flat())
      if (value !== undefined) for (const text of ways) expect(text).toContain(`"${value}"`);
  }
});

describe('which go together', () => {
  const one = (kind: string, demands: Demands = {}) => ({ kind, demands });

  test('the table names kinds that there are', () => {
    const names = new Set(KINDS.map(({ name }) => name));
    expect(EXCLUSIVE.flat().filter((name) => !names.has(name))).toEqual([]);
  });

  test('none with itself, nor with one that it excludes', () => {
    expect(goTogether([one('bold'), one('bold')])).toBe(false);
    expect(goTogether([one('lowercase'), one('question'), one('uppercase')])).toBe(false);
    expect(goTogether([one('lowercase'), one('question'), one('title')])).toBe(true);
  });

  test('not with a word or a length that contradicts', () => {
    const start = one('start_with', { start: 'Imagine' });
    expect(goTogether([start, one('avoid_letter', { letter: 'g' })])).toBe(false);
    expect(goTogether([start, one('avoid_letter', { letter: 'k' })])).toBe(true);
    expect(goTogether([one('include_word', { include: ['can'] }), one('avoid_word', { avoid: 'can' })])).toBe(false);
    expect(goTogether([one('sentences', { sentences: 1 }), one('least_words', { least: 40 })])).toBe(false);
    expect(goTogether([one('sentences', { sentences: 3 }), one('least_words', { least: 40 })])).toBe(true);
    expect(goTogether([one('sentences', { sentences: 3 }), one('most_words', { most: 10 })])).toBe(false);
  });
});

test('words, lines and stems are counted as a reader counts', () => {
  expect(wordsOf("Don't stop: well-known 1,000.5 (U2)… naïve_word")).toEqual([
    "Don't",
    'stop',
    'well-known',
    '1,000.5',
    'U2',
    'naïve',
    'word',
  ]);
  expect(plainWords('It’s HERE')).toEqual(["it's", 'here']);
  expect(sentencesOf('1. Bees fly.\n2. They hum\n- and sting')).toEqual(['Bees fly.', 'They hum', 'and sting']);
  expect(sentencesOf('bees fly... then they hum.')).toHaveLength(2);
  expect(sentencesOf('Bees fly... then they hum.')).toHaveLength(1);
  expect([bulletsOf('- a\n-b\n– c'), numbersOf('1. a\n2.b\n10) c')]).toEqual([
    ['a', 'c'],
    [1, 10],
  ]);
  expect(paragraphsOf('\n\n a \n\n')).toEqual(['a']);
  for (const [one, other] of [
    ['bees', 'bee'],
    ['bee’s'.replace('’', "'"), 'bee'],
    ['stories', 'story'],
    ['swimming', 'swim'],
    ['danced', 'dance'],
    ['horses', 'horse'],
  ])
    expect(stem(one!)).toBe(stem(other!));
  for (const [one, other] of [
    ['bee', 'be'],
    ['star', 'start'],
    ['ship', 'shop'],
  ])
    expect(stem(one!)).not.toBe(stem(other!));
});
