/**
 * How steps are dealt out, tried again, and tell how far they are.
 * Invariant: two homes on one Temporal server never share the queue of workflows, and share workers only where both name the same pool.
 */

/** The stages of a campaign, in order; `--until` names one. */
export const stages = ['rollouts', 'selection', 'capabilities', 'router', 'evaluation'] as const;
export type Stage = (typeof stages)[number];
export const LAST_STAGE: Stage = 'evaluation';

export const taskQueues = {
  /** Of a store: its workflows run there, and the short steps. */
  control: (store: string): string => `control-${store}`,
  /** Of a pool: workers with one store, whose policy server serves one base model. */
  rollouts: (pool: string): string => `rollouts-${pool}`,
  gpu: (pool: string): string => `gpu-${pool}`,
} as const;

export const BACKOFF = { firstMs: 1_000, factor: 2, longestMs: 300_000 } as const;

/** After the attempt of this number, the first of which is 1. */
export const backoffMs = (attempt: number): number =>
  Math.min(BACKOFF.longestMs, BACKOFF.firstMs * BACKOFF.factor ** (attempt - 1));

/** Attempts with half an hour of waiting between the first and the last: who has failed so often is not helped by one more. */
export const ROUND = 14;
export const ROUND_MS = Array.from({ length: ROUND - 1 }, (_, n) => backoffMs(n + 1)).reduce((sum, ms) => sum + ms, 0);

/** Given to whatever may take long: to say how far it is and to hear that it should stop. */
export interface Work {
  progress(done: number, total: number): void;
  signal: AbortSignal;
}

/** Heartbeat details of the long activities. */
export interface RolloutHeartbeat {
  kind: 'rollouts';
  title: string;
  done: number;
  total: number;
  broken: number;
}
export interface TrainHeartbeat {
  kind: 'train';
  step: number;
  /** Absent where nobody knows how many there will be. */
  steps?: number;
  /** Mean reward of the last finished step. */
  reward?: number;
  rollouts?: { done: number; total: number };
  /** What it can't go on without, for people: "the trainer to start", "the policy server: connection refused". */
  waitsFor?: string;
}
export interface AnalysisHeartbeat {
  kind: 'analysis';
  title: string;
  done: number;
  total: number;
  /** Of replies of language models, what has come by now. */
  characters?: number;
}
