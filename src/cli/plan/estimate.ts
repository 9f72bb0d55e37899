/**
 * How many rollouts a campaign will make, by stage and purpose, and what they cost: the same arithmetic as the workflows, with what an arm's kind
 * says of it. The lower ends are without a composite.
 */
import { type Campaign, type Stage, stages } from '../../domain/campaign';
import { sharedSteps } from '../../domain/capability';
import { kindOf } from '../../domain/kinds';
import { countSums } from '../../domain/policies';
import type { Prepared } from '../../domain/results';
import type { Purpose } from '../../domain/rollout';
import { registry, type Registry } from '../../registry';
import { type Quantity, type Range, range, type Rates, type RolloutKind } from './rates';

export interface PlannedRollouts {
  stage: Stage;
  purpose: Purpose;
  kind: RolloutKind;
  rollouts: Range;
}

interface PlanInput {
  campaign: Campaign;
  /** So many are selected, calibrated and trained. */
  capabilities: number;
  kinds?: Pick<Registry, 'arms' | 'routers'>;
}

/** Training rollouts of all adapters, and what each arm makes of as many. Without a selected capability no arm is trained. */
export function plannedArms({ campaign, capabilities, kinds = registry }: PlanInput) {
  const { steps, groupsPerStep, groupSize } = campaign.training;
  const budget = capabilities * steps * groupsPerStep * groupSize;
  const arms = (capabilities > 0 ? campaign.arms : []).map((spec) => {
    const kind = kindOf(kinds.arms, spec);
    return { spec, kind, ...kind.planned(spec, { campaign, capabilities, budget }) };
  });
  return { budget, arms, trained: arms.reduce((sum, { training }) => sum + training, 0) };
}

export function plannedRollouts(o: PlanInput & { tasks: Prepared['tasks'] }): PlannedRollouts[] {
  const { campaign, tasks, capabilities: n, kinds = registry } = o;
  const { rollouts, calibration, training, validation, router, evaluation } = campaign;
  const { budget, arms, trained } = plannedArms(o);
  const round = calibration.seeds * calibration.rolloutsPerSeed;
  // What is too hard is calibrated once more with hints on some of the rollouts; the others are there already.
  const hinted = calibration.seeds * Math.round(calibration.hintShare * calibration.rolloutsPerSeed);
  // A trainer saves every so many steps and at its end; the start is evaluated beside every checkpoint.
  const evaluated = (steps: number) => Math.ceil(steps / training.checkpointEvery) + 1;
  const onTarget = (n > 0 ? 1 : 0) + n + arms.reduce((sum, { heldOut }) => sum + heldOut, 0);
  const heldOut = (steps: number, more = 0) =>
    (n * evaluated(steps) * validation.seeds + onTarget * tasks.validation + more) * validation.trials;
  const shared = sharedSteps({ ...training, selected: n, share: campaign.composites.share });
  const composites = compositesOf(campaign, n);
  // The target's tasks choose the iteration of a composite.
  const compositeHeldOut = 2 * validation.seeds + evaluated(shared.composite) * tasks.validation;
  const sums = countSums(n);
  const gates = n > 1 && kindOf(kinds.routers, router).trainsGate ? 1 : 0;
  const routed = 1 + n + sums.tried + gates + arms.filter(({ kind }) => kind.routable).length;
  // Every policy alone, every sum, every arm, and trace.
  const alone = 1 + n + gates + arms.length + 1;
  const tested = { low: alone + sums.options.low, high: alone + sums.options.high + composites };
  const [routerTasks, testTasks] = [tasks.router * router.trials, tasks.test * evaluation.trials];
  const rows: [Stage, Purpose, low: number, high?: number][] = [
    ['rollouts', 'base_rollouts', tasks.train * rollouts.perTask],
    ['capabilities', 'calibration', n * round, n * (round + hinted) * calibration.maxRounds],
    ['capabilities', 'training', budget + trained],
    ['capabilities', 'held_out', heldOut(training.steps), composites * heldOut(shared.each, compositeHeldOut)],
    ['router', 'outcome_matrix', routed * routerTasks, (routed + composites) * routerTasks],
    ['evaluation', 'test', tested.low * testTasks, tested.high * testTasks],
  ];
  return rows
    .map(([stage, purpose, low, high = low]): PlannedRollouts => {
      const kind = purpose === 'training' ? 'training' : 'rollout';
      return { stage, purpose, kind, rollouts: { low, high: Math.max(low, high) } };
    })
    .filter((one) => one.rollouts.high > 0);
}

/** Composites that there may be: whether there is one is known after the selection. */
export function compositesOf({ composites, training }: Campaign, capabilities: number): number {
  const { composite } = sharedSteps({ ...training, selected: capabilities, share: composites.share });
  return capabilities > 1 && composite > 0 ? 1 : 0;
}

export interface StageCost {
  rollouts: Range;
  promptTokens: Range;
  completionTokens: Range;
  wallSeconds: Range;
  /** All GPUs of the layout are held while a stage runs. */
  gpuHours: Range;
}

export interface CampaignPlan {
  capabilities: number;
  tasks: Prepared['tasks'];
  gpus: { policyServer: number; trainers: number };
  purposes: PlannedRollouts[];
  stages: ({ stage: Stage } & StageCost)[];
  total: StageCost;
  rates: Rates;
}

export function estimate(o: {
  campaign: Campaign;
  tasks: Prepared['tasks'];
  capabilities: number;
  rates: Rates;
}): CampaignPlan {
  const { campaign, tasks, capabilities, rates } = o;
  const { policyServer, workers } = campaign;
  const gpus = {
    policyServer: policyServer.kind === 'vllm' ? policyServer.gpus : 0,
    trainers: workers.gpuSlots * workers.gpusPerTrainer,
  };
  const held = (gpus.policyServer + gpus.trainers) / 3600;
  const purposes = plannedRollouts({ campaign, tasks, capabilities });
  const costOf = (planned: readonly PlannedRollouts[]): StageCost => {
    const total = (of: (one: PlannedRollouts, end: keyof Range) => number) =>
      range((end) => planned.reduce((sum, one) => sum + of(one, end), 0));
    const rated = (quantity: Quantity) =>
      total(({ kind, rollouts }, end) => rollouts[end] * rates[kind][quantity][end]);
    const wallSeconds = rated('seconds');
    return {
      rollouts: total(({ rollouts }, end) => rollouts[end]),
      promptTokens: rated('promptTokens'),
      completionTokens: rated('completionTokens'),
      wallSeconds,
      gpuHours: range((end) => wallSeconds[end] * held),
    };
  };
  const byStage = stages.map((stage) => ({ stage, ...costOf(purposes.filter((one) => one.stage === stage)) }));
  return { capabilities, tasks, gpus, purposes, stages: byStage, total: costOf(purposes), rates };
}
