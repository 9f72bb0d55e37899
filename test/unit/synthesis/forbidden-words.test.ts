/** The search for test tasks' texts in long messages: the same as word for word, in a time that many rollouts allow. */
import { setImmediate } from 'node:timers/promises';
import type { ScoredRollout } from '../../../src/domain/rollout';
import { forbiddenIn, messageHash, normalised } from '../../../src/sandbox/leakage';
import { showable } from '../../../src/synthesis/llm/target';
import { scoredRollout } from '../../support/scored-rollout';

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

test('the time grows with the text, and not with its square', () => {
  const isForbidden = forbiddenIn(
    Array.from({ length: 500 }, (_, n) => messageHash(randomWords(n, 40, 1000).join(' '))),
  );
  const text = randomWords(9_999, 100_000, 1000).join(' ');
  const begun = process.cpuUsage();
  expect(isForbidden(text)).toBe(false);
  // Of five thousand million runs it would be ten and more.
  expect(process.cpuUsage(begun).user / 1e6).toBeLessThan(4);
  expect(isForbidden(`${text} ${randomWords(7, 40, 1000).join(' ')}`)).toBe(true);
});

test('other work goes on while rollouts are looked through', async () => {
  const rollouts = Array.from(
    { length: 50 },
    (_, n) => scoredRollout({ name: `r${n}`, task: `t${n}`, reward: 0 }) as ScoredRollout,
  );
  let turns = 0;
  let over = false;
  const shown = showable(rollouts, [messageHash('x')]).finally(() => (over = true));
  while (!over) {
    await setImmediate();
    turns += 1;
  }
  expect(await shown).toHaveLength(50);
  expect(turns).toBeGreaterThanOrEqual(50);
});
