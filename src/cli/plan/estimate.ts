/**
 * What a campaign will make, by stage and purpose, and what its rollouts cost: the same arithmetic as the workflows, with what an arm's kind says of
 * it. The lower ends are without a composite.
 */
import { type Campaign, type Stage, stages } from '../../domain/campaign';
import { sharedSteps } from '../../domain/capability';
import { kindOf } from '../../domain/kinds';
import { countSums } from '../../domain/policies';
import type { Prepared } from '../../domain/results';
import type { Purpose } from '../../domain/rollout';
import { type Registry, registry } from '../../registry';
import { product, type Quantity, type Range, type Rates, type RolloutKind, sum } from './rates';

export interface PlannedRollouts {
  stage: Stage;
  purpose: Purpose;
  kind: RolloutKind;
  rollouts: Range;
}

/** `capabilities`: so many are selected, calibrated and trained. Without one, no arm is trained. */
export function countWork(o: {
  campaign: Campaign;
  tasks: Prepared['tasks'];
  capabilities: number;
  kinds?: Pick<Registry, 'arms' | 'routers'>;
}) {
  const { campaign, tasks, capabilities: n, kinds = registry } = o;
  const { rollouts, calibration, training, validation, router, evaluation, composites } = campaign;
  const budget = n * training.steps * training.groupsPerStep * training.groupSize;
  const arms = (n > 0 ? campaign.arms : []).map((spec) => {
    const kind = kindOf(kinds.arms, spec);
    return { spec, kind, ...kind.planned(spec, { campaign, capabilities: n, budget }) };
  });
  const round = calibration.seeds * calibration.rolloutsPerSeed;
  // What is too hard is calibrated once more with hints on some of the rollouts; the others are there already.
  const hinted = calibration.seeds * Math.round(calibration.hintShare * calibration.rolloutsPerSeed);
  // A trainer saves every so many steps and at its end; the start is evaluated beside every checkpoint.
  const evaluated = (steps: number) => Math.ceil(steps / training.checkpointEvery) + 1;
  const onTarget = (n > 0 ? 1 : 0) + n + arms.reduce((all, { heldOut }) => all + heldOut, 0);
  const heldOut = (steps: number, more = 0) =>
    (n * evaluated(steps) * validation.seeds + onTarget * tasks.validation + more) * validation.trials;
  const shared = sharedSteps({ ...training, selected: n, share: composites.share });
  // Whether there is one is known after the selection.
  const composite = n > 1 && shared.composite > 0 ? 1 : 0;
  // The target's tasks choose the iteration of a composite.
  const compositeHeldOut = 2 * validation.seeds + evaluated(shared.composite) * tasks.validation;
  const sums = countSums(n);
  const gates = n > 1 && kindOf(kinds.routers, router).trainsGate ? 1 : 0;
  const routed = 1 + n + sums.tried + gates + arms.filter(({ kind }) => kind.routable).length;
  // Every policy alone, every sum, every arm, and trace.
  const alone = 1 + n + gates + arms.length + 1;
  const tested = { low: alone + sums.options.low, high: alone + sums.options.high + composite };
  const [routerTasks, testTasks] = [tasks.router * router.trials, tasks.test * evaluation.trials];
  const rows: [Stage, Purpose, low: number, high?: number][] = [
    ['rollouts', 'base_rollouts', tasks.train * rollouts.perTask],
    ['capabilities', 'calibration', n * round, n * (round + hinted) * calibration.maxRounds],
    ['capabilities', 'training', budget + arms.reduce((all, arm) => all + arm.training, 0)],
    ['capabilities', 'held_out', heldOut(training.steps), composite * heldOut(shared.each, compositeHeldOut)],
    ['router', 'outcome_matrix', routed * routerTasks, (routed + composite) * routerTasks],
    ['evaluation', 'test', tested.low * testTasks, tested.high * testTasks],
  ];
  const purposes = rows.map(([stage, purpose, low, high = low]): PlannedRollouts => {
    const kind = purpose === 'training' ? 'training' : 'rollout';
    return { stage, purpose, kind, rollouts: { low, high: Math.max(low, high) } };
  });
  return { capabilities: n, tasks, arms, composite, purposes: purposes.filter((one) => one.rollouts.high > 0) };
}

export type PlannedWork = ReturnType<typeof countWork>;

/** All GPUs of the layout are held while a stage runs. */
export type StageCost = Record<'rollouts' | 'promptTokens' | 'completionTokens' | 'wallSeconds' | 'gpuHours', Range>;

export type CampaignPlan = ReturnType<typeof estimate>;

export function estimate({ policyServer, workers }: Campaign, work: PlannedWork, rates: Rates) {
  const { capabilities, tasks, purposes } = work;
  const gpus = {
    policyServer: policyServer.kind === 'vllm' ? policyServer.gpus : 0,
    trainers: workers.gpuSlots * workers.gpusPerTrainer,
  };
  const costOf = (planned: readonly PlannedRollouts[]): StageCost => {
    const rated = (quantity: Quantity) =>
      sum(...planned.map(({ kind, rollouts }) => product(rollouts, rates[kind][quantity])));
    const wallSeconds = rated('seconds');
    return {
      rollouts: sum(...planned.map(({ rollouts }) => rollouts)),
      promptTokens: rated('promptTokens'),
      completionTokens: rated('completionTokens'),
      wallSeconds,
      gpuHours: product(wallSeconds, (gpus.policyServer + gpus.trainers) / 3600),
    };
  };
  const byStage = stages.map((stage) => ({ stage, ...costOf(purposes.filter((one) => one.stage === stage)) }));
  return { capabilities, tasks, gpus, purposes, stages: byStage, total: costOf(purposes), rates };
}
