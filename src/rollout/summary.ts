/** The figures of a batch. Invariant: means are over scored rollouts only; with none of them they are 0 and `scored` says so. */
import {
  type BranchSummary,
  causesIn,
  isSuccess,
  type Rollout,
  type RolloutSummary,
  type ScoredRollout,
  TOLD,
} from '../domain/rollout';
import { mean } from '../domain/statistics';

export type Counts = Omit<RolloutSummary, 'ref' | 'purpose' | 'title' | 'reused' | 'seconds'>;

export function summarise(records: Rollout[]): Counts {
  const scored = records.filter((record): record is ScoredRollout => record.status === 'scored');
  const sum = (value: (rollout: ScoredRollout) => number) =>
    scored.reduce((total, rollout) => total + value(rollout), 0);
  const branches = branchesOf(scored);
  const causes = causesIn(records).slice(0, TOLD);
  return {
    ...averages(scored),
    broken: records.length - scored.length,
    ...(branches && { branches }),
    promptTokens: sum(({ usage }) => usage.promptTokens),
    completionTokens: sum(({ usage }) => usage.completionTokens),
    stopReasons: count(scored.map(({ stopReason }) => stopReason)),
    errors: count(records.flatMap((record) => (record.status === 'broken' ? [record.error.type] : []))),
    ...(causes.length > 0 && { causes }),
  };
}

function averages(scored: readonly ScoredRollout[]): BranchSummary {
  const { length } = scored;
  return {
    scored: length,
    meanReward: length === 0 ? 0 : mean(scored.map(({ reward }) => reward)),
    successRate: scored.filter(isSuccess).length / Math.max(1, length),
  };
}

function branchesOf(scored: readonly ScoredRollout[]): Record<string, BranchSummary> | undefined {
  const names = new Set(scored.flatMap(({ branch }) => branch ?? []));
  if (names.size === 0) return undefined;
  const of = (name: string) => averages(scored.filter(({ branch }) => branch === name));
  return Object.fromEntries([...names].sort().map((name) => [name, of(name)]));
}

function count(names: string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
