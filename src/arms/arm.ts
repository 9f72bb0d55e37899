/** Kinds of arms as a campaign file names them. An arm is a baseline: another way to spend as many training rollouts as `trace`. */
import type { Campaign } from '../domain/campaign';
import type { LanguageModelSpec } from '../domain/endpoints';
import type { KindDescription } from '../domain/kinds';

type ArmSpec = Campaign['arms'][number];

/** src/workflows/arm.ts runs each kind. */
export interface ArmKind extends KindDescription {
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

export interface PlanContext {
  campaign: Campaign;
  capabilities: number;
  budget: number;
}
export interface PlannedArm {
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

/** Plans an arm that spends its budget on training steps. */
export function plannedWhole(_spec: ArmSpec, { campaign, budget }: PlanContext): PlannedArm {
  const steps = Math.floor(budget / stepRollouts(campaign));
  return { training: steps * stepRollouts(campaign), heldOut: Math.ceil(steps / campaign.training.checkpointEvery) };
}
