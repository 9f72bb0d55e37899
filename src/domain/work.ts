/**
 * How steps are dealt out, and tell how far they are: of every activity the queue that its workers take it from, and what it does, as `campaign watch`
 * says it. One that has no entry, and an entry without an activity, do not compile (src/activities/index.ts).
 * Invariant: two homes on one Temporal server never share the queue of workflows, and share workers only where both name the same pool.
 */
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

/** The store whose control queue this is. */
export const storeOfQueue = (controlQueue: string): string => controlQueue.slice(taskQueues.control('').length);

/**
 * The queue for steps that may take hours. The same workers poll it with slots of its own, so that short steps never wait behind long ones. Names of
 * pools have no dot.
 */
export const longQueue = (queue: string): string => `${queue}.long`;

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
  /** Finished steps. Absent until it is known where the training begins. */
  step?: number;
  /** It was interrupted after `step`, and continues from there once its trainer has started. */
  continues?: true;
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

/** How many attempts of an activity ended in which way. */
export interface AttemptCounts {
  /** Failures of the step's own doing. */
  faults: number;
  /** Attempts that reported their end, and all up to the last one in which work became durable. Every other earlier attempt lost its worker. */
  settled: number;
}
export type HeartbeatDetails = (AnalysisHeartbeat | RolloutHeartbeat | TrainHeartbeat) & { counts?: AttemptCounts };

export interface ActivityEntry {
  queue: QueueName;
  doing: string;
}

export const activities = {
  prepare: { queue: 'control', doing: 'checking the parts and splitting the tasks' },
  discover: { queue: 'control', doing: 'looking for capabilities' },
  label: { queue: 'control', doing: 'labeling trajectories' },
  select: { queue: 'control', doing: 'selecting capabilities' },
  synthesize: { queue: 'control', doing: 'writing the environment' },
  selfTest: { queue: 'control', doing: 'testing the environment' },
  calibrate: { queue: 'control', doing: 'holding the rewards against the bands' },
  takeModules: { queue: 'control', doing: 'taking over the environments' },
  recallDecision: { queue: 'control', doing: 'looking for an earlier decision' },
  keepDecision: { queue: 'control', doing: 'keeping the decision' },
  findGains: { queue: 'control', doing: 'comparing the adapters' },
  writeReport: { queue: 'control', doing: 'writing the report' },
  rollOut: { queue: 'rollouts', doing: 'beginning rollouts' },
  // It makes rollouts, and needs no GPU.
  searchPrompt: { queue: 'rollouts', doing: 'beginning to search for a prompt' },
  checkBase: { queue: 'rollouts', doing: 'looking at the base model' },
  checkAdapters: {
    queue: 'rollouts',
    doing: 'trying the policy server with an adapter that changes nothing',
  },
  // A router may ask the policy.
  fitRouter: { queue: 'rollouts', doing: 'fitting the router' },
  train: { queue: 'gpu', doing: 'beginning to train' },
} as const satisfies Record<string, ActivityEntry>;

/** Of batches of rollouts: `long` ones take all of the target's tasks and have a queue of their own; a training waits for a calibration. */
export const batchOrder: Record<Purpose, { long?: true; first?: true }> = {
  base_rollouts: { long: true },
  calibration: { first: true },
  training: {},
  held_out: {},
  outcome_matrix: { long: true },
  test: { long: true },
};

export type ActivityName = keyof typeof activities;
/** Of the activities on one queue. */
export type ActivityOn<Queue extends ActivityEntry['queue']> = {
  [Name in ActivityName]: (typeof activities)[Name]['queue'] extends Queue ? Name : never;
}[ActivityName];

export const activityEntry = (name: string): ActivityEntry | undefined =>
  name in activities ? activities[name as ActivityName] : undefined;
