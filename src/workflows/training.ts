/** Trains one LoRA and evaluates its checkpoints: shared by capabilities and by arms that train. */
import type { TaskSet } from '../activities/types';
import type { ArtifactRef } from '../domain/artifacts';
import { isCalibrated, type SynthesisRound } from '../domain/calibration';
import type { Campaign } from '../domain/campaign';
import { type EnvironmentSpec, type Identity, mixtureSpec, sandboxSpec } from '../domain/kinds';
import type { Iteration, Prepared, TrainedOn, TrainingResult } from '../domain/results';
import { HELD_OUT_SEEDS, seedsOfEach, TRAINING_SEEDS } from '../domain/seeds';
import type { ChildStatus } from './status';
import { gpu, makingOf, mapBounded, rollOut, seeds as seedsOf, silenceOf } from './steps';

export interface TrainInput {
  campaign: Campaign;
  prepared: Prepared;
  status: ChildStatus;
  name: string;
  /** What it is trained for: part of the training's key. */
  maker: Identity;
  environment: EnvironmentSpec;
  tasks: TaskSet;
  heldOut: TaskSet;
  /** Where the held-out tasks are, if elsewhere than what it trains on. */
  heldOutOn?: EnvironmentSpec;
  steps: number;
}

/** Trains for `steps` and evaluates every checkpoint on the held-out tasks. */
export async function train(input: TrainInput): Promise<{ training: TrainingResult; iterations: Iteration[] }> {
  const { campaign, prepared, status, name, maker, environment, tasks, steps } = input;
  const { heldOutOn = environment } = input;
  const settings = { ...campaign.training, steps };
  status.set('train', `${steps} steps`);
  const training = await gpu(campaign, `train a LoRA: ${name}`).train({
    name,
    maker,
    environment,
    base: prepared.base,
    tasks,
    trainer: campaign.trainer,
    training: settings,
    seed: campaign.trainingSeed ?? campaign.seed,
    maxTokens: campaign.rollouts.sampling.maxTokens,
    thinking: campaign.rollouts.sampling.thinking,
    maxSteps: campaign.rollouts.maxSteps,
    ...makingOf(campaign),
    ...silenceOf(campaign),
  });
  const { groupsPerStep, groupSize } = settings;
  const rolloutsAt = (step: number) => step * groupsPerStep * groupSize;
  return { training, iterations: await iterationsOf({ ...input, heldOutOn, rolloutsAt }, training) };
}

/** Every checkpoint, evaluated on the held-out tasks. */
export async function iterationsOf(
  o: Pick<TrainInput, 'campaign' | 'status' | 'name' | 'heldOut'> & {
    heldOutOn: EnvironmentSpec;
    /** Training rollouts spent until a step, of a checkpoint that does not say it. */
    rolloutsAt?: (step: number) => number;
  },
  training: TrainingResult,
): Promise<Iteration[]> {
  const { campaign, status, name, heldOut, heldOutOn, rolloutsAt = () => 0 } = o;
  status.work = { training, iterations: [] };
  const { checkpoints } = training;
  status.set('validate', `${checkpoints.length} checkpoints on held-out tasks`);
  const iterations = await mapBounded(checkpoints, async ({ step, policy, rollouts = rolloutsAt(step) }) => ({
    step,
    rollouts,
    policy,
    heldOut: await rollOut(campaign, {
      purpose: 'held_out',
      title: `${name}: held out at step ${step}`,
      environment: heldOutOn,
      policy,
      tasks: heldOut,
      attempts: campaign.validation.trials,
    }),
  }));
  status.work = { training, iterations };
  return iterations;
}

/** The version of a capability's environment that is within the bands, if one is. */
export const acceptedModule = (rounds: readonly SynthesisRound[]): ArtifactRef | undefined =>
  rounds.findLast(isCalibrated)?.module;

export type TrainedModules = readonly [ArtifactRef, ...ArtifactRef[]];

export interface Practice {
  environment: EnvironmentSpec;
  tasks: TaskSet;
  /** Seeds of the same. */
  heldOut: TaskSet;
  trainedOn: TrainedOn[];
}

/** Returns `count` training seeds of the modules. Of several, two seeds of one follow two of another. */
export function practiceOn(campaign: Campaign, modules: TrainedModules, count: number): Practice {
  const [module, ...others] = modules;
  const training = { from: TRAINING_SEEDS, count };
  const held = { from: HELD_OUT_SEEDS, count: campaign.validation.seeds };
  const trainedOn = modules.map((one) => ({
    module: one,
    seeds: seedsOfEach(modules.length, count),
  }));
  if (others.length === 0)
    return {
      environment: sandboxSpec(module),
      tasks: seedsOf(campaign, training),
      heldOut: seedsOf(campaign, held),
      trainedOn,
    };
  const mixed = { kind: 'mixed', unlike: campaign.target } as const;
  return {
    environment: mixtureSpec(modules),
    tasks: { ...mixed, ...training },
    heldOut: { ...mixed, ...held },
    trainedOn,
  };
}
