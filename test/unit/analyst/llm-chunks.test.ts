/** What one request shows. */
import fc from 'fast-check';
import { contrastChunks, partsAtTasks, split, tokensOf } from '../../../src/analyst/llm/requests';
import { isSuccess, type ScoredRollout } from '../../../src/domain/rollout';
import { compactOne, LENGTHS, shortIds } from '../../../src/domain/transcript';
import { trajectory } from '../../support/analyst-llm';

const chunksOf = (rollouts: ScoredRollout[], tokens: number, room = 10_000) =>
  contrastChunks({ rollouts, ids: shortIds(rollouts), tokens, room, lengths: LENGTHS });
const sizeOf = (rollouts: ScoredRollout[], chunk: ScoredRollout[]) => {
  const ids = shortIds(rollouts);
  return chunk.reduce((sum, rollout) => sum + tokensOf(compactOne({ rollout, id: ids.get(rollout.key) ?? '' })), 0);
};
const names = (chunk: ScoredRollout[]) =>
  chunk.map(({ task, attempt, reward }) => `${task}.${attempt}${reward < 1 ? '-' : '+'}`);
/** One of these has 36 tokens. */
const many = (outcomes: string, task = 't') =>
  [...outcomes].map((outcome, n) => trajectory({ task: `${task}${n}`, passed: outcome === '+' }));

it('shows attempts at one task with different outcomes first, side by side, then the others mixed', () => {
  const rollouts = [
    ...many('----++'),
    trajectory({ task: 'u', attempt: 1, passed: false }),
    trajectory({ task: 'u', attempt: 0, passed: true }),
    trajectory({ task: 'v', attempt: 0, passed: false }),
    trajectory({ task: 'v', attempt: 1, passed: false }),
  ];
  const [chunk, ...others] = chunksOf(rollouts, 5000);
  expect(others).toEqual([]);
  expect(names(chunk as ScoredRollout[])).toEqual([
    'u.0+',
    'u.1-',
    't0.0-',
    't4.0+',
    't1.0-',
    't2.0-',
    't3.0-',
    't5.0+',
    'v.0-',
    'v.1-',
  ]);
});

it('gives every chunk contrast where there is enough of both', () => {
  const chunks = chunksOf(many('----------------------------++++++++'), 200);
  expect(chunks.length).toBe(8);
  for (const chunk of chunks) expect(chunk.filter(isSuccess)).toHaveLength(1);
});

it('makes up for one-sided tasks by those with both outcomes', () => {
  const both = ['u', 'v', 'w'].flatMap((task) => [
    trajectory({ task, attempt: 0, passed: true }),
    trajectory({ task, attempt: 1, passed: false }),
  ]);
  const chunks = chunksOf([...many('---------'), ...both], 200);
  expect(chunks.map((chunk) => chunk.filter(isSuccess).length)).toEqual([1, 1, 1]);
});

it('splits a group only where it is longer than a chunk, and mixes the parts', () => {
  const group = [...'--------++'].map((outcome, attempt) =>
    trajectory({ task: 'u', attempt, passed: outcome === '+' }),
  );
  expect(chunksOf(group, 400)).toHaveLength(1);
  const chunks = chunksOf(group, 200);
  expect(chunks.map((chunk) => chunk.length)).toEqual([5, 5]);
  for (const chunk of chunks) expect(chunk.filter(isSuccess)).toHaveLength(1);
});

it('takes a rollout that is longer than a chunk by itself, and refuses one that no request can hold', () => {
  const long = trajectory({ task: 'long', passed: false, turns: 100 });
  expect(chunksOf([long], 100)).toEqual([[long]]);
  expect(() => chunksOf([long], 100, 150)).toThrow(
    /^analyst.contextTokens leaves room for trajectories of 150 tokens, and one of task long has \d+ \(key-long-0\); raise/,
  );
});

it('holds each rollout once, within the limit, whatever the order', () => {
  const outcome = fc.record({
    task: fc.integer({ min: 0, max: 6 }),
    passed: fc.boolean(),
    turns: fc.integer({ min: 1, max: 9 }),
  });
  fc.assert(
    fc.property(fc.array(outcome, { maxLength: 30 }), fc.integer({ min: 60, max: 600 }), (drawn, tokens) => {
      const rollouts = drawn.map(({ task, ...one }, attempt) => trajectory({ task: `t${task}`, attempt, ...one }));
      const chunks = chunksOf(rollouts, tokens);
      expect(
        chunks
          .flat()
          .map(({ key }) => key)
          .sort(),
      ).toEqual(rollouts.map(({ key }) => key).sort());
      const longest = Math.max(0, ...rollouts.map((one) => sizeOf(rollouts, [one])));
      for (const chunk of chunks) {
        expect(chunk.length).toBeGreaterThan(0);
        expect(sizeOf(rollouts, chunk)).toBeLessThanOrEqual(Math.max(tokens, longest));
      }
      expect(chunksOf([...rollouts].reverse(), tokens)).toEqual(chunks);
    }),
  );
});

it('leaves room for the ids of what a request shows, and of nothing else', () => {
  const rollouts = many('-+'.repeat(200));
  // 36 or 37 tokens of each trajectory, and 2 of its id.
  for (const chunk of chunksOf(rollouts, 5000, 200))
    expect(sizeOf(rollouts, chunk) + 2 * chunk.length).toBeLessThanOrEqual(200);
  expect(() => chunksOf(rollouts, 5000, 38)).toThrow(
    /^analyst.contextTokens leaves room for trajectories of 38 tokens/,
  );
});

it('labels attempts at one task together', () => {
  const attempts = ['a', 'b', 'c', 'd', 'e'].flatMap((task) =>
    [true, false, true].map((passed, attempt) => trajectory({ task, attempt, passed })),
  );
  const tasksOf = (parts: ScoredRollout[][]) => parts.map((part) => part.map(({ task }) => task).join(''));
  expect(tasksOf(partsAtTasks(attempts, 8))).toEqual(['aaabbb', 'ccc', 'dddeee']);
  expect(tasksOf(partsAtTasks(attempts, 3))).toEqual(['aaa', 'bbb', 'ccc', 'ddd', 'eee']);
  expect(partsAtTasks([], 3)).toEqual([]);
  const group = [...'++++----'].map((outcome, attempt) => trajectory({ task: 'u', attempt, passed: outcome === '+' }));
  expect(partsAtTasks(group, 4).map((part) => part.filter(isSuccess).length)).toEqual([2, 2]);
});

it('splits at tasks within the limit, in order, and evenly where each task has one attempt', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 12 });
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 20 }), (given, most) => {
      const attempts = given.flatMap((count, task) =>
        Array.from({ length: count }, (_, attempt) => trajectory({ task: `t${task}`, attempt, passed: true })),
      );
      const parts = partsAtTasks(attempts, most);
      expect(parts.flat()).toEqual(attempts);
      for (const part of parts) expect(part.length > 0 && part.length <= most).toBe(true);
      const torn = given.filter((_, n) => parts.filter((part) => part.some(({ task }) => task === `t${n}`)).length > 1);
      expect(torn.every((count) => count > most)).toBe(true);
      const single = given.map((_, n) => trajectory({ task: `t${n}`, passed: n % 3 > 0 }));
      expect(partsAtTasks(single, most)).toEqual(split(single, most));
    }),
  );
});

it('splits evenly, in order', () => {
  expect(split([1, 2, 3, 4, 5], 2)).toEqual([[1, 2], [3], [4, 5]]);
  expect(split([1, 2, 3], 3)).toEqual([[1, 2, 3]]);
  expect(split([], 3)).toEqual([]);
  fc.assert(
    fc.property(fc.array(fc.integer(), { maxLength: 99 }), fc.integer({ min: 1, max: 20 }), (items, most) => {
      const parts = split(items, most);
      expect(parts.flat()).toEqual(items);
      for (const part of parts) expect(part.length > 0 && part.length <= most).toBe(true);
    }),
  );
});
