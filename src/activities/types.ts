/** The activities as the workflows see them, by task queue. Workflows import this file's types only. */
import type { ArtifactRef } from '../domain/artifacts';
import type { CalibrationReport } from '../domain/calibration';
import type { CalibrationBands, Campaign, SelectionRule, Training } from '../domain/campaign';
import type { EnvironmentSpec } from '../domain/environment-spec';
import type { Candidate } from '../domain/capability';
import type {
  CampaignRecord,
  PlanPart,
  Prepared,
  RolloutSummary,
  RouterResult,
  SelectedCapability,
  TrainingResult,
} from '../domain/results';
import type { Policy, Sampling } from '../domain/rollout';

/** Which tasks: a part of the campaign's plan, seeds of a synthesized environment, or those that the router gave to an option. */
export type TaskSet =
  | { kind: 'plan'; plan: ArtifactRef; part: PlanPart }
  | { kind: 'seeds'; from: number; count: number }
  | { kind: 'assignment'; assignment: ArtifactRef; option: string };

export interface RollOutInput {
  purpose: string;
  environment: EnvironmentSpec;
  policy: Policy;
  tasks: TaskSet;
  /** Attempts at each task. */
  attempts: number;
  sampling: Sampling;
  maxSteps: number;
  seed: number;
  concurrency: number;
  maxAttempts: number;
}

export interface TrainInput {
  /** Derived from what is trained; names the trainer's folder, so that a retry resumes there. */
  name: string;
  environment: EnvironmentSpec;
  base: string;
  baseModelPath: string;
  tasks: TaskSet;
  training: Training;
  seed: number;
  maxTokens: number;
  maxSteps: number;
  concurrency: number;
  maxAttempts: number;
  /** A trainer that has the turn and says nothing for so long hangs, and is replaced. */
  stallSeconds: number;
}

export interface ControlActivities {
  prepare(input: { campaign: Campaign }): Promise<Prepared>;
  discover(input: {
    target: EnvironmentSpec;
    rule: SelectionRule;
    rollouts: ArtifactRef;
  }): Promise<{ ref: ArtifactRef; candidates: Candidate[] }>;
  label(input: {
    target: EnvironmentSpec;
    rollouts: ArtifactRef;
    candidates: ArtifactRef;
    pass: number;
    seed: number;
  }): Promise<ArtifactRef>;
  select(input: {
    rule: SelectionRule;
    candidates: ArtifactRef;
    labels: ArtifactRef[];
  }): Promise<{ ref: ArtifactRef; selected: SelectedCapability[] }>;
  synthesize(input: {
    target: EnvironmentSpec;
    plan: ArtifactRef;
    rollouts: ArtifactRef;
    candidate: Candidate;
    round: number;
    /** The round before: its module and what calibration said of it. */
    previous?: { module: ArtifactRef; calibration: CalibrationReport };
  }): Promise<ArtifactRef>;
  selfTest(input: { module: ArtifactRef }): Promise<{ passed: boolean; findings: string[] }>;
  calibrate(input: { bands: CalibrationBands; rollouts: ArtifactRef }): Promise<CalibrationReport>;
  fitRouter(input: {
    target: EnvironmentSpec;
    seed: number;
    folds: number;
    outcomes: { option: string; rollouts: ArtifactRef }[];
  }): Promise<Pick<RouterResult, 'router' | 'helps'>>;
  route(input: {
    target: EnvironmentSpec;
    router: ArtifactRef;
    plan: ArtifactRef;
    /** Of the rollouts that are routed: what is routed by is what will be said in them. */
    seed: number;
  }): Promise<{ assignment: ArtifactRef; chosen: { option: string; tasks: number }[] }>;
  writeReport(input: { record: CampaignRecord }): Promise<{ report: ArtifactRef; html: ArtifactRef }>;
}

export interface RolloutActivities {
  rollOut(input: RollOutInput): Promise<RolloutSummary>;
}

export interface GpuActivities {
  train(input: TrainInput): Promise<TrainingResult>;
}
