/**
 * Runs one capability: synthesizes an environment, trains a LoRA on it and validates the best checkpoint. Every outcome yields a CapabilityResult: it is
 * returned, or carried in the details of the failure that is thrown. The exceptions are a cancellation, a campaign-wide failure (failures.ts) and
 * a defect of the workflow code.
 */
import { workflowInfo } from '@temporalio/workflow';
import type { ArtifactRef } from '../domain/artifacts';
import { bestIteration, type CapabilityResult } from '../domain/results';
import type { RolloutSummary } from '../domain/rollout';
import { ChildStatus, percent, withOutcome } from './status';
import { childFailure, toFailureReason } from './failures';
import { basePolicy, part, rollOut } from './steps';
import { type SynthesisInput, synthesize } from './synthesis';
import { trainingTasks, train } from './training';

export interface CapabilityInput extends SynthesisInput {
  /** Rollouts of the base model on the held-out tasks of the target's train split. */
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
    const reason = toFailureReason(error);
    status.set('failed', reason);
    throw childFailure({ ...result, reason, ...(status.work && { work: status.work }) }, error);
  }
}

async function trainAndValidate(
  { campaign, prepared, candidate, baseHeldOut }: CapabilityInput,
  module: ArtifactRef,
  status: ChildStatus,
): Promise<Required<Pick<CapabilityResult, 'work' | 'best' | 'validation'>>> {
  const { training: settings, validation, target } = campaign;
  const { steps, groupsPerStep } = settings;
  const { name } = candidate;
  const { environment, tasks, heldOut } = trainingTasks(campaign, [module], steps * groupsPerStep);
  const work = await train({
    campaign,
    prepared,
    status,
    name,
    maker: { kind: 'capability', version: '1', options: {} },
    environment,
    tasks,
    heldOut,
    steps,
  });
  const best = bestIteration(work.iterations);
  if (!best) throw new Error(`the training of ${name} left no checkpoint`);
  status.set('validate', `step ${best.step} is the best iteration`);
  const batch = { purpose: 'held_out', attempts: validation.trials } as const;
  const title = `${name}: held out`;
  const onTarget = { ...batch, environment: target, tasks: part(prepared.plan, 'validation') };
  const [before, targetAfter] = await Promise.all([
    rollOut(campaign, {
      ...batch,
      environment,
      tasks: heldOut,
      title: `${title}, base`,
      policy: basePolicy(prepared.base),
    }),
    rollOut(campaign, { ...onTarget, title: `${title} on the target`, policy: best.policy }),
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
