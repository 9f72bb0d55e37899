/** What the steps of a campaign hand to one another through the workflow: small summaries and references, never data. */
import type { Decision } from './approval';
import type { ArtifactRef } from './artifacts';
import type { BaseCheck } from './base-check';
import type { Campaign } from './campaign';
import type { Candidate } from './capability';
import type { Composite } from './composite';
import type { Iteration, TrainingResult } from './iterations';
import type { FixedPolicy } from './rollout';
import type { RolloutSummary } from './rollout-summary';
import type { Stage } from './stages';
import type { SynthesisRound } from './synthesis-round';

/** What `prepare` found out about the campaign's parts before any work started. */
export interface Prepared {
  /** Base model id: folder name and hash of its files. */
  base: string;
  /** Whose workers make its rollouts and trainings: what the campaign file names, or one of this store and this base model. */
  pool: string;
  target: { name: string; version: string; notes?: string[] };
  /** Task ids by part: `discovery`, `heldOut`, `router` (train split), `evaluation` (test split). */
  plan: ArtifactRef;
  tasks: { discovery: number; heldOut: number; router: number; evaluation: number };
}
export type PlanPart = keyof Prepared['tasks'];

export interface SelectedCapability {
  candidate: Candidate;
  votes: number;
}

export interface SelectionResult {
  candidates: ArtifactRef;
  labels: ArtifactRef[];
  /** Passes that failed for good: they are left out, and votes still count out of all passes. */
  failedPasses: { pass: number; reason: string }[];
  selection: ArtifactRef;
  selected: SelectedCapability[];
  /** What was decided of them, where somebody was asked: `selected` are those that it left, as it left them. */
  decision?: Decision;
  /** Of those that failures need together. */
  composite?: Composite;
  /** Why there is none, where one was looked for. */
  noComposite?: string;
}

interface Trained {
  training: TrainingResult;
  iterations: Iteration[];
  best: Iteration;
}

export interface CapabilityResult {
  name: string;
  workflowId: string;
  status: 'trained' | 'not_synthesized' | 'not_calibrated' | 'not_approved' | 'not_started' | 'failed';
  reason?: string;
  rounds: SynthesisRound[];
  /** Of a composite: its pairs. Its training starts from the sum of their adapters, not from the base model. */
  parts?: Candidate['parts'];
  /** Of a composite whose environment is those of its parts. */
  trainedOn?: TrainedOn[];
  trained?: Trained & {
    /** Before: what its training starts from, on the same tasks. */
    synthesized: { before: RolloutSummary; after: RolloutSummary };
    target: { before: RolloutSummary; after: RolloutSummary };
  };
}

/** A synthesized environment of others that was trained on, how many of its training seeds, and which share of the instances were easier ones. */
export interface TrainedOn {
  module: ArtifactRef;
  seeds: number;
  easier?: number;
}

/** What an arm came to. */
export interface ArmOutcome {
  /** In the order of rollouts spent; each was evaluated on the held-out train tasks of the target. */
  iterations: Iteration[];
  /** Where it trained. */
  training?: TrainingResult;
  /** Capabilities whose environments it takes over. */
  builtOn?: string[];
  trainedOn?: TrainedOn[];
  /** How many conversations that somebody brought it trained on. */
  conversations?: number;
}

export interface ArmResult extends Partial<ArmOutcome> {
  name: string;
  kind: string;
  workflowId: string;
  status: 'done' | 'failed';
  reason?: string;
  /** Whether the router may give conversations to it. */
  routable: boolean;
  /** The best iteration among those within the training rollouts that `trace` spent: what is evaluated. */
  best?: Iteration;
}

export interface RouterResult {
  /** Absent where it could not be fitted: then nothing is routed. */
  router?: ArtifactRef;
  /** Why it could not. */
  reason?: string;
  /** What a conversation can be given to. */
  options: string[];
  /** Those of the options that are sums of adapters: their parts. */
  sums: string[][];
  /** Why adapters were not added up, where there are several. */
  noSums?: string;
  /** All adapters with learned weights or behind a gate, where these are options. */
  learned?: { name: string; policy: FixedPolicy }[];
  /** Also of sums that were tried and are no options. */
  outcomes: { option: string; rollouts: RolloutSummary }[];
  /** Options that are left out, since their rollouts could not be made. */
  failed?: { name: string; reason: string }[];
}

export interface EvaluationResult {
  /** Base, each adapter, each arm, and `trace`, the routed policy: the same test tasks with one policy each. */
  policies: { name: string; rollouts: RolloutSummary }[];
  /** Those that could not be evaluated. */
  failed: { name: string; reason: string }[];
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
  /** What was found before the base rollouts; its problems are those of a campaign that was forced to go on. */
  baseCheck?: BaseCheck;
  baseRollouts: RolloutSummary;
  /** The base model on the held-out part of the train split. */
  baseHeldOut?: RolloutSummary;
  selection?: SelectionResult;
  capabilities?: CapabilityResult[];
  arms?: ArmResult[];
  router?: RouterResult;
  evaluation?: EvaluationResult;
}

/** The training rollouts that `trace` spent: those of the capabilities that came to an adapter, and of the arms that it may route to. */
export function rolloutsOfTrace({
  capabilities = [],
  arms = [],
}: Pick<CampaignRecord, 'capabilities' | 'arms'>): number {
  const ofArm = ({ routable, iterations = [] }: ArmResult): number =>
    routable ? (iterations.at(-1)?.rollouts ?? 0) : 0;
  return (
    capabilities.reduce((sum, { trained }) => sum + (trained?.training.rollouts ?? 0), 0) +
    arms.reduce((sum, arm) => sum + ofArm(arm), 0)
  );
}
