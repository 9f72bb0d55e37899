/**
 * Runs one capability: synthesizes an environment, trains a LoRA on it and validates the best checkpoint. Returns its result, or throws a failure whose
 * details carry it; a cancellation and a campaign-wide failure (failures.ts) carry none.
 */
import { workflowInfo } from '@temporalio/workflow';
import type { ArtifactRef } from '../domain/artifacts';
import { TARGET_TASKS } from '../domain/kinds';
import { bestIteration, type CapabilityResult, type ChosenTasks } from '../domain/results';
import type { RolloutSummary } from '../domain/rollout';
import { failedWith } from './failures';
import { ChildStatus, percent, withOutcome } from './status';
import { basePolicy, control, planTasks, rollOut } from './steps';
import { type SynthesisInput, synthesize } from './synthesis';
import { trainingTasks, type TrainingSet, train } from './training';

export interface CapabilityInput extends SynthesisInput {
  /** Rollouts of the base model on the target's held-out tasks. */
  baseHeldOut: RolloutSummary;
  /** The labeling passes, if the synthesizer chooses tasks by them. */
  labels?: ArtifactRef[];
}

export const campaignCapability = (input: CapabilityInput): Promise<CapabilityResult> =>
  withOutcome(() => runCapability(input));

async function runCapability(input: CapabilityInput): Promise<CapabilityResult> {
  const { name } = input.candidate;
  const status = new ChildStatus(name);
  const result: CapabilityResult = { name, workflowId: workflowInfo().workflowId, status: 'failed', rounds: [] };
  try {
    const set = await trainingSet(input, result, status);
    if ('reason' in set) {
      status.set('not_trained', set.reason);
      return { ...result, status: 'not_trained', reason: set.reason };
    }
    const trained = await trainAndValidate(input, set, status);
    const { before, after } = trained.validation.synthesized;
    status.set('completed', `success ${percent(before.successRate)} -> ${percent(after.successRate)}`);
    return { ...result, status: 'completed', ...trained };
  } catch (error) {
    throw status.failure(result, error);
  }
}

/** Returns what to train on, or why there is nothing. Records it in `result`. */
async function trainingSet(
  input: CapabilityInput,
  result: CapabilityResult,
  status: ChildStatus,
): Promise<TrainingSet | { reason: string }> {
  const { campaign } = input;
  const { steps, groupsPerStep } = campaign.training;
  if (campaign.synthesizer.kind === TARGET_TASKS) {
    const chosen = await chooseTasks(input);
    if ('reason' in chosen) return chosen;
    result.tasks = chosen;
    const { plan } = chosen;
    return { environment: campaign.target, tasks: planTasks(plan, 'train'), heldOut: planTasks(plan, 'validation') };
  }
  const synthesized = await synthesize(input, result.rounds, status);
  if ('reason' in synthesized) return synthesized;
  return trainingTasks(campaign, [synthesized.module], steps * groupsPerStep);
}

async function chooseTasks(input: CapabilityInput): Promise<ChosenTasks | { reason: string }> {
  const { campaign, candidate, baseRollouts: rollouts, labels = [] } = input;
  const { training, validation, seed } = campaign;
  try {
    return await control(campaign, "choose the target's tasks").chooseTasks({
      ...{ rollouts, labels, capability: candidate.name, seed },
      ...{ perStep: training.groupsPerStep, mostHeldOut: validation.seeds },
    });
  } catch (error) {
    const reason = failedWith(error, 'CannotSynthesize');
    if (reason === undefined) throw error;
    return { reason };
  }
}

async function trainAndValidate(
  { campaign, prepared, candidate: { name }, baseHeldOut }: CapabilityInput,
  { environment, tasks, heldOut }: TrainingSet,
  status: ChildStatus,
): Promise<Required<Pick<CapabilityResult, 'work' | 'best' | 'validation'>>> {
  const { validation, target } = campaign;
  const work = await train({
    ...{ campaign, prepared, status, name, environment, tasks, heldOut, steps: campaign.training.steps },
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
