/** An arm is a baseline: one way to spend as many training rollouts as `trace`. It runs as a child workflow and yields policies to evaluate. */
import { armName, type Campaign } from '../../domain/campaign';
import type { LanguageModelSpec } from '../../domain/endpoints';
import type { Kind } from '../../domain/kinds';
import type { ArmOutcome, CapabilityResult, Prepared } from '../../domain/results';
import type { ChildStatus } from '../status';

export interface ArmContext {
  campaign: Campaign;
  prepared: Prepared;
  /** The arm's name in this campaign. */
  name: string;
  /** Training rollouts that the arm may spend: the maximum of `trace`, or what `trace` spent if the arm starts after the capabilities. */
  budget: number;
  /** Results of the capabilities, for an arm that starts after them; empty otherwise. */
  capabilities: readonly CapabilityResult[];
  status: ChildStatus;
}

/** Runs an arm that was opened with its options. */
export type Arm = (context: ArmContext) => Promise<ArmOutcome>;

/** One entry of `arms` in a campaign. */
type ArmSpec = Campaign['arms'][number];

export interface ArmKind extends Kind<Arm> {
  /** Set for an arm whose steps take `training.groupsPerStep` different tasks of the target's train tasks: so many must exist. */
  readonly trainsOnTarget?: true;
  /** Returns whether the arm uses results of the capabilities, and so starts after them. The others start beside them. */
  readonly buildsOnCapabilities?: (spec: ArmSpec) => boolean;
  /** Returns the rollouts that `campaign check` counts. */
  readonly planned: (spec: ArmSpec, plan: PlanContext) => PlannedArm;
  /** Returns the folder of modules that the arm reads, which is checked before any work starts, and the campaign file's field that names it. */
  readonly reads?: (spec: ArmSpec) => { field: string; path: string } | undefined;
  /** Returns the language model that the arm calls, and the campaign file's field that names it. Throws BadInput if none is named. */
  readonly languageModel?: (spec: ArmSpec, campaign: Campaign) => { field: string; model: LanguageModelSpec };
}

/** Returns an option of an arm as messages name it. */
export const fieldOf = (spec: ArmSpec, option: string): string => `arms.${armName(spec)}.${option}`;

interface PlanContext {
  campaign: Campaign;
  /** Number of selected capabilities, each of which is taken to yield an adapter. */
  capabilities: number;
  budget: number;
}
interface PlannedArm {
  /** Training rollouts of the arm itself. */
  training: number;
  /** Number of policies that are evaluated on the held-out tasks. */
  heldOut: number;
  /** The rollouts of one attempt at a prompt, for an arm that searches for prompts. */
  reflection?: { minibatchSize: number; validationTasks: number };
}

/** Returns the rollouts of one training step. */
const stepRollouts = ({ training }: Campaign): number => training.groupsPerStep * training.groupSize;

/** Returns the number of whole training steps within so many rollouts. Throws if there is none. */
export function stepsWithin(campaign: Campaign, rollouts: number): number {
  const steps = Math.floor(rollouts / stepRollouts(campaign));
  if (steps > 0) return steps;
  const { groupsPerStep, groupSize } = campaign.training;
  const needs = `a training step takes ${groupsPerStep} x ${groupSize} (training.groupsPerStep x training.groupSize)`;
  throw new Error(`it may spend ${rollouts} training rollouts, and ${needs}`);
}

/** Plans a training: a trainer saves a checkpoint every `training.checkpointEvery` steps and at its end, and each is evaluated. */
function plannedTraining(campaign: Campaign, rollouts: number): PlannedArm {
  const steps = Math.floor(rollouts / stepRollouts(campaign));
  return { training: steps * stepRollouts(campaign), heldOut: Math.ceil(steps / campaign.training.checkpointEvery) };
}

/** Plans an arm that trains one LoRA with its whole budget. */
export const plannedWhole: ArmKind['planned'] = (_spec, { campaign, budget }) => plannedTraining(campaign, budget);
