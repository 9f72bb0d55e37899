/** What one request shows. */
import fc from 'fast-check';
import { contrastChunks } from '../../../src/analyst/llm/chunks';
import { shownOf } from '../../../src/analyst/llm/requests';
import { tokensOf } from '../../../src/domain/endpoints';
import { isSuccess, type ScoredRollout } from '../../../src/domain/rollout';
import { compactOne, LENGTHS, shortIds } from '../../../src/domain/transcript';
import { trajectory } from '../../support/analyst-llm';

const chunksOf = (rollouts: ScoredRollout[], tokens: number, room = 10_000) =>
  contrastChunks({ shown: shownOf(rollouts), tokens, room, lengths: LENGTHS }).map((chunk) => [...chunk.values()]);
const sizeOf = (rollouts: ScoredRollout[], chunk: ScoredRollout[]) => {
  const ids = shortIds(rollouts);
  const textOf = (rollout: ScoredRollout) => compactOne({ rollout, id: ids.get(rollout.key) ?? '' });
  return chunk.reduce((sum, rollout) => sum + tokensOf(textOf(rollout).length), 0);
};
/** Attempts at one task, or, without one, at a task each; one of these has 36 tokens. */
const trajectories = (outcomes: string, task?: string) =>
  [...outcomes].map((outcome, n) =>
    trajectory({ task: task ?? `t${n}`, attempt: task ? n : 0, passed: outcome === '+' }),
  );
const passedIn = (chunks: ScoredRollout[][]) => chunks.map((chunk) => chunk.filter(isSuccess).length);

it('shows attempts at one task with different outcomes first, side by side, then the others mixed', () => {
  const rollouts = [...trajectories('----++'), ...trajectories('+-', 'u'), ...trajectories('--', 'v')];
  const names = chunksOf(rollouts, 5000).map((chunk) =>
    chunk.map(({ task, attempt, reward }) => `${task}.${attempt}${reward < 1 ? '-' : '+'}`).join(' '),
  );
  expect(names).toEqual(['u.0+ u.1- t0.0- t4.0+ t1.0- t2.0- t3.0- t5.0+ v.0- v.1-']);
});

it('gives every chunk contrast where there is enough of both, and makes up for one-sided tasks', () => {
  expect(passedIn(chunksOf(trajectories('----------------------------++++++++'), 200))).toEqual(Array(8).fill(1));
  const both = ['u', 'v', 'w'].flatMap((task) => trajectories('+-', task));
  expect(passedIn(chunksOf([...trajectories('---------'), ...both], 200))).toEqual([1, 1, 1]);
});

it('takes a rollout that is longer than a chunk by itself, and refuses one that no request can hold with its id', () => {
  const long = trajectory({ task: 'long', passed: false, turns: 100 });
  expect(chunksOf([long], 100)).toEqual([[long]]);
  expect(() => chunksOf([long], 100, 150)).toThrow(
    /^analyst.contextTokens leaves room for trajectories of 150 tokens, and attempt 0 at task long has \d+; raise/,
  );
  const rollouts = trajectories('-+'.repeat(200));
  // 36 or 37 tokens of each trajectory.
  for (const chunk of chunksOf(rollouts, 5000, 200)) expect(sizeOf(rollouts, chunk)).toBeLessThanOrEqual(200);
  expect(() => chunksOf(rollouts, 5000, 36)).toThrow(/leaves room for trajectories of 36 tokens/);
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
      const keys = (all: ScoredRollout[]) => all.map(({ key }) => key).sort();
      expect(keys(chunks.flat())).toEqual(keys(rollouts));
      const longest = Math.max(0, ...rollouts.map((one) => sizeOf(rollouts, [one])));
      for (const chunk of chunks) {
        expect(chunk.length).toBeGreaterThan(0);
        expect(sizeOf(rollouts, chunk)).toBeLessThanOrEqual(Math.max(tokens, longest));
      }
      expect(chunksOf([...rollouts].reverse(), tokens)).toEqual(chunks);
    }),
  );
});
