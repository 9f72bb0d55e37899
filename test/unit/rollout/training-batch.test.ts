import { join } from 'node:path';
import { openFolderStore } from '../../../src/store/open-store';
import type { Rollout, ScoredRollout } from '../../../src/domain/rollout';
import { played } from '../../support/played';
import { type RowsRollout, trainingBatch } from '../../../src/rollout/training-batch';
import { countingBatch } from '../../support/counting-batch';
import { eachTemporaryFolder } from '../../support/temporary-folder';

let root: string;
eachTemporaryFolder((made) => (root = made));
let records: Rollout[];
beforeEach(async () => {
  const store = openFolderStore(join(root, 'store'));
  ({ records } = await played(countingBatch(store, { purpose: 'training', title: 'a step' })));
});

const options = { content: 'rows', maskReadOnlyTurns: true, groupSize: 2 } as const;
const characters = (value: object) => `${JSON.stringify(value)}\n`.length;

test('a group in part is refused, and so is a rollout without a sampled token', () => {
  const groupOf =
    (tasks: string[], groupSize: number, from = records) =>
    () => [...trainingBatch({ ...options, records: from, tasks, groupSize })];
  expect(groupOf(['n-0'], 3)).toThrow(expect.objectContaining({ type: 'RolloutsBroken' }));
  expect(groupOf(['n-9'], 2)).toThrow('0 scored rollouts of 2');
  const [first, ...others] = records as ScoredRollout[];
  const broken: Rollout = { ...first!, status: 'broken', error: { type: 'EnvironmentDied', message: 'gone' } };
  expect(groupOf(['n-0'], 2, [broken, ...others])).toThrow('1 scored rollouts of 2');
  expect(groupOf(['n-0'], 2, [{ ...first!, rows: [] }, ...others])).toThrow(
    expect.objectContaining({ type: 'BadInput', message: expect.stringContaining('no sampled token') }),
  );
});

test('loss is on what was sampled; turns that only read carry none, unless they shall', () => {
  const rowsOf = (maskReadOnlyTurns: boolean) => {
    const [first] = trainingBatch({ ...options, records, tasks: ['n-1'], maskReadOnlyTurns });
    return (first as unknown as RowsRollout).rows;
  };
  const { messages, usage, rows } = records.find(({ task }) => task === 'n-1') as ScoredRollout;
  const [masked, all] = [rowsOf(true), rowsOf(false)];
  expect(masked).toHaveLength(1);
  expect(masked[0]!.mask).toHaveLength(rows[0]!.completionIds.length);

  // `look` reads; `add` and the last answer do not. What tools say is between the turns.
  const [look, looked, add, added, done] = messages.slice(1).map(characters) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const spans = (...parts: [number, 0 | 1][]) => parts.flatMap(([length, bit]) => Array<number>(length).fill(bit));
  expect(all[0]!.mask).toEqual(spans([look, 1], [looked, 0], [add, 1], [added, 0], [done, 1]));
  expect(masked[0]!.mask).toEqual(spans([look + looked, 0], [add, 1], [added, 0], [done, 1]));
  expect(look + add + done).toBe(usage.completionTokens);
});

test('a learner of its own gets whole conversations with what they were worth, and not the names of the reward’s parts', () => {
  const rollouts = [...trainingBatch({ ...options, records, tasks: ['n-1'], content: 'messages' })];
  const made = records.filter(({ task }) => task === 'n-1') as ScoredRollout[];
  expect(rollouts).toEqual(made.map(({ messages }) => ({ task: 'n-1', messages, reward: 1, stopReason: 'user_stop' })));
});
