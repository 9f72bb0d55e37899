/** Trains one LoRA and evaluates its checkpoints, for capabilities and for arms that train. */
import type { TaskSet } from '../activities/types';
import type { ArtifactRef } from '../domain/artifacts';
import { isCalibrated, type SynthesisRound } from '../domain/calibration';
import type { Campaign } from '../domain/campaign';
import { type EnvironmentSpec, type Identity, mixtureSpec, sandboxSpec } from '../domain/kinds';
import type { Prepared, TrainedOn, TrainedWork, TrainingResult } from '../domain/results';
import { HELD_OUT_SEEDS, seedsOfEach, TRAINING_SEEDS } from '../domain/seeds';
import type { ChildStatus } from './status';
import { gpu, mapBounded, rollOut, rolloutSettings, seeds as seedsOf } from './steps';

export interface TrainInput {
  campaign: Campaign;
  prepared: Prepared;
  status: ChildStatus;
  name: string;
  /** Identifies who asked for the training, as a part of its key. */
  maker: Identity;
  environment: EnvironmentSpec;
  tasks: TaskSet;
  heldOut: TaskSet;
  /** The environment of the held-out tasks, if it is not the one that is trained on. */
  heldOutOn?: EnvironmentSpec;
  steps: number;
}

/** Trains for `steps` and evaluates every checkpoint on the held-out tasks. */
export async function train(input: TrainInput): Promise<TrainedWork> {
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
    stallSeconds: campaign.workers.stallSeconds,
    ...rolloutSettings(campaign),
  });
  const { groupsPerStep, groupSize } = settings;
  const rolloutsAt = (step: number) => step * groupsPerStep * groupSize;
  return evaluateCheckpoints({ ...input, heldOutOn, rolloutsAt }, training);
}

/** Evaluates every checkpoint on the held-out tasks. */
export async function evaluateCheckpoints(
  o: Pick<TrainInput, 'campaign' | 'status' | 'name' | 'heldOut'> & {
    heldOutOn: EnvironmentSpec;
    /** Returns the training rollouts spent until a step, for checkpoints that do not say it. */
    rolloutsAt?: (step: number) => number;
  },
  training: TrainingResult,
): Promise<TrainedWork> {
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
  return (status.work = { training, iterations });
}

/** Returns the accepted version of a capability's environment; undefined if there is none. */
export const acceptedModule = (rounds: readonly SynthesisRound[]): ArtifactRef | undefined =>
  rounds.findLast(isCalibrated)?.module;

interface TrainingTasks {
  environment: EnvironmentSpec;
  tasks: TaskSet;
  /** Held-out seeds of the same environment. */
  heldOut: TaskSet;
  trainedOn: TrainedOn[];
}

/** Returns `count` training seeds of the modules, interleaved in pairs if there are several. */
export function trainingTasks(
  campaign: Campaign,
  modules: readonly [ArtifactRef, ...ArtifactRef[]],
  count: number,
): TrainingTasks {
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
