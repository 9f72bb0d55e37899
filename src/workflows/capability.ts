/**
 * Runs one capability: synthesizes an environment, trains a LoRA on it and validates the best checkpoint. Returns its result, or throws a failure whose
 * details carry it; a cancellation and a campaign-wide failure (failures.ts) carry none.
 */
import { workflowInfo } from '@temporalio/workflow';
import type { ArtifactRef } from '../domain/artifacts';
import { bestIteration, type CapabilityResult } from '../domain/results';
import type { RolloutSummary } from '../domain/rollout';
import { ChildStatus, percent, withOutcome } from './status';
import { basePolicy, planTasks, rollOut } from './steps';
import { type SynthesisInput, synthesize } from './synthesis';
import { trainingTasks, train } from './training';

export interface CapabilityInput extends SynthesisInput {
  /** Rollouts of the base model on the target's held-out tasks. */
  baseHeldOut: RolloutSummary;
}

export const campaignCapability = (input: CapabilityInput): Promise<CapabilityResult> =>
  withOutcome(() => runCapability(input));

async function runCapability(input: CapabilityInput): Promise<CapabilityResult> {
  const { name } = input.candidate;
  const status = new ChildStatus(name);
  const result: CapabilityResult = { name, workflowId: workflowInfo().workflowId, status: 'failed', rounds: [] };
  try {
    const environment = await synthesize(input, result.rounds, status);
    if ('reason' in environment) {
      status.set('not_trained', environment.reason);
      return { ...result, status: 'not_trained', reason: environment.reason };
    }
    const trained = await trainAndValidate(input, environment.module, status);
    const { before, after } = trained.validation.synthesized;
    status.set('completed', `success ${percent(before.successRate)} -> ${percent(after.successRate)}`);
    return { ...result, status: 'completed', ...trained };
  } catch (error) {
    throw status.failure(result, error);
  }
}

async function trainAndValidate(
  { campaign, prepared, candidate: { name }, baseHeldOut }: CapabilityInput,
  module: ArtifactRef,
  status: ChildStatus,
): Promise<Required<Pick<CapabilityResult, 'work' | 'best' | 'validation'>>> {
  const { validation, target } = campaign;
  const { steps, groupsPerStep } = campaign.training;
  const { environment, tasks, heldOut } = trainingTasks(campaign, [module], steps * groupsPerStep);
  const work = await train({
    ...{ campaign, prepared, status, name, environment, tasks, heldOut, steps },
    maker: { kind: 'capability', version: '1', options: {} },
  });
  const best = bestIteration(work.iterations);
  if (!best) throw new Error(`the training of ${name} left no checkpoint`);
  status.set('validate', `step ${best.step} is the best iteration`);
  const batch = { purpose: 'held_out', attempts: validation.trials } as const;
  const [before, targetAfter] = await Promise.all([
    rollOut(campaign, {
      ...{ ...batch, environment, tasks: heldOut, policy: basePolicy(prepared.base) },
      title: `${name}: held out, base`,
    }),
    rollOut(campaign, {
      ...{ ...batch, environment: target, tasks: planTasks(prepared.plan, 'validation'), policy: best.policy },
      title: `${name}: held out on the target`,
    }),
  ]);
  return {
    work,
    best,
    validation: {
      synthesized: { before, after: best.heldOut },
      target: { before: baseHeldOut, after: targetAfter },
    },
  };
}
