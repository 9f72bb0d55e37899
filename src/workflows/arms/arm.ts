/** An arm is a baseline: another way to spend as many training rollouts as `trace`. */
import { armName, type Campaign } from '../../domain/campaign';
import type { LanguageModelSpec } from '../../domain/endpoints';
import type { Kind } from '../../domain/kinds';
import type { ArmOutcome, CapabilityResult, Prepared } from '../../domain/results';
import type { ChildStatus } from '../status';

export interface ArmContext {
  campaign: Campaign;
  prepared: Prepared;
  name: string;
  /** The most training rollouts of `trace`, or what it spent if the arm starts after the capabilities. */
  budget: number;
  /** Empty for an arm that starts beside the capabilities. */
  capabilities: readonly CapabilityResult[];
  status: ChildStatus;
}

export type Arm = (context: ArmContext) => Promise<ArmOutcome>;

type ArmSpec = Campaign['arms'][number];

export interface ArmKind extends Kind<Arm> {
  /** The target must have `training.groupsPerStep` train tasks. */
  readonly trainsOnTarget?: true;
  /** Returns whether the arm starts after the capabilities, whose results it uses. */
  readonly buildsOnCapabilities?: (spec: ArmSpec) => boolean;
  /** Returns what `campaign check` counts. */
  readonly planned: (spec: ArmSpec, plan: PlanContext) => PlannedArm;
  /** Returns the folder of modules that the arm reads, and the field that names it. */
  readonly reads?: (spec: ArmSpec) => { field: string; path: string } | undefined;
  /** Returns the language model that the arm calls, and the field that names it. */
  readonly languageModel?: (spec: ArmSpec, campaign: Campaign) => { field: string; model: LanguageModelSpec };
}

export const fieldOf = (spec: ArmSpec, option: string): string => `arms.${armName(spec)}.${option}`;

interface PlanContext {
  campaign: Campaign;
  capabilities: number;
  budget: number;
}
interface PlannedArm {
  training: number;
  heldOut: number;
  /** Rollouts of one attempt at a prompt. */
  reflection?: { minibatchSize: number; validationTasks: number };
}

const stepRollouts = ({ training }: Campaign): number => training.groupsPerStep * training.groupSize;

/** Throws if not even one training step fits. */
export function stepsWithin(campaign: Campaign, rollouts: number): number {
  const steps = Math.floor(rollouts / stepRollouts(campaign));
  if (steps > 0) return steps;
  const { groupsPerStep, groupSize } = campaign.training;
  const needs = `a training step takes ${groupsPerStep} x ${groupSize} (training.groupsPerStep x training.groupSize)`;
  throw new Error(`it may spend ${rollouts} training rollouts, and ${needs}`);
}

function plannedTraining(campaign: Campaign, rollouts: number): PlannedArm {
  const steps = Math.floor(rollouts / stepRollouts(campaign));
  return { training: steps * stepRollouts(campaign), heldOut: Math.ceil(steps / campaign.training.checkpointEvery) };
}

export const plannedWhole: ArmKind['planned'] = (_spec, { campaign, budget }) => plannedTraining(campaign, budget);
