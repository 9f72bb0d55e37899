/**
 * Training rows of one rollout. Invariants: every sampled id is in exactly one row, with the log-prob it was sampled with; ids
 * that were not sampled have mask 0 and log-prob 0; a row ends with a sampled id.
 */
import type { TrainingRow } from '../domain/rollout';
import type { Turn } from '../policy/client';

export interface RowBuilder {
  /** Adds a turn; `carriesLoss` false keeps its ids in the row without loss. */
  add(turn: Pick<Turn, 'promptIds' | 'tokenIds' | 'logprobs'>, carriesLoss: boolean): void;
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
      for (const id of promptIds.slice(seen)) push(last, id, 0, 0);
      return last;
    }
    const row: TrainingRow = { promptIds, completionIds: [], logprobs: [], mask: [] };
    rows.push(row);
    return row;
  }

  return {
    add({ promptIds, tokenIds, logprobs }, carriesLoss) {
      if (tokenIds.length === 0) return;
      const row = openRow(promptIds);
      tokenIds.forEach((id, n) => push(row, id, roundLogprob(logprobs[n]!), carriesLoss ? 1 : 0));
    },
    rows: () => rows,
  };
}

/** 1e-6 is finer than single precision gives, and a third of the bytes. */
const roundLogprob = (logprob: number): number => Math.round(logprob * 1e6) / 1e6 + 0;

function push(row: TrainingRow, id: number, logprob: number, mask: 0 | 1): void {
  row.completionIds.push(id);
  row.logprobs.push(logprob);
  row.mask.push(mask);
}

function continues(promptIds: number[], { promptIds: first, completionIds: rest }: TrainingRow): boolean {
  return (
    promptIds.length >= first.length + rest.length &&
    first.every((id, n) => promptIds[n] === id) &&
    rest.every((id, n) => promptIds[first.length + n] === id)
  );
}
