/**
 * Training rows of one rollout. Invariants: every sampled id is in exactly one turn of one row, with the log-prob it was sampled with;
 * ids that were not sampled are in no turn and have log-prob 0; a row ends with a sampled id.
 */
import type { TrainingRow } from '../domain/rollout';
import type { Turn } from '../policy/turn';

export interface RowBuilder {
  /** Adds a turn; `readOnly`: it only calls tools that change nothing. */
  add(turn: Pick<Turn, 'promptIds' | 'tokenIds' | 'logprobs'>, readOnly: boolean): void;
  rows(): TrainingRow[];
}

/**
 * A turn whose prompt starts with all the ids so far continues the row, and the surplus is what the environment said; any other
 * prompt (a history that renders differently) starts a new row.
 */
export function createRowBuilder(): RowBuilder {
  const rows: TrainingRow[] = [];

  function openRow(promptIds: number[]): TrainingRow {
    const last = rows.at(-1);
    const seen = last && last.promptIds.length + last.completionIds.length;
    if (last && seen !== undefined && continues(promptIds, last)) {
      for (const id of promptIds.slice(seen)) push(last, id, 0);
      return last;
    }
    const row: TrainingRow = { promptIds, completionIds: [], logprobs: [], turns: [] };
    rows.push(row);
    return row;
  }

  return {
    add({ promptIds, tokenIds, logprobs }, readOnly) {
      if (tokenIds.length === 0) return;
      const row = openRow(promptIds);
      const start = row.completionIds.length;
      tokenIds.forEach((id, n) => push(row, id, roundLogprob(logprobs[n]!)));
      row.turns.push({ start, end: row.completionIds.length, readOnly });
    },
    rows: () => rows,
  };
}

/** 1e-6 is finer than single precision gives, and a third of the bytes. */
const roundLogprob = (logprob: number): number => Math.round(logprob * 1e6) / 1e6 + 0;

function push(row: TrainingRow, id: number, logprob: number): void {
  row.completionIds.push(id);
  row.logprobs.push(logprob);
}

function continues(promptIds: number[], { promptIds: first, completionIds: rest }: TrainingRow): boolean {
  return (
    promptIds.length >= first.length + rest.length &&
    first.every((id, n) => promptIds[n] === id) &&
    rest.every((id, n) => promptIds[first.length + n] === id)
  );
}
