/**
 * How many rollouts a campaign will make, by stage and purpose, and what they cost. Invariants: the same arithmetic as the workflows; what an arm makes
 * within the budget of `trace`, its kind says; the lower ends are without a composite; totals are the sums of the stages.
 */
import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { type Campaign, type Stage, stages } from '../../domain/campaign';
import { sharedSteps } from '../../domain/capability';
import { kindOf } from '../../domain/kinds';
import { countSums } from '../../domain/policies';
import type { Prepared } from '../../domain/results';
import type { Purpose } from '../../domain/rollout';
import { loraModules } from '../../policy/base-model';
import { registry, type Registry } from '../../registry';
import { pythonPath } from '../project';
import type { Quantity, Rates } from './rates';

/** `low` and `high` differ where a campaign decides on its way. */
export interface Range {
  low: number;
  high: number;
}

export interface PlannedRollouts {
  stage: Stage;
  purpose: Purpose;
  /** Whether a gradient follows: what a rollout costs depends on it. */
  kind: 'rollout' | 'training';
  rollouts: Range;
}

/** For `capabilities` that are selected, calibrated and trained. */
export function plannedRollouts({
  campaign,
  tasks,
  capabilities,
  kinds = registry,
}: {
  campaign: Campaign;
  tasks: Prepared['tasks'];
  capabilities: number;
  kinds?: Pick<Registry, 'arms' | 'routers'>;
}): PlannedRollouts[] {
  const { rollouts, calibration, training, validation, router, evaluation } = campaign;
  const round = calibration.seeds * calibration.rolloutsPerSeed;
  // What is too hard is calibrated once more with hints on some of the rollouts; the others are there already.
  const hinted = calibration.seeds * Math.round(calibration.hintShare * calibration.rolloutsPerSeed);
  const perTraining = training.steps * training.groupsPerStep * training.groupSize;
  const budget = capabilities * perTraining;
  // Without a selected capability no arm is trained either.
  const arms = (capabilities > 0 ? campaign.arms : []).map((spec) => {
    const { planned, routable } = kindOf(kinds.arms, spec);
    return { routable, ...planned(spec, { campaign, capabilities, budget }) };
  });
  const sum = (of: 'training' | 'heldOut') => arms.reduce((total, arm) => total + arm[of], 0);
  // Base and, of each adapter, every checkpoint; on seeds of its environment and on held-out tasks of the target.
  const onSeeds = (steps: number) => (checkpoints(steps, training.checkpointEvery) + 1) * validation.seeds;
  const onTarget = (capabilities > 0 ? 1 : 0) + capabilities + sum('heldOut');
  const heldOut = (capabilities * onSeeds(training.steps) + onTarget * tasks.validation) * validation.trials;
  const combined = compositesOf(campaign, capabilities);
  const shared = sharedSteps({ ...training, selected: capabilities, share: campaign.composites.share });
  // Of a composite on environments mixed the target's tasks choose the iteration.
  const ofComposite =
    2 * validation.seeds + (checkpoints(shared.composite, training.checkpointEvery) + 1) * tasks.validation;
  const combinedHeldOut =
    (capabilities * onSeeds(shared.each) + onTarget * tasks.validation + ofComposite) * validation.trials;
  const policies = 1 + capabilities;
  const sums = countSums(capabilities);
  const gates = capabilities > 1 && kindOf(kinds.routers, router).trainsGate ? 1 : 0;
  const routable = arms.filter((arm) => arm.routable).length;
  const tested = policies + gates + arms.length + 1;
  const planned: PlannedRollouts[] = [
    counted('rollouts', 'base_rollouts', tasks.train * rollouts.perTask),
    {
      ...counted('capabilities', 'calibration', 0),
      rollouts: {
        low: capabilities * round,
        high: capabilities * (round + hinted) * calibration.maxRounds,
      },
    },
    { ...counted('capabilities', 'training', budget + sum('training')), kind: 'training' },
    upTo(counted('capabilities', 'held_out', heldOut), combined * combinedHeldOut),
    upTo(
      counted('router', 'outcome_matrix', (policies + sums.tried + gates + routable) * tasks.router * router.trials),
      (policies + sums.tried + gates + combined + routable) * tasks.router * router.trials,
    ),
    // Every policy alone, every sum, every arm, and trace.
    upTo(
      counted('evaluation', 'test', (tested + sums.options.low) * tasks.test * evaluation.trials),
      (tested + sums.options.high + combined) * tasks.test * evaluation.trials,
    ),
  ];
  return planned.filter((one) => one.rollouts.high > 0);
}

/** Composites that there may be: whether there is one is known after the selection. */
export function compositesOf({ composites, training }: Campaign, capabilities: number): number {
  const { composite } = sharedSteps({ ...training, selected: capabilities, share: composites.share });
  return capabilities > 1 && composite > 0 ? 1 : 0;
}

/** A trainer saves every so many steps and at its end. */
const checkpoints = (steps: number, every: number): number => Math.ceil(steps / every);

const upTo = (one: PlannedRollouts, high: number): PlannedRollouts => ({
  ...one,
  rollouts: { ...one.rollouts, high: Math.max(one.rollouts.high, high) },
});

const counted = (stage: Stage, purpose: Purpose, rollouts: number): PlannedRollouts => ({
  stage,
  purpose,
  kind: 'rollout',
  rollouts: { low: rollouts, high: rollouts },
});

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

const NONE: Range = { low: 0, high: 0 };
const add = (a: Range, b: Range): Range => ({ low: a.low + b.low, high: a.high + b.high });
const times = (a: Range, b: Range): Range => ({ low: a.low * b.low, high: a.high * b.high });
const sum = (ranges: Range[]): Range => ranges.reduce(add, NONE);

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
  const costOf = (planned: PlannedRollouts[]): StageCost => {
    const total = (quantity: Quantity) =>
      sum(planned.map(({ kind, rollouts }) => times(rollouts, rates[kind][quantity])));
    const wallSeconds = total('seconds');
    return {
      rollouts: sum(planned.map(({ rollouts }) => rollouts)),
      promptTokens: total('promptTokens'),
      completionTokens: total('completionTokens'),
      wallSeconds,
      gpuHours: times(wallSeconds, { low: held, high: held }),
    };
  };
  return {
    capabilities,
    tasks,
    gpus,
    purposes,
    stages: stages.map((stage) => ({ stage, ...costOf(purposes.filter((one) => one.stage === stage)) })),
    total: costOf(purposes),
    rates,
  };
}

export interface DiskPlan {
  adapterBytes: number;
  /** Of all that are made. */
  bytes: number;
  /** Where the home is, or will be. */
  freeBytes: number;
}

/** Factors A and B, in float32. */
const BYTES = 4;
/** Each step's adapter is in the store, and laid out for the policy server. */
const COPIES = 2;
/** A checkpoint has the adapter and Adam's two moments of it. */
const CHECKPOINT = 3;

/** Undefined where the base model, or the Python that would look at it, is not there yet. */
export async function plannedDisk(o: {
  campaign: Campaign;
  plan: CampaignPlan;
  home: string;
}): Promise<DiskPlan | undefined> {
  const { baseModel, training } = o.campaign;
  const { r, targetModules } = training.lora;
  const asked = { python: pythonPath(), model: baseModel.path, targetModules };
  const found = existsSync(baseModel.path) ? await loraModules(asked).catch(() => undefined) : undefined;
  if (!found || found.modules.length === 0) return undefined;
  const adapterBytes = found.modules.reduce((sum, module) => sum + (module.in + module.out) * r * BYTES, 0);
  const rollouts = o.plan.purposes.find(({ purpose }) => purpose === 'training')?.rollouts.high ?? 0;
  const steps = rollouts / (training.groupsPerStep * training.groupSize);
  const bytes = adapterBytes * steps * (COPIES + CHECKPOINT / training.checkpointEvery);
  return { adapterBytes, bytes, freeBytes: freeAt(o.home) };
}

function freeAt(folder: string): number {
  if (!existsSync(folder) && folder !== dirname(folder)) return freeAt(dirname(folder));
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
