/** An arm: one way to spend as many training rollouts as `trace`. It runs as a child workflow and comes to policies to be evaluated. */
import { armName, type Campaign } from '../../domain/campaign';
import type { LanguageModelSpec } from '../../domain/endpoints';
import type { Kind } from '../../domain/kinds';
import type { ArmOutcome, CapabilityResult, Prepared } from '../../domain/results';
import type { ChildStatus } from '../status';

export interface ArmContext {
  campaign: Campaign;
  prepared: Prepared;
  /** What the arm is called in this campaign. */
  name: string;
  /** Training rollouts: the most that `trace` may spend (all selected capabilities trained to their last step), or, `after`, what it spent. */
  budget: number;
  /** Of an arm that starts after them; empty otherwise. */
  capabilities: readonly CapabilityResult[];
  status: ChildStatus;
}

/** Opened with its options, an arm is its way to an outcome. */
export type Arm = (context: ArmContext) => Promise<ArmOutcome>;

/** One entry of `arms` in a campaign. */
type ArmSpec = Campaign['arms'][number];

export interface ArmKind extends Kind<Arm> {
  /** A step takes `training.groupsPerStep` different tasks of the target's train tasks: so many there must be. */
  readonly trainsOnTarget?: true;
  /** Whether it builds on what the capabilities made, and so starts after them. The others start beside them. */
  readonly buildsOnCapabilities?: (spec: ArmSpec) => boolean;
  /** What `campaign plan` counts of one. */
  readonly planned: (spec: ArmSpec, plan: PlanContext) => PlannedArm;
  /** The folder of modules that it reads, which is checked before any work starts. `field` is the campaign file's field that names the folder. */
  readonly reads?: (spec: ArmSpec) => { field: string; path: string } | undefined;
  /** Of one that asks a language model: which, and the campaign file's field that names it. Throws BadInput where there is none. */
  readonly languageModel?: (spec: ArmSpec, campaign: Campaign) => { field: string; model: LanguageModelSpec };
}

/** An option of an arm, as messages name it. */
export const fieldOf = (spec: ArmSpec, option: string): string => `arms.${armName(spec)}.${option}`;

interface PlanContext {
  campaign: Campaign;
  /** Selected ones: all come to an adapter. */
  capabilities: number;
  budget: number;
}
interface PlannedArm {
  /** Training rollouts of its own. */
  training: number;
  /** Policies that are evaluated on the held-out tasks. */
  heldOut: number;
  /** Of one that has prompts written: what a try costs in rollouts. */
  reflection?: { minibatchSize: number; validationTasks: number };
}

/** Of one training step. */
const stepRollouts = ({ training }: Campaign): number => training.groupsPerStep * training.groupSize;

/** Whole training steps of so many rollouts. Throws if there is not one. */
export function stepsWithin(campaign: Campaign, rollouts: number): number {
  const steps = Math.floor(rollouts / stepRollouts(campaign));
  if (steps > 0) return steps;
  const { groupsPerStep, groupSize } = campaign.training;
  const needs = `a training step takes ${groupsPerStep} x ${groupSize} (training.groupsPerStep x training.groupSize)`;
  throw new Error(`it may spend ${rollouts} training rollouts, and ${needs}`);
}

/** With so many training rollouts; a trainer saves every so many steps and at its end, and each checkpoint is evaluated. */
function plannedTraining(campaign: Campaign, rollouts: number): PlannedArm {
  const steps = Math.floor(rollouts / stepRollouts(campaign));
  return { training: steps * stepRollouts(campaign), heldOut: Math.ceil(steps / campaign.training.checkpointEvery) };
}

/** Of one that trains one LoRA with its whole budget. */
export const plannedWhole: ArmKind['planned'] = (_spec, { campaign, budget }) => plannedTraining(campaign, budget);
