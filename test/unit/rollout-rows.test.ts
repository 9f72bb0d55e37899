import fc from 'fast-check';
import { createRowBuilder } from '../../src/rollout/rows';

const ids = (min: number) => fc.array(fc.integer({ min: 0, max: 3 }), { minLength: min, maxLength: 6 });
/** A turn of a conversation: what the environment says before it, what is sampled, and whether the history renders anew. */
const turns = fc.array(
  fc.record({ said: ids(0), sampled: ids(1), carriesLoss: fc.boolean(), rerendered: fc.option(ids(1), { freq: 4 }) }),
  { minLength: 1, maxLength: 6 },
);
const logprobsOf = (sampled: number[], turn: number) => sampled.map((id, n) => -(1 + turn * 100 + n * 10 + id) / 4096);

test('every sampled id is in exactly one row, with its log-prob and mask; the rest carries nothing', () => {
  fc.assert(
    fc.property(turns, (conversation) => {
      const builder = createRowBuilder();
      let seen: number[] = [];
      const expected: { id: number; logprob: number; mask: number }[] = [];
      const prompts: number[][] = [];
      conversation.forEach(({ said, sampled, carriesLoss, rerendered }, turn) => {
        const promptIds = rerendered ?? [...seen, ...said];
        const logprobs = logprobsOf(sampled, turn);
        builder.add({ promptIds, tokenIds: sampled, logprobs }, carriesLoss);
        sampled.forEach((id, n) => expected.push({ id, logprob: logprobs[n]!, mask: carriesLoss ? 1 : 0 }));
        prompts.push(promptIds);
        seen = [...promptIds, ...sampled];
      });
      const rows = builder.rows();

      const sampled = rows.flatMap((row) =>
        row.completionIds
          .map((id, n) => ({ id, logprob: row.logprobs[n]!, mask: row.mask[n]! }))
          .filter(({ logprob }) => logprob !== 0),
      );
      expect(sampled.map(({ id, mask }) => ({ id, mask }))).toEqual(expected.map(({ id, mask }) => ({ id, mask })));
      sampled.forEach(({ logprob }, n) => expect(Math.abs(logprob - expected[n]!.logprob)).toBeLessThan(1e-6));

      for (const row of rows) {
        expect(row.logprobs).toHaveLength(row.completionIds.length);
        expect(row.mask).toHaveLength(row.completionIds.length);
        expect(row.logprobs[0]).not.toBe(0);
        expect(row.logprobs.at(-1)).not.toBe(0);
        row.completionIds.forEach((_, n) => row.logprobs[n] === 0 && expect(row.mask[n]).toBe(0));
        // Each row is one real prompt, continued by real prompts: it is a prefix of what some turn saw plus what it sampled.
        expect(prompts.some((prompt) => JSON.stringify(prompt) === JSON.stringify(row.promptIds))).toBe(true);
      }
      if (conversation.every(({ rerendered }) => rerendered === null)) {
        expect(rows).toHaveLength(1);
        expect([...rows[0]!.promptIds, ...rows[0]!.completionIds]).toEqual(seen);
      }
    }),
  );
});

test('a prompt that does not begin with the ids so far starts a new row', () => {
  const builder = createRowBuilder();
  builder.add({ promptIds: [1, 2], tokenIds: [3, 4], logprobs: [-0.1, -0.2] }, true);
  builder.add({ promptIds: [1, 2, 3, 4, 5, 6], tokenIds: [7], logprobs: [-0.3] }, false);
  builder.add({ promptIds: [1, 2, 3, 4, 5, 6, 8, 9], tokenIds: [2], logprobs: [-0.4] }, true);
  expect(builder.rows()).toEqual([
    { promptIds: [1, 2], completionIds: [3, 4, 5, 6, 7], logprobs: [-0.1, -0.2, 0, 0, -0.3], mask: [1, 1, 0, 0, 0] },
    { promptIds: [1, 2, 3, 4, 5, 6, 8, 9], completionIds: [2], logprobs: [-0.4], mask: [1] },
  ]);
});
