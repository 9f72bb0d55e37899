/** An arm: one way to spend as many training rollouts as `trace`. It runs as a child workflow and comes to policies to be evaluated. */
import { armName, type Campaign } from '../../domain/campaign';
import type { ArtifactRef } from '../../domain/artifacts';
import type { LanguageModelSpec } from '../../domain/endpoints';
import type { Identity, Kind } from '../../domain/kinds';
import type { ArmOutcome, EndedCapability, Prepared } from '../../domain/results';
import type { ChildStatus } from '../status';
import { part } from '../steps';
import { practiceOn, train } from '../training';

export interface ArmContext {
  campaign: Campaign;
  prepared: Prepared;
  /** What the arm is called in this campaign. */
  name: string;
  /** Training rollouts: the most that `trace` may spend (all selected capabilities trained to their last step), or, `after`, what it spent. */
  budget: number;
  /** Of an arm that starts after them; empty otherwise. */
  capabilities: readonly EndedCapability[];
  status: ChildStatus;
}

/** Opened with its options, an arm is its way to an outcome. */
export type Arm = (context: ArmContext) => Promise<ArmOutcome>;

/** One entry of `arms` in a campaign. */
type ArmSpec = Campaign['arms'][number];

export interface ArmKind extends Kind<Arm> {
  /** Whether the router may give conversations to it. */
  readonly routable: boolean;
  /** A step takes `training.groupsPerStep` different tasks of the target's train tasks: so many there must be. */
  readonly trainsOnTarget?: true;
  /** It is trained on conversations, which trainer.kind local alone does. */
  readonly trainsOnConversations?: true;
  /** Beside the capabilities, or after them where it builds on what they made. */
  readonly starts: 'beside' | 'after';
  /** What `campaign plan` counts of one. */
  readonly planned: (spec: ArmSpec, plan: PlanContext) => PlannedArm;
  /** What of it is on the disk: looked at before any work starts. */
  readonly reads?: (spec: ArmSpec) => FileToRead;
  /** Of one that asks a language model: which, and the campaign file's field that names it. Throws BadInput where there is none. */
  readonly languageModel?: (spec: ArmSpec, campaign: Campaign) => { field: string; model: LanguageModelSpec };
}

/** Modules (docs/synthesis.md) in a folder, or a file of conversations (docs/conversations.md). */
type FileToRead = {
  /** Of the campaign file. */
  field: string;
  path: string;
} & ({ holds: 'modules' } | { holds: 'conversations'; minReward: number });

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

interface OnModules {
  modules: readonly ArtifactRef[];
  maker: Identity;
}

/** One LoRA on all of them, with the whole budget: as many seeds of each, two in a row. */
export async function trainOnModules(
  { campaign, prepared, name, budget, status }: ArmContext,
  { modules, maker }: OnModules,
): Promise<ArmOutcome> {
  const steps = stepsWithin(campaign, budget);
  const [first, ...others] = modules;
  if (!first) throw new Error('there is no module to train on');
  const count = steps * campaign.training.groupsPerStep;
  const { environment, tasks, trainedOn } = practiceOn(campaign, [first, ...others], count);
  const trained = await train({
    campaign,
    prepared,
    status,
    name,
    maker,
    environment,
    tasks,
    heldOut: part(prepared.plan, 'validation'),
    heldOutOn: campaign.target,
    steps,
  });
  return { ...trained, trainedOn };
}

/** The same on the environments of all capabilities that have a calibrated one. Throws if none has. */
export async function trainOnCapabilities(context: ArmContext, rest: Omit<OnModules, 'modules'>): Promise<ArmOutcome> {
  const calibrated = context.capabilities.flatMap(({ name, module }) => (module ? [{ module, capability: name }] : []));
  if (calibrated.length === 0) throw new Error('no capability has a calibrated environment to train on');
  const outcome = await trainOnModules(context, { ...rest, modules: calibrated.map(({ module }) => module) });
  return { ...outcome, builtOn: calibrated.map(({ capability }) => capability) };
}
