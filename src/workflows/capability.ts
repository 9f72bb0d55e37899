/**
 * One capability: an environment is written, self-tested and calibrated (and revised with what was found, within the rounds), a LoRA trained
 * on it and validated. Invariant: every end is a result, a failure too, which holds it; but a cancellation, what is about the campaign as a
 * whole (a damaged artifact, a language model that can't be asked) and a crash of the workflow itself.
 */
import { patched, workflowInfo } from '@temporalio/workflow';
import type { ArtifactRef } from '../domain/artifacts';
import { bestIteration, type CapabilityResult, type EndedCapability, type TrainingSummary } from '../domain/results';
import type { RolloutSummary } from '../domain/rollout';
import { ChildStatus, percent, withOutcome } from './status';
import { childFailure, resultingReason } from './failures';
import { keep, part, rollOut } from './steps';
import { type SynthesisInput, synthesize } from './synthesis';
import { moduleOf, type Practice, practiceOn, train, type TrainedModules } from './training';

export interface CapabilityInput extends SynthesisInput {
  /** Of its training. */
  steps: number;
  /**
   * Of a composite whose environment is those of its parts: these, and the steps of its parts' own trainings on them. It stands for all that the
   * target asks for, so that held-out tasks of the target choose its iteration, as they choose that of an arm on the same environments.
   */
  mixes?: { modules: TrainedModules; afterSteps: number };
  /** What it starts from on the held-out part of the target's train split, where that is known already. */
  startHeldOut?: RolloutSummary;
}

export function capability(input: CapabilityInput): Promise<EndedCapability> {
  return withOutcome(() => developed(input));
}

async function developed(input: CapabilityInput): Promise<EndedCapability> {
  const { name, parts } = input.candidate;
  const status = new ChildStatus(name);
  const ended = { name, workflowId: workflowInfo().workflowId, ...(parts && { parts }) };
  const result: CapabilityResult = { ...ended, status: 'failed', rounds: [] };
  let failure: unknown;
  try {
    const environment = input.mixes ?? (await synthesize(input, result.rounds, status));
    if (!('reason' in environment)) {
      const practice = practiceFor(input, environment);
      if (input.mixes) result.trainedOn = practice.trainedOn;
      result.trained = await trainAndValidate(input, practice, status);
      result.status = 'trained';
      const { before, after } = result.trained.synthesized;
      status.set('done', `success ${percent(before.successRate)} -> ${percent(after.successRate)}`);
    } else {
      Object.assign(result, environment);
      status.set('failed', `${environment.status}: ${environment.reason}`);
    }
  } catch (error) {
    failure = error;
    result.reason = resultingReason(error);
    // What is kept may have one more piece by it.
    if (status.work && patched('what a failed capability trained')) result.unvalidated = status.work;
    status.set('failed', result.reason);
  }
  const kept = await status.gate.step(() => keep(input.campaign, `what ${name} came to`, result));
  const decided = decidedOn(result, kept);
  if (failure !== undefined) throw childFailure(decided, failure);
  return decided;
}

/** What its campaign is told. */
function decidedOn(all: CapabilityResult, result: ArtifactRef): EndedCapability {
  const { name, workflowId, status, reason, parts, trained, unvalidated } = all;
  const module = moduleOf(all);
  const figures = ({ ref, successRate, meanReward }: RolloutSummary) => ({ ref, successRate, meanReward });
  const change = ({ before, after }: { before: RolloutSummary; after: RolloutSummary }) => ({
    before: figures(before),
    after: figures(after),
  });
  const spent = ({ training: { steps, rollouts } }: { training: TrainingSummary }) => ({ steps, rollouts });
  return {
    ...{ name, workflowId, status },
    ...(reason !== undefined && { reason }),
    ...(parts && { parts }),
    ...(module && { module }),
    ...(trained && {
      trained: {
        training: spent(trained),
        best: { step: trained.best.step, policy: trained.best.policy },
        synthesized: change(trained.synthesized),
        target: change(trained.target),
      },
    }),
    ...(unvalidated && { unvalidated: { training: spent(unvalidated) } }),
    result,
  };
}

/** On the environment that was written for it, or on those of its parts. */
function practiceFor(
  { campaign, steps }: CapabilityInput,
  on: { module: ArtifactRef } | NonNullable<CapabilityInput['mixes']>,
): Practice {
  const { groupsPerStep } = campaign.training;
  const count = steps * groupsPerStep;
  if ('module' in on) return practiceOn(campaign, [on.module], { seen: 0, count });
  return practiceOn(campaign, on.modules, { seen: on.afterSteps * groupsPerStep, count });
}

async function trainAndValidate(
  { campaign, prepared, candidate, start, startHeldOut, steps, mixes }: CapabilityInput,
  { environment, tasks, heldOut }: Practice,
  status: ChildStatus,
): Promise<NonNullable<CapabilityResult['trained']>> {
  const { trials } = campaign.validation;
  const { name } = candidate;
  const onTarget = part(prepared.plan, 'validation');
  const { training, iterations } = await train({
    campaign,
    prepared,
    status,
    name,
    maker: { kind: 'capability', version: '1', options: {} },
    environment,
    tasks,
    ...(mixes ? { heldOut: onTarget, heldOutOn: campaign.target } : { heldOut }),
    steps,
    from: start.adapters,
  });
  const best = bestIteration(iterations);
  if (!best) throw new Error(`the training of ${name} left no checkpoint`);
  status.set('validate', `step ${best.step} is the best iteration`);
  const startName = start.adapters.length > 0 ? 'the sum of its parts' : 'base';
  const batch = { purpose: 'held_out', attempts: trials } as const;
  const own = { ...batch, environment, tasks: heldOut };
  const target = { ...batch, environment: campaign.target, tasks: onTarget };
  const title = `${name}: held out`;
  const [before, after, targetBefore, targetAfter] = await status.gate.step(() =>
    Promise.all([
      rollOut(campaign, { ...own, title: `${title}, ${startName}`, policy: start }),
      mixes ? rollOut(campaign, { ...own, title, policy: best.policy }) : best.heldOut,
      startHeldOut ?? rollOut(campaign, { ...target, title: `${title} on the target, ${startName}`, policy: start }),
      mixes ? best.heldOut : rollOut(campaign, { ...target, title: `${title} on the target`, policy: best.policy }),
    ]),
  );
  return {
    training,
    iterations,
    best,
    synthesized: { before, after },
    target: { before: targetBefore, after: targetAfter },
  };
}
