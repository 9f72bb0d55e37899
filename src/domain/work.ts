/** Task queues, and heartbeats. Homes on one Temporal server share no queue of workflows, and workers only where both name the same pool. */
import type { Purpose } from './rollout';

/** The stages of a campaign, in order; `--until` names one. */
export const stages = ['rollouts', 'selection', 'capabilities', 'router', 'evaluation'] as const;
export type Stage = (typeof stages)[number];
export const LAST_STAGE: Stage = 'evaluation';

export const taskQueues = {
  /** One per store, for its workflows and their short steps. */
  control: (store: string): string => `campaign-control-${store}`,
  /** One per pool: workers with one store, whose policy server serves one base model. */
  rollouts: (pool: string): string => `campaign-rollouts-${pool}`,
  gpu: (pool: string): string => `campaign-gpu-${pool}`,
} as const;
export type QueueName = keyof typeof taskQueues;

export const storeOfQueue = (controlQueue: string): string => controlQueue.slice(taskQueues.control('').length);

/** The queue for steps of hours. The same workers poll it with slots of its own, so that short steps never wait. Names of pools have no dot. */
export const longQueue = (queue: string): string => `${queue}.long`;

/** Exit code of a worker that stops because all its steps failed; for any other program this code is a crash. */
export const FAULTY = 3;

export interface Work {
  progress(done: number, total: number): void;
  signal: AbortSignal;
}

interface StepHeartbeat {
  kind: 'rollouts' | 'analysis';
  title: string;
  done: number;
  total: number;
  /** Rollouts that failed outside the policy. */
  broken?: number;
}
export interface TrainHeartbeat {
  kind: 'train';
  /** Finished steps. Absent until it is known where the training begins. */
  step?: number;
  /** It was interrupted after `step`, and continues from there once its trainer has started. */
  continues?: true;
  /** Absent if the number of steps is not known in advance. */
  steps?: number;
  reward?: number;
  rollouts?: { done: number; total: number };
  /** Micro-batches of the step that is being trained. */
  update?: { done: number; total: number };
  /** The cause of a wait, for display: "the trainer to start", "the policy server: connection refused". */
  waitsFor?: string;
}

/** Counts of an activity's attempts by how they ended. */
export interface AttemptCounts {
  faults: number;
  /** Attempts that reported their end, and all up to the last one in which work became durable. Every other earlier attempt lost its worker. */
  settled: number;
}
export type HeartbeatDetails = (StepHeartbeat | TrainHeartbeat) & { counts?: AttemptCounts };

/** Scheduling of batches: `long` ones take all of the target's tasks and have a queue of their own; a `first` one delays a training. */
export const batchOrder: Record<Purpose, { long?: true; first?: true }> = {
  base_rollouts: { long: true },
  calibration: { first: true },
  training: {},
  held_out: {},
  outcome_matrix: { long: true },
  test: { long: true },
};
