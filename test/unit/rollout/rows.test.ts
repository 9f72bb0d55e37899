import fc from 'fast-check';
import { createRowBuilder } from '../../../src/rollout/training-batch';

const ids = (min: number) => fc.array(fc.integer({ min: 0, max: 3 }), { minLength: min, maxLength: 6 });
/** A turn of a conversation: what the environment says before it, what is sampled, and whether the history renders anew. */
const turns = fc.array(
  fc.record({ said: ids(0), sampled: ids(1), readOnly: fc.boolean(), rerendered: fc.option(ids(1), { freq: 4 }) }),
  { minLength: 1, maxLength: 6 },
);
const logprobsOf = (sampled: number[], turn: number) => sampled.map((id, n) => -(1 + turn * 100 + n * 10 + id) / 4096);

test('every sampled id is in exactly one turn of one row, with its log-prob; the rest is in none', () => {
  fc.assert(
    fc.property(turns, (conversation) => {
      const builder = createRowBuilder();
      let seen: number[] = [];
      const expected: { ids: number[]; logprobs: number[]; readOnly: boolean }[] = [];
      const prompts: number[][] = [];
      conversation.forEach(({ said, sampled, readOnly, rerendered }, turn) => {
        const promptIds = rerendered ?? [...seen, ...said];
        const logprobs = logprobsOf(sampled, turn);
        builder.add({ promptIds, tokenIds: sampled, logprobs }, readOnly);
        expected.push({ ids: sampled, logprobs, readOnly });
        prompts.push(promptIds);
        seen = [...promptIds, ...sampled];
      });
      const rows = builder.rows();

      // In the order in which they were sampled, as the log-probs tell: a turn may go on with any row before it.
      const sampled = rows
        .flatMap((row) =>
          row.turns.map(({ start, end, readOnly }) => ({
            ids: row.completionIds.slice(start, end),
            logprobs: row.logprobs.slice(start, end),
            readOnly,
          })),
        )
        .sort((a, b) => b.logprobs[0]! - a.logprobs[0]!);
      const withoutLogprobs = (turns: typeof expected) => turns.map(({ ids, readOnly }) => ({ ids, readOnly }));
      expect(withoutLogprobs(sampled)).toEqual(withoutLogprobs(expected));
      const wanted = expected.flatMap(({ logprobs }) => logprobs);
      sampled
        .flatMap(({ logprobs }) => logprobs)
        .forEach((logprob, n) => expect(Math.abs(logprob - wanted[n]!)).toBeLessThan(1e-6));

      for (const row of rows) {
        expect(row.logprobs).toHaveLength(row.completionIds.length);
        expect(row.turns[0]!.start).toBe(0);
        expect(row.turns.at(-1)!.end).toBe(row.completionIds.length);
        const inTurn = (n: number) => row.turns.some(({ start, end }) => start <= n && n < end);
        row.logprobs.forEach((logprob, n) => expect(logprob !== 0).toBe(inTurn(n)));
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
