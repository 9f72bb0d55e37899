/** What the steps of a campaign hand to one another through the workflow: small summaries and references, never data. */
import type { ArtifactRef } from './artifacts';
import type { CalibrationReport } from './calibration';
import type { Campaign } from './campaign';
import type { Stage } from './stages';
import type { Candidate } from './capability';

/** A finished batch of rollouts. */
export interface RolloutSummary {
  ref: ArtifactRef;
  purpose: string;
  scored: number;
  broken: number;
  meanReward: number;
  /** Share of the scored rollouts with reward >= 1. */
  successRate: number;
  promptTokens: number;
  completionTokens: number;
  seconds: number;
  /** Broken rollouts by type of error. */
  errors: Record<string, number>;
}

/** What `prepare` found out about the campaign's parts before any work started. */
export interface Prepared {
  /** Base model id: folder name and hash of its files. */
  base: string;
  target: { name: string; version: string };
  /** Task ids by part: `discovery`, `heldOut`, `router` (train split), `evaluation` (test split). */
  plan: ArtifactRef;
  tasks: { discovery: number; heldOut: number; router: number; evaluation: number };
}
export type PlanPart = keyof Prepared['tasks'];

export interface SelectedCapability {
  candidate: Candidate;
  votes: number;
}

export interface SynthesisRound {
  round: number;
  module: ArtifactRef;
  selfTest: { passed: boolean; findings: string[] };
  calibration?: CalibrationReport;
  calibrationRollouts?: RolloutSummary;
}

export interface Checkpoint {
  step: number;
  adapter: ArtifactRef;
}

export interface TrainingResult {
  steps: number;
  rollouts: number;
  brokenRollouts: number;
  promptTokens: number;
  completionTokens: number;
  /** metrics.jsonl: one line per optimizer step; its provenance names the batches trained on. */
  metrics: ArtifactRef;
  checkpoints: Checkpoint[];
}

export interface EvaluatedCheckpoint extends Checkpoint {
  heldOut: RolloutSummary;
}

interface Trained {
  training: TrainingResult;
  candidates: EvaluatedCheckpoint[];
  best: EvaluatedCheckpoint;
}

export interface CapabilityResult {
  name: string;
  workflowId: string;
  status: 'trained' | 'not_synthesized' | 'not_calibrated' | 'failed';
  reason?: string;
  rounds: SynthesisRound[];
  trained?: Trained & {
    /** Before: the base model on the same tasks. */
    synthesized: { before: RolloutSummary; after: RolloutSummary };
    target: { before: RolloutSummary; after: RolloutSummary };
  };
}

export interface ArmResult {
  name: string;
  workflowId: string;
  status: 'trained' | 'failed';
  reason?: string;
  trained?: Trained;
}

export interface RouterResult {
  router: ArtifactRef;
  options: string[];
  outcomes: { option: string; rollouts: RolloutSummary }[];
  helps: boolean;
}

export interface EvaluationResult {
  /** Base, each adapter, grpo_target: the same test tasks with one policy each. */
  options: { option: string; rollouts: RolloutSummary }[];
  /** The routed policy: which option was chosen for which task, and its rollouts by option. */
  trace?: { assignment: ArtifactRef; chosen: { option: string; rollouts: RolloutSummary }[] };
}

/** Everything that a campaign has found so far: the input of the report. Later stages are absent when it stopped before them. */
export interface CampaignRecord {
  campaign: Campaign;
  workflowId: string;
  /** Milliseconds since the epoch, by the workflow's clock. */
  startedAt: number;
  finishedAt: number;
  stageSeconds: Partial<Record<Stage, number>>;
  stoppedAfter?: Stage;
  prepared: Prepared;
  baseRollouts: RolloutSummary;
  /** The base model on the held-out part of the train split. */
  baseHeldOut?: RolloutSummary;
  selection?: {
    candidates: ArtifactRef;
    labels: ArtifactRef[];
    selection: ArtifactRef;
    selected: SelectedCapability[];
  };
  capabilities?: CapabilityResult[];
  arms?: ArmResult[];
  router?: RouterResult;
  evaluation?: EvaluationResult;
}
