/**
 * One capability: an environment is written, self-tested and calibrated (and revised with what was found, within the rounds), a LoRA trained
 * on it and validated. Invariant: every end is a result, a failure too, which holds it; but a cancellation, what is about the campaign as a
 * whole (a damaged artifact, a language model that can't be asked) and a crash of the workflow itself.
 */
import { workflowInfo } from '@temporalio/workflow';
import type { ArtifactRef } from '../domain/artifacts';
import { bestIteration, type CapabilityResult } from '../domain/results';
import type { RolloutSummary } from '../domain/rollout';
import { ChildStatus, percent, withOutcome } from './status';
import { childFailure, resultingReason } from './failures';
import { basePolicy, part, rollOut } from './steps';
import { type SynthesisInput, synthesize } from './synthesis';
import { practiceOn, train } from './training';

export interface CapabilityInput extends SynthesisInput {
  /** The base model on the held-out part of the target's train split. */
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
    if (!('reason' in environment)) {
      result.trained = await trainAndValidate(input, environment.module, status);
      result.status = 'completed';
      const { before, after } = result.trained.synthesized;
      status.set('completed', `success ${percent(before.successRate)} -> ${percent(after.successRate)}`);
    } else {
      Object.assign(result, { status: 'not_trained' as const, reason: environment.reason });
      status.set(result.status, environment.reason);
    }
  } catch (error) {
    result.reason = resultingReason(error);
    if (status.work) result.unvalidated = status.work;
    status.set('failed', result.reason);
    throw childFailure(result, error);
  }
  return result;
}

async function trainAndValidate(
  { campaign, prepared, candidate, baseHeldOut }: CapabilityInput,
  module: ArtifactRef,
  status: ChildStatus,
): Promise<NonNullable<CapabilityResult['trained']>> {
  const { training: settings, validation, target } = campaign;
  const { steps, groupsPerStep } = settings;
  const { name } = candidate;
  const { environment, tasks, heldOut } = practiceOn(campaign, [module], steps * groupsPerStep);
  const { training, iterations } = await train({
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
  const best = bestIteration(iterations);
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
    training,
    iterations,
    best,
    synthesized: { before, after: best.heldOut },
    target: { before: baseHeldOut, after: targetAfter },
  };
}
