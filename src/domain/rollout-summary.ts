/** The figures of a finished batch of rollouts, as steps hand them on. */
import type { ArtifactRef } from './artifacts';
import type { BrokenCause } from './broken';
import type { Purpose } from './purposes';

export interface BranchSummary {
  scored: number;
  meanReward: number;
  successRate: number;
}

/** A finished batch of rollouts: figures of all that it holds, also of those that other batches hold too. */
export interface RolloutSummary {
  ref: ArtifactRef;
  purpose: Purpose;
  /** What the batch is, for people. */
  title: string;
  scored: number;
  broken: number;
  /** Those that were found, in this batch or others, and not played for it; absent where there were none. */
  reused?: number;
  meanReward: number;
  /** Share of the scored rollouts with reward >= 1. */
  successRate: number;
  /** The same by branch, of the rollouts that have one; absent where none has. */
  branches?: Record<string, BranchSummary>;
  promptTokens: number;
  completionTokens: number;
  seconds: number;
  /** Broken rollouts by type of error. */
  errors: Record<string, number>;
  /** The most frequent causes; absent where none broke. */
  causes?: BrokenCause[];
  /** Scored rollouts by why they ended. */
  stopReasons: Record<string, number>;
}
