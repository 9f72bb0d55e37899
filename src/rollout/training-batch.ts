/**
 * A learner's batch.jsonl (docs/learner-protocol.md) from the rollouts of a finished batch, and the training rows of a rollout. A group is complete or the
 * batch is refused, since an advantage over part of a group would be wrong without being noticed. Every sampled id is in exactly one turn of one row,
 * with the log-prob it was sampled with; other ids have log-prob 0; a row ends with a sampled id.
 */
import { replaceFile } from '../store/durable-file';
import type { Told } from '../domain/transcript';
import { badInput, OutsideFailure } from '../domain/failures';
import type { Rollout, ScoredRollout, TrainingRow } from '../domain/rollout';
import { startsWith } from '../policy/turns';
import type { Turn } from '../policy/wire';

interface TrainingBatchOptions {
  records: readonly Rollout[];
  tasks: string[];
  groupSize: number;
  /** Token ids, or whole conversations for a learner that trains no weights. */
  content: 'rows' | 'messages';
  /** Puts no loss on turns that only call tools which change nothing; for `rows`. */
  maskReadOnlyTurns: boolean;
}

export interface RowsRollout {
  rows: { prompt_ids: number[]; completion_ids: number[]; logprobs: number[]; mask: (0 | 1)[] }[];
  reward: number;
}

/** The fields that analysts get as well. The reward's breakdown is left out, because its names may reveal what is checked. */
type MessagesRollout = Omit<Told, 'key' | 'task' | 'attempt'>;

type BatchLine = { task: string } & (RowsRollout | MessagesRollout);

/** Yields the rollouts of the groups one by one: together they may be longer than the longest string. */
export function* trainingBatch(options: TrainingBatchOptions): Generator<BatchLine> {
  const { records, tasks, groupSize, content, maskReadOnlyTurns } = options;
  const byTask = new Map<string, ScoredRollout[]>(tasks.map((task) => [task, []]));
  for (const rollout of records) if (rollout.status === 'scored') byTask.get(rollout.task)?.push(rollout);
  for (const [task, { length }] of byTask) {
    if (length === groupSize) continue;
    const found = `task ${task} has ${length} scored rollouts of ${groupSize}`;
    throw new OutsideFailure('RolloutsBroken', `${found}; a group is never trained on in part`);
  }
  for (const [task, rollouts] of byTask) {
    for (const one of rollouts)
      yield { task, ...(content === 'rows' ? inRows(one, maskReadOnlyTurns) : conversation(one)) };
  }
}

function inRows({ rows, reward, task, attempt }: ScoredRollout, maskReadOnlyTurns: boolean): RowsRollout {
  if (rows.length === 0) {
    const problem = `rollout ${attempt} of task ${task} holds no sampled token: its first prompt is longer than the context`;
    throw badInput(`${problem}; train on shorter tasks`);
  }
  return {
    rows: rows.map((row) => ({
      prompt_ids: row.promptIds,
      completion_ids: row.completionIds,
      logprobs: row.logprobs,
      mask: maskOf(row, maskReadOnlyTurns),
    })),
    reward,
  };
}

/** Returns 1 for sampled ids that carry loss, else 0. */
function maskOf({ completionIds, turns }: TrainingRow, maskReadOnlyTurns: boolean): (0 | 1)[] {
  const mask = completionIds.map((): 0 | 1 => 0);
  for (const { start, end, readOnly } of turns) if (!(readOnly && maskReadOnlyTurns)) mask.fill(1, start, end);
  return mask;
}

const conversation = ({ messages, reward, stopReason, reference }: ScoredRollout): MessagesRollout => {
  return { messages, reward, stopReason, ...(reference && { reference }) };
};

/** Writes batch.jsonl through a file in the folder `aside`, so that it is complete once it has its name. */
export const writeTrainingBatch = (o: TrainingBatchOptions & { file: string; aside: string }): Promise<void> =>
  replaceFile({ path: o.file, body: lines(o), aside: o.aside });

function* lines(options: TrainingBatchOptions): Generator<string> {
  for (const rollout of trainingBatch(options)) yield `${JSON.stringify(rollout)}\n`;
}

/**
 * Builds the rows of a rollout, turn by turn. A turn whose prompt starts with all the ids of a row continues this row; the further ids are those of the
 * environment's messages. Any other prompt (a history that renders differently, a fork) starts a new row.
 */
export function createRowBuilder() {
  const rows: TrainingRow[] = [];
  const push = (row: TrainingRow, id: number, logprob: number): void => {
    row.completionIds.push(id);
    row.logprobs.push(logprob);
  };
  return {
    /** `readOnly`: the turn only calls tools that change nothing. */
    add({ promptIds, tokenIds, logprobs }: Pick<Turn, 'promptIds' | 'tokenIds' | 'logprobs'>, readOnly: boolean): void {
      if (tokenIds.length === 0) return;
      let row = rows.findLast((one) => startsWith(promptIds, [...one.promptIds, ...one.completionIds]));
      if (row) {
        const seen = row.promptIds.length + row.completionIds.length;
        for (const id of promptIds.slice(seen)) push(row, id, 0);
      } else rows.push((row = { promptIds, completionIds: [], logprobs: [], turns: [] }));
      const start = row.completionIds.length;
      for (const [n, id] of tokenIds.entries()) push(row, id, roundLogprob(logprobs[n]!));
      row.turns.push({ start, end: row.completionIds.length, readOnly });
    },
    rows: (): TrainingRow[] => rows,
  };
}

/** 1e-6 is finer than single precision gives, and a third of the bytes. */
const roundLogprob = (logprob: number): number => Math.round(logprob * 1e6) / 1e6 + 0;
