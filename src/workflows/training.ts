/** Trains one LoRA and evaluates its checkpoints, for capabilities and for arms that train. */
import type { TaskSet } from '../activities/types';
import type { ArtifactRef } from '../domain/artifacts';
import { isCalibrated, type SynthesisRound } from '../domain/calibration';
import type { Campaign } from '../domain/campaign';
import { type EnvironmentSpec, type Identity, mixtureSpec, sandboxSpec } from '../domain/kinds';
import type { Prepared, TrainedWork, TrainingResult } from '../domain/results';
import { HELD_OUT_SEEDS, TRAINING_SEEDS } from '../domain/seeds';
import type { ChildStatus } from './status';
import { gpu, mapBounded, rollOut, rolloutSettings, seedTasks } from './steps';

export interface TrainInput {
  campaign: Campaign;
  prepared: Prepared;
  status: ChildStatus;
  name: string;
  /** Part of the training's key. */
  maker: Identity;
  environment: EnvironmentSpec;
  tasks: TaskSet;
  heldOut: TaskSet;
  /** Default: the environment that is trained on. */
  heldOutOn?: EnvironmentSpec;
  steps: number;
}

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

export async function evaluateCheckpoints(
  o: Pick<TrainInput, 'campaign' | 'status' | 'name' | 'heldOut'> & {
    heldOutOn: EnvironmentSpec;
    /** Training rollouts until a step, for checkpoints that do not say it. */
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

/** A person may have rejected a calibrated version. */
export const acceptedModule = (rounds: readonly SynthesisRound[]): ArtifactRef | undefined =>
  rounds.findLast((round) => isCalibrated(round) && round.decision?.kind !== 'reject')?.module;

export type TrainingSet = Pick<TrainInput, 'environment' | 'tasks' | 'heldOut'>;

/** Tasks of several modules alternate in pairs (`mixedTasks`): an instance and its twin of one module, then a pair of the next. */
export function trainingTasks(campaign: Campaign, modules: readonly ArtifactRef[], count: number): TrainingSet {
  const [module] = modules;
  const environment = module && modules.length === 1 ? sandboxSpec(module) : mixtureSpec(modules);
  const heldOut = seedTasks(campaign, { from: HELD_OUT_SEEDS, count: campaign.validation.seeds });
  return { environment, tasks: seedTasks(campaign, { from: TRAINING_SEEDS, count }), heldOut };
}
