/** Texts of test tasks, and identifiers of the target, in modules, instances and rollouts. */
import { forbiddenIn, leaksOf, messageHash, normalised, quotesTask } from '../../../src/sandbox/leakage';
import { openModule } from '../../../src/sandbox/module';
import { closedAfterwards } from '../../support/opened';

/** Always the same ones. */
function randomWords(seed: number, count: number, of: number): string[] {
  let state = seed;
  return Array.from({ length: count }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return `w${(state >>> 8) % of}`;
  });
}

test('hashes are those that generated modules compute', () => {
  expect(messageHash('Hello , WORLD 7!')).toBe(messageHash('hello world 7'));
  expect([messageHash(''), messageHash('hello'), messageHash('Where is order 17?')]).toEqual([
    '7b45b3683fe56.1',
    '1dacf671f1c754.1',
    '1144e88b5c7097.4',
  ]);
});

test('a run of words is found wherever it stands, and nothing else is', () => {
  const tests = [1, 2, 3, 4, 5, 6].map((length) => randomWords(length, length, 5).join(' '));
  let found = 0;
  for (const text of Array.from({ length: 300 }, (_, seed) => randomWords(seed, seed % 12, 5).join(' , ')))
    for (const one of tests) {
      const isIn = ` ${normalised(text)} `.includes(` ${one} `);
      expect(forbiddenIn([messageHash('another'), messageHash(one)])(text)).toBe(isIn);
      found += Number(isIn);
    }
  expect(found).toBeGreaterThan(100);
});

describe('the text of a test task', () => {
  const task = "It's me again: I want my money back,\nplease.";
  const forbidden = [messageHash(task), messageHash('the red bicycle')];

  it('is found in code, however it is written down there', () => {
    for (const literal of [JSON.stringify(task), `\`${task}\``, `'It\\'s me again: i want my money back, please'`])
      expect(quotesTask(`const often = 1;\nconst seldom = ${literal};`, forbidden)).toBe(true);
    expect(quotesTask('const parts = ["It\'s me again", "I want my bicycle back"];', forbidden)).toBe(false);
    // So few words are nobody's own.
    expect(quotesTask('const what = "the red bicycle";', forbidden)).toBe(false);
  });

  const user = (content: string) => `{ role: 'user', content: ${content} }`;
  it.each([
    ['a user', { first: `'a '.repeat(700) + said + ' b'.repeat(500)` }],
    ['a tool', { answer: `{ role: 'tool', toolCallId: '1', content: 'note: ' + said }` }],
  ])('is found where %s says it, anywhere in a message', async (who, says) => {
    const { first = `'hello'`, answer = user(`'yes'`) } = says as Record<string, string>;
    const module = closedAfterwards(
      openModule({
        source: `
          const said = ${JSON.stringify(task)};
          export const make = (seed) => ({ seed });
          export const start = () => [${user(first)}];
          export const step = (state) => ({ state, done: true, messages: [${answer}] });
          export const reward = () => ({ reward: 1, breakdown: {} });
          export const solve = () => [{ role: 'assistant', content: '', toolCalls: [{ id: '1', name: 'a', arguments: {} }] }];`,
      }),
    );
    expect(await leaksOf(module, { seeds: [4], forbidden })).toEqual([{ seed: 4, who }]);
    const others = [messageHash('something else that nobody says')];
    expect(await leaksOf(module, { seeds: [4], forbidden: others })).toEqual([]);
  });
});
