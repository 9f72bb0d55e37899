/** Train one LoRA and evaluate its checkpoints: shared by capabilities and by arms that train. */
import type { TaskSet } from '../activities/types';
import type { Campaign } from '../domain/campaign';
import type { EnvironmentSpec } from '../domain/environment-spec';
import type { Identity } from '../domain/kind';
import type { Iteration, Prepared, TrainingResult } from '../domain/results';
import type { FixedPolicy, Hints } from '../domain/rollout';
import type { ChildStatus } from './child-status';
import { gpu, rollOut } from './steps';

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
  /** The adapters whose weighted sum it starts from; without it a fresh one. */
  from?: FixedPolicy['adapters'] | undefined;
  /** Of training alone: held-out rollouts are never hinted. */
  hints?: Hints | undefined;
}

/** Trains for `steps` and evaluates every checkpoint on the held-out tasks. */
export async function train(input: TrainInput): Promise<{ training: TrainingResult; iterations: Iteration[] }> {
  const { campaign, prepared, status, name, maker, environment, tasks, heldOut, steps, from, hints } = input;
  const { heldOutOn = environment } = input;
  status.set('train', `${steps} steps`);
  const training = await status.gate.interruptible(() =>
    gpu(campaign, `train a LoRA: ${name}`).train({
      name,
      maker,
      environment,
      base: prepared.base,
      baseModelPath: campaign.baseModel.path,
      ...(from && from.length > 0 && { from }),
      tasks,
      training: { ...campaign.training, steps },
      ...(hints && hints.share > 0 && { hints }),
      seed: campaign.trainingSeed ?? campaign.seed,
      maxTokens: campaign.rollouts.sampling.maxTokens,
      maxSteps: campaign.rollouts.maxSteps,
      concurrency: campaign.rollouts.concurrency,
      maxAttempts: campaign.rollouts.maxAttempts,
      heartbeatSeconds: campaign.workers.heartbeatSeconds,
      stallSeconds: campaign.workers.stallSeconds,
    }),
  );
  status.set('validate', `${training.checkpoints.length} checkpoints on held-out tasks`);
  const { groupsPerStep, groupSize } = campaign.training;
  const iterations = await status.gate.step(() =>
    Promise.all(
      training.checkpoints.map(async ({ step, policy }) => ({
        step,
        rollouts: step * groupsPerStep * groupSize,
        policy,
        heldOut: await rollOut(campaign, {
          purpose: 'held_out',
          title: `${name}: held out at step ${step}`,
          environment: heldOutOn,
          policy,
          tasks: heldOut,
          attempts: campaign.validation.trials,
        }),
      })),
    ),
  );
  return { training, iterations };
}
