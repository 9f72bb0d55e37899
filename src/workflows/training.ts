/** Train one LoRA and keep its best iteration: shared by capabilities and by arms that train. */
import type { TaskSet } from '../activities/types';
import type { Campaign } from '../domain/campaign';
import type { EnvironmentSpec } from '../domain/environment-spec';
import type { EvaluatedCheckpoint, Prepared, TrainingResult } from '../domain/results';
import type { PauseGate } from './pause';
import { adapterPolicy, gpu, rollOut } from './steps';

export interface TrainAndPickInput {
  campaign: Campaign;
  prepared: Prepared;
  name: string;
  environment: EnvironmentSpec;
  tasks: TaskSet;
  heldOut: TaskSet;
  steps: number;
}

/** Trains for `steps`, evaluates every checkpoint on the held-out tasks, and picks the first of the best by success, then reward. */
export async function trainAndPick(
  gate: PauseGate,
  { campaign, prepared, name, environment, tasks, heldOut, steps }: TrainAndPickInput,
): Promise<{ training: TrainingResult; candidates: EvaluatedCheckpoint[]; best: EvaluatedCheckpoint }> {
  const training = await gate.interruptible(() =>
    gpu(campaign, `train a LoRA: ${name}`).train({
      name,
      environment,
      base: prepared.base,
      baseModelPath: campaign.baseModel.path,
      tasks,
      training: { ...campaign.training, steps },
      seed: campaign.seed,
      maxTokens: campaign.rollouts.sampling.maxTokens,
      maxSteps: campaign.rollouts.maxSteps,
      concurrency: campaign.rollouts.concurrency,
      maxAttempts: campaign.rollouts.maxAttempts,
      stallSeconds: 0.8 * campaign.workers.heartbeatSeconds,
    }),
  );
  const candidates = await gate.step(() =>
    Promise.all(
      training.checkpoints.map(async ({ step, adapter }) => ({
        step,
        adapter,
        heldOut: await rollOut(campaign, {
          purpose: `${name}: held out at step ${step}`,
          environment,
          policy: adapterPolicy(prepared.base, adapter),
          tasks: heldOut,
          attempts: campaign.validation.trials,
        }),
      })),
    ),
  );
  const best = candidates.reduce((a, b) => (isBetter(b, a) ? b : a));
  return { training, candidates, best };
}

function isBetter(a: EvaluatedCheckpoint, b: EvaluatedCheckpoint): boolean {
  if (a.heldOut.successRate !== b.heldOut.successRate) return a.heldOut.successRate > b.heldOut.successRate;
  return a.heldOut.meanReward > b.heldOut.meanReward;
}
