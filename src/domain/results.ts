/** What the steps of a campaign hand to one another through the workflow: small summaries and references, never data. */
import { z } from 'zod';
import type { Decision } from './approval';
import { artifactRefSchema, type ArtifactRef } from './artifacts';
import type { BaseCheck } from './base-check';
import type { CalibrationReport } from './calibration';
import type { Campaign } from './campaign';
import type { Candidate } from './capability';
import type { Composite } from './composite';
import type { Purpose } from './purposes';
import { fixedPolicySchema, type FixedPolicy } from './rollout';
import type { Stage } from './stages';

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
  /** Scored rollouts by why they ended. */
  stopReasons: Record<string, number>;
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

export const selfTestSchema = z.object({
  passed: z.boolean(),
  findings: z.array(z.string()),
  /** The environment gives hints. */
  hints: z.boolean().optional(),
  /** It gives easier instances. */
  easier: z.boolean().optional(),
});
export type SelfTest = z.infer<typeof selfTestSchema>;

/** What helps a policy that hardly ever succeeds. */
export interface Aids {
  /** Share of each seed's rollouts that are shown the hint. */
  hints?: number;
  /** Share of the instances that are the easier ones. */
  easier?: number;
}

export interface AidedCalibration extends Aids {
  calibration: CalibrationReport;
  calibrationRollouts: RolloutSummary;
}
export type AidedFeedback = Omit<AidedCalibration, 'calibrationRollouts'>;

/** One version of a synthesized environment and what was found of it; calibration is absent where the self-test failed. */
export interface SynthesisRound {
  round: number;
  module: ArtifactRef;
  selfTest: SelfTest;
  calibration?: CalibrationReport;
  calibrationRollouts?: RolloutSummary;
  /** Where that missed the bands for want of success: the same with hints, then with easier instances too. The last one counts. */
  aided?: AidedCalibration[];
  /** What was decided of it, where somebody was asked. */
  decision?: Decision;
}

/** What was found of a version, for whoever revises it: findings, or a rejection, or bands that were missed. */
export interface RoundFeedback {
  /** Of the self-test. */
  findings: readonly string[];
  /** Why a person rejected a version that is within the bands, in their words. */
  rejection?: string;
  calibration?: CalibrationReport;
  /** The same with hints, and with easier instances too. */
  aided?: readonly AidedFeedback[];
}

export const aidsIn = ({ hints, easier }: Aids): Aids => ({
  ...(hints !== undefined && { hints }),
  ...(easier !== undefined && { easier }),
});

export const aidNames = ({ hints, easier }: Aids): string =>
  [...(hints === undefined ? [] : ['hints']), ...(easier === undefined ? [] : ['easier instances'])].join(' and ');

/** Whether a round's environment is within the bands, as it is, with hints, or with easier instances too. */
export const isCalibrated = ({ calibration, aided }: SynthesisRound): boolean =>
  (aided?.at(-1)?.calibration ?? calibration)?.accepted === true;

/** What a round's environment was accepted with; nothing as it is, or where it was not. */
export function acceptedWith({ aided }: Pick<SynthesisRound, 'aided'>): Aids {
  const last = aided?.at(-1);
  return last?.calibration.accepted ? aidsIn(last) : {};
}

const count = z.number().int().nonnegative();
const checkpointSchema = z.object({ step: count, policy: fixedPolicySchema });
export type Checkpoint = z.infer<typeof checkpointSchema>;

export const trainingResultSchema = z.object({
  steps: count,
  rollouts: count,
  brokenRollouts: count,
  promptTokens: count,
  completionTokens: count,
  /** metrics.jsonl: one line per optimizer step; its provenance names the batches trained on. */
  metrics: artifactRefSchema,
  checkpoints: z.array(checkpointSchema),
});
export type TrainingResult = z.infer<typeof trainingResultSchema>;

/** A policy on the way of a training, or of whatever else an arm does. */
export interface Iteration {
  step: number;
  /** Training rollouts spent until here. */
  rollouts: number;
  policy: FixedPolicy;
  heldOut: RolloutSummary;
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
  trained?: Trained & {
    /** Before: what its training starts from, on the same tasks. */
    synthesized: { before: RolloutSummary; after: RolloutSummary };
    target: { before: RolloutSummary; after: RolloutSummary };
  };
}

/** What an arm came to. */
export interface ArmOutcome {
  /** In the order of rollouts spent; each was evaluated on the held-out train tasks of the target. */
  iterations: Iteration[];
  /** Where it trained. */
  training?: TrainingResult;
  /** Capabilities whose environments or adapters it takes over, and training rollouts of theirs that its iterations count. */
  builtOn?: { capability: string; rollouts: number }[];
  /** Synthesized environments that it trained on, how many of their training seeds, and which share of the instances were easier ones. */
  trainedOn?: { module: ArtifactRef; seeds: number; easier?: number }[];
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
  /** All adapters with learned weights, where that is an option. */
  weighted?: FixedPolicy;
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

/** Plain requests, where the campaign has them: what each policy answers, compared with what the base model does. */
export interface PlainResult {
  policies: { name: string; rollouts: RolloutSummary }[];
  /** By policy and request (src/domain/plain.ts). */
  measures?: ArtifactRef;
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
  plain?: PlainResult;
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

/**
 * The iterations that count at so many training rollouts, by rollouts. Where trace spent none there is nothing to be equal to, and all count:
 * the report shows what each has spent.
 */
export const withinBudget = (iterations: readonly Iteration[], spent: number): Iteration[] =>
  iterations.filter(({ rollouts }) => spent === 0 || rollouts <= spent).sort((a, b) => a.rollouts - b.rollouts);

/** What picks the best of several iterations. */
export const BEST_BY =
  'held-out success, then held-out mean reward (where instances have branches, the mean over these), then fewest rollouts';
/** Of iterations by rollouts: the first of equals is the one with the fewest. */
export function bestIteration(iterations: readonly Iteration[]): Iteration | undefined {
  const better = (a: Iteration, b: Iteration): boolean => {
    const [of, than] = [overBranches(a.heldOut), overBranches(b.heldOut)];
    return of.successRate !== than.successRate ? of.successRate > than.successRate : of.meanReward > than.meanReward;
  };
  const [first, ...others] = iterations;
  return first && others.reduce((best, next) => (better(next, best) ? next : best), first);
}

/** Every branch counts the same, however many of its instances were drawn: gains on one can't hide what another lost. */
function overBranches({ branches, ...all }: RolloutSummary): Pick<BranchSummary, 'meanReward' | 'successRate'> {
  const each = branches ? Object.values(branches) : [all];
  const mean = (of: 'meanReward' | 'successRate') => each.reduce((sum, branch) => sum + branch[of], 0) / each.length;
  return { meanReward: mean('meanReward'), successRate: mean('successRate') };
}
