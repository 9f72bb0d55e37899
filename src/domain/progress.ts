/** What long work tells of itself. Invariant: observed progress, never a timer's tick. */

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
