/**
 * One capability: an environment is written, self-tested and calibrated (and revised with what was found, within the rounds), a LoRA trained
 * on it and validated. Invariant: every end is a result, but a cancellation, what is about the campaign as a whole (a damaged artifact, a
 * language model that can't be asked) and a crash of the workflow itself.
 */
import { workflowInfo } from '@temporalio/workflow';
import { bestIteration } from '../domain/iterations';
import type { CapabilityResult } from '../domain/results';
import type { RolloutSummary } from '../domain/rollout-summary';
import { sandboxSpec } from '../domain/environment-spec';
import { HELD_OUT_SEEDS, TRAINING_SEEDS } from '../sandbox/seeds';
import { ChildStatus, percent } from './child-status';
import { resultingReason } from './failure';
import { part, rollOut, seeds as seedsOf } from './steps';
import { synthesize, type Synthesized, type SynthesisInput } from './synthesis';
import { train } from './training';

export interface CapabilityInput extends SynthesisInput {
  /** Of its training. */
  steps: number;
  /** What it starts from on the held-out part of the target's train split, where that is known already. */
  startHeldOut?: RolloutSummary;
}

export async function capability(input: CapabilityInput): Promise<CapabilityResult> {
  const { name, parts } = input.candidate;
  const status = new ChildStatus(name);
  const ended = { name, workflowId: workflowInfo().workflowId, ...(parts && { parts }) };
  const result: CapabilityResult = { ...ended, status: 'failed', rounds: [] };
  try {
    const environment = await synthesize(input, result.rounds, status);
    if ('module' in environment) {
      result.trained = await trainAndValidate(input, environment, status);
      result.status = 'trained';
      const { before, after } = result.trained.synthesized;
      status.set('done', `success ${percent(before.successRate)} -> ${percent(after.successRate)}`);
    } else {
      Object.assign(result, environment);
      status.set('failed', `${environment.status}: ${environment.reason}`);
    }
  } catch (error) {
    result.reason = resultingReason(error);
    status.set('failed', result.reason);
  }
  return result;
}

async function trainAndValidate(
  { campaign, prepared, candidate, start, startHeldOut, steps }: CapabilityInput,
  { module, hints, easier }: Synthesized,
  status: ChildStatus,
): Promise<NonNullable<CapabilityResult['trained']>> {
  const { groupsPerStep } = campaign.training;
  const { seeds, trials } = campaign.validation;
  const { name } = candidate;
  const environment = sandboxSpec(module);
  const heldOut = seedsOf(campaign, { from: HELD_OUT_SEEDS, count: seeds });
  const { training, iterations } = await train({
    campaign,
    prepared,
    status,
    name,
    maker: { kind: 'capability', version: '1', options: {} },
    environment,
    tasks: seedsOf(campaign, { from: TRAINING_SEEDS, count: steps * groupsPerStep, easier }),
    heldOut,
    steps,
    from: start.adapters,
    hints,
  });
  const best = bestIteration(iterations);
  if (!best) throw new Error(`the training of ${name} left no checkpoint`);
  status.set('validate', `step ${best.step} is the best iteration`);
  const startName = start.adapters.length > 0 ? 'the sum of its parts' : 'base';
  const batch = { purpose: 'held_out', attempts: trials } as const;
  const target = { ...batch, environment: campaign.target, tasks: part(prepared.plan, 'heldOut') };
  const onTarget = `${name}: held out on the target`;
  const [before, targetBefore, targetAfter] = await status.gate.step(() =>
    Promise.all([
      rollOut(campaign, {
        ...batch,
        title: `${name}: held out, ${startName}`,
        environment,
        policy: start,
        tasks: heldOut,
      }),
      startHeldOut ?? rollOut(campaign, { ...target, title: `${onTarget}, ${startName}`, policy: start }),
      rollOut(campaign, { ...target, title: onTarget, policy: best.policy }),
    ]),
  );
  return {
    training,
    iterations,
    best,
    synthesized: { before, after: best.heldOut },
    target: { before: targetBefore, after: targetAfter },
  };
}
