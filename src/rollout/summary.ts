/** The figures of a batch. Invariant: means are over scored rollouts only; with none of them they are 0 and `scored` says so. */
import type { RolloutSummary } from '../domain/results';
import { isSuccess, type Rollout, type ScoredRollout } from '../domain/rollout';

export type Counts = Omit<RolloutSummary, 'ref' | 'purpose' | 'title' | 'seconds'>;

export function summarise(records: Rollout[]): Counts {
  const scored = records.filter((record): record is ScoredRollout => record.status === 'scored');
  const sum = (value: (rollout: ScoredRollout) => number) =>
    scored.reduce((total, rollout) => total + value(rollout), 0);
  const mean = (value: (rollout: ScoredRollout) => number) => (scored.length === 0 ? 0 : sum(value) / scored.length);
  return {
    scored: scored.length,
    broken: records.length - scored.length,
    meanReward: mean(({ reward }) => reward),
    successRate: mean((rollout) => (isSuccess(rollout) ? 1 : 0)),
    promptTokens: sum(({ usage }) => usage.promptTokens),
    completionTokens: sum(({ usage }) => usage.completionTokens),
    stopReasons: count(scored.map(({ stopReason }) => stopReason)),
    errors: count(records.flatMap((record) => (record.status === 'broken' ? [record.error.type] : []))),
  };
}

function count(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
