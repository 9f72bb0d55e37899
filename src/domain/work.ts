/**
 * How steps are dealt out, and tell how far they are.
 * Invariant: two homes on one Temporal server never share the queue of workflows, and share workers only where both name the same pool.
 */

/** The stages of a campaign, in order; `--until` names one. */
export const stages = ['rollouts', 'selection', 'capabilities', 'router', 'evaluation'] as const;
export type Stage = (typeof stages)[number];
export const LAST_STAGE: Stage = 'evaluation';

/** That curves are written for (trainer/metrics.py). */
export const metricsTools = ['tensorboard', 'trackio', 'wandb'] as const;
export type MetricsTool = (typeof metricsTools)[number];

export const taskQueues = {
  /** Of a store: its workflows run there, and the short steps. */
  control: (store: string): string => `control-${store}`,
  /** Of a pool: workers with one store, whose policy server serves one base model. */
  rollouts: (pool: string): string => `rollouts-${pool}`,
  gpu: (pool: string): string => `gpu-${pool}`,
} as const;

/** Of the steps that may take hours: its workers take them beside those of the other queue, so that none of minutes waits for one of them. */
export const longQueue = (queue: string): string => `long-${queue}`;

/** Exit code of a worker that stops by itself, since it failed all that it took; of any other program it is a crash. */
export const FAULTY = 3;

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
  /** Micro-batches of the step that is being trained. */
  update?: { done: number; total: number };
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
