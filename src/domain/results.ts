/** Results that the steps of a campaign pass through the workflow: small summaries and references, never data; and the choice of the best iteration. */
import { z } from 'zod';
import type { Decision } from './approval';
import { type ArtifactRef, artifactRefSchema } from './artifacts';
import type { BaseCheck } from './base-check';
import type { SynthesisRound } from './calibration';
import type { Campaign, Stage } from './campaign';
import type { Candidate } from './capability';
import { type FixedPolicy, fixedPolicySchema, type RolloutSummary } from './rollout';
import { comparable, mean } from './statistics';

/** The subsets of a target's tasks. `train`, `validation` and `router` are of its train split; the router is fitted on tasks of the first two. */
export const subsets = ['train', 'validation', 'router', 'test'] as const;
export type Subset = (typeof subsets)[number];

/** The result of `prepare`, which checks the campaign's parts before any work starts. */
export interface Prepared {
  base: string;
  /** The pool of workers: the one that the campaign file names, or that of this store and this base model. */
  pool: string;
  target: { name: string; version: string; notes?: string[] };
  plan: ArtifactRef;
  tasks: Record<Subset, number>;
}

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
  /** A person's decision, if the campaign asks for one; `selected` is its result. */
  decision?: Decision;
}

/** Outcome of a campaign or a child. A capability without an environment to train on is `not_trained`. */
export type CampaignOutcome = 'completed' | 'failed' | 'cancelled' | 'not_trained';

export interface CampaignChild {
  workflowId: string;
  kind: 'capability' | 'arm';
  name: string;
}

export interface TrainedWork {
  training: TrainingResult;
  /** The checkpoints by rollouts spent, evaluated on held-out tasks; empty where it failed before all were. */
  iterations: Iteration[];
}

interface Ended {
  name: string;
  workflowId: string;
  status: CampaignOutcome;
  reason?: string;
  work?: TrainedWork;
  best?: Iteration;
}

/** The target's train tasks that a capability is trained on, with synthesizer `target_tasks`. */
export interface ChosenTasks {
  /** A plan: its `train` tasks are trained on, its `validation` tasks are held out. */
  plan: ArtifactRef;
  /** Labelled LACKING or PRESENT in most passes, and chosen; `mixed` ones are left out. */
  counts: { lacking: number; present: number; mixed: number; heldOut: number };
}

export interface CapabilityResult extends Ended {
  rounds: SynthesisRound[];
  tasks?: ChosenTasks;
  /** The base model before and the best iteration after, on the same held-out tasks; set where the status is `completed`. */
  validation?: {
    synthesized: { before: RolloutSummary; after: RolloutSummary };
    target: { before: RolloutSummary; after: RolloutSummary };
  };
}

export interface ArmResult extends Ended {
  kind: string;
  builtOn?: string[];
  /** Modules whose training seeds it was trained on. */
  trainedOn?: ArtifactRef[];
}

export type ChildResult = CapabilityResult | ArmResult;

export type ArmOutcome = { work: TrainedWork } & Pick<ArmResult, 'builtOn' | 'trainedOn'>;

export interface PolicyBatches {
  policies: { name: string; rollouts: RolloutSummary }[];
  failed: { name: string; reason: string }[];
}

/** `policies` are those of the outcome matrix, also merged adapters that are no option. */
export interface RouterResult extends PolicyBatches {
  /** Absent where it could not be fitted: then nothing is routed. */
  router?: ArtifactRef;
  reason?: string;
  options: string[];
  merged: string[][];
  notMerged?: string;
}

/** Texts that campaigns make, compared with the texts of the test tasks. */
export interface LeakageCheck {
  passed: boolean;
  textsChecked: number;
  testTasks: number;
  hits: { where: string; task: string }[];
  from: ArtifactRef[];
}

/** All results of a campaign, from which the report is made. Results of later stages are absent when it stopped before them. */
export interface CampaignRecord {
  campaign: Campaign;
  workflowId: string;
  /** Milliseconds since the epoch, by the workflow's clock. */
  startedAt: number;
  finishedAt: number;
  stageSeconds: Partial<Record<Stage, number>>;
  stoppedAfter?: Stage;
  prepared: Prepared;
  /** The check before the base rollouts; it has problems only if the campaign was forced to continue. */
  baseCheck?: BaseCheck;
  baseRollouts: RolloutSummary;
  baseHeldOut?: RolloutSummary;
  selection?: SelectionResult;
  capabilities?: CapabilityResult[];
  arms?: ArmResult[];
  router?: RouterResult;
  /** Base, each adapter, each arm, and `trace`, the routed policy, on the test tasks. */
  evaluation?: PolicyBatches;
}

/** Returns the steps and children that failed, for display. Running them again may help. */
export function failedIn(record: Partial<CampaignRecord>): string[] {
  const { selection, capabilities = [], arms = [], router, evaluation } = record;
  return [
    ...(selection?.failedPasses ?? []).map(({ pass }) => `labeling pass ${pass + 1}`),
    ...capabilities.flatMap(({ name, status }) => (status === 'failed' ? [name] : [])),
    // One that has a result did not fail, but spent too much to be compared.
    ...arms.flatMap(({ name, status, work }) => (status === 'failed' && !work?.iterations.length ? [name] : [])),
    ...(router?.reason === undefined ? [] : ['router']),
    ...(router?.failed ?? []).map(({ name }) => `${name} on the router's tasks`),
    ...(evaluation?.failed ?? []).map(({ name }) => `${name} on the test tasks`),
  ];
}

/** The training rollouts that `trace` spent: those of all capabilities, also of one that failed after its training. */
export const rolloutsOfTrace = (capabilities: readonly CapabilityResult[]): number =>
  capabilities.reduce((sum, one) => sum + (one.work?.training.rollouts ?? 0), 0);

const count = z.number().int().nonnegative();
const checkpointSchema = z.object({
  step: count,
  policy: fixedPolicySchema,
  /** Rollouts spent until this step; present for searches, whose steps differ in size. */
  rollouts: count.optional(),
});
export type Checkpoint = z.infer<typeof checkpointSchema>;

export const trainingResultSchema = z.object({
  steps: count,
  rollouts: count,
  brokenRollouts: count,
  promptTokens: count,
  completionTokens: count,
  /** The share that is reused from the campaign's base rollouts: a search rolls out the unchanged base model on the same tasks. */
  shared: z.object({ rollouts: count, promptTokens: count, completionTokens: count }).optional(),
  /** metrics.jsonl: one line per optimizer step; its provenance names the batches trained on. */
  metrics: artifactRefSchema,
  checkpoints: z.array(checkpointSchema),
});
export type TrainingResult = z.infer<typeof trainingResultSchema>;

export interface Iteration {
  step: number;
  rollouts: number;
  policy: FixedPolicy;
  heldOut: RolloutSummary;
}

/** Returns the iterations within `spent` training rollouts, sorted by rollouts; all iterations if trace spent none. */
export const withinBudget = (iterations: readonly Iteration[], spent: number): Iteration[] =>
  iterations.filter(({ rollouts }) => spent === 0 || rollouts <= spent).sort((a, b) => a.rollouts - b.rollouts);

export const BEST_BY =
  'held-out success, then held-out mean reward (where instances have branches, the mean over these), then fewest rollouts';
/** Returns the best of iterations that are sorted by rollouts; the first of equals has the fewest. */
export function bestIteration(iterations: readonly Iteration[]): Iteration | undefined {
  const better = (a: Iteration, b: Iteration): boolean => {
    const [of, than] = [overBranches(a.heldOut), overBranches(b.heldOut)];
    return of.successRate !== than.successRate ? of.successRate > than.successRate : of.meanReward > than.meanReward;
  };
  const [first, ...others] = iterations;
  return first && others.reduce((best, next) => (better(next, best) ? next : best), first);
}

/** Every branch counts the same, however many of its instances were drawn: gains on one can't hide what another lost. */
function overBranches({ branches, ...all }: RolloutSummary): { meanReward: number; successRate: number } {
  const each = branches ? Object.values(branches) : [all];
  return {
    meanReward: comparable(mean(each.map(({ meanReward }) => meanReward))),
    successRate: comparable(mean(each.map(({ successRate }) => successRate))),
  };
}
