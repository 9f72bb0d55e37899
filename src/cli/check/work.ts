/** Rollouts of a campaign by purpose, with the arithmetic of the workflows, and what they cost at the rates that earlier campaigns measured. */
import { basename } from 'node:path';
import type { Campaign } from '../../domain/campaign';
import { kindOf, TARGET_TASKS } from '../../domain/kinds';
import { countMerges } from '../../domain/policies';
import type { Prepared } from '../../domain/results';
import type { Purpose } from '../../domain/rollout';
import { registry } from '../../registry';
import type { Report } from '../../report/model';

/** `low` and `high` differ where the campaign decides on its way. */
export interface Range {
  low: number;
  high: number;
}
export const range = (of: (end: keyof Range) => number): Range => ({ low: of('low'), high: of('high') });

/** Applies an operation to both ends; a number is both. */
const folded =
  (fold: (all: number, one: number) => number, start: number) =>
  (...values: (Range | number)[]): Range =>
    range((end) => values.map((one) => (typeof one === 'number' ? one : one[end])).reduce(fold, start));
export const sum = folded((all, one) => all + one, 0);
export const product = folded((all, one) => all * one, 1);

/** Counts rollouts where `capabilities` of them are selected, calibrated and trained. Without one, no baseline is trained. */
export function countWork(o: { campaign: Campaign; tasks: Prepared['tasks']; capabilities: number }) {
  const { campaign, tasks, capabilities: n } = o;
  const { rollouts, calibration, training, validation, router, evaluation } = campaign;
  const budget = n * training.steps * training.groupsPerStep * training.groupSize;
  const arms = (n > 0 ? campaign.arms : []).map((spec) => {
    const kind = kindOf(registry.arms, spec);
    return { spec, kind, ...kind.planned(spec, { campaign, capabilities: n, budget }) };
  });
  const isCalibrated = campaign.synthesizer.kind !== TARGET_TASKS;
  const round = isCalibrated ? calibration.seeds * calibration.rolloutsPerSeed : 0;
  // A trainer saves every so many steps and at its end; the start is evaluated beside every checkpoint.
  const evaluated = Math.ceil(training.steps / training.checkpointEvery) + 1;
  const onTarget = (n > 0 ? 1 : 0) + n + arms.reduce((all, { heldOut }) => all + heldOut, 0);
  const heldOut = (n * evaluated * validation.seeds + onTarget * tasks.validation) * validation.trials;
  const sums = countMerges(n);
  // Base and adapters alone, merged adapters, baselines and the routed policy.
  const alone = 1 + n + arms.length + 1;
  const [routerTasks, testTasks] = [tasks.router * router.trials, tasks.test * evaluation.trials];
  const rows: [Purpose, low: number, high?: number][] = [
    ['base_rollouts', tasks.train * rollouts.perTask],
    ['calibration', n * round, n * round * calibration.maxRounds],
    ['training', budget + arms.reduce((all, arm) => all + arm.training, 0)],
    ['held_out', heldOut],
    ['outcome_matrix', (1 + n + sums.tried) * routerTasks],
    ['test', (alone + sums.options.low) * testTasks, (alone + sums.options.high) * testTasks],
  ];
  const purposes = rows.map(([purpose, low, high = low]) => ({ purpose, rollouts: { low, high } }));
  return { capabilities: n, tasks, arms, purposes: purposes.filter(({ rollouts }) => rollouts.high > 0) };
}

export type PlannedWork = ReturnType<typeof countWork>;

/** True if a gradient is computed from the rollout. */
type RolloutKind = 'rollout' | 'training';
const kindsOfRollouts: readonly RolloutKind[] = ['rollout', 'training'];
/** Returns whether a report is of the same base model and target, where a rollout costs the same. */
export const isLike = ({ campaign }: Report, { baseModel }: Campaign, target: string): boolean =>
  campaign.target.name === target && campaign.baseModel.startsWith(`${baseModel.hub ?? basename(baseModel.path!)}@`);

export type Cost = ReturnType<typeof costOfWork>;

/**
 * Multiplies rollouts with the newest measured seconds per rollout. `reports`: those of the same base model and target, newest first. `seconds` and
 * `gpuHours` are absent where no campaign has measured them.
 */
export function costOfWork(o: { campaign: Campaign; work: PlannedWork; reports: readonly Report[] }) {
  const { work, reports } = o;
  const { policyServer, workers } = o.campaign;
  const gpus = {
    policyServer: policyServer.kind === 'vllm' ? policyServer.gpus : 0,
    trainers: workers.gpuSlots * workers.gpusPerTrainer,
  };
  const rows = kindsOfRollouts.map((kind) => {
    const own = work.purposes.filter(({ purpose }) => (purpose === 'training') === (kind === 'training'));
    const rollouts = sum(...own.map(({ rollouts }) => rollouts));
    const measured = reports.find(({ cost }) => cost?.secondsPerRollout?.[kind] !== undefined);
    if (!measured) return { kind, rollouts };
    const total = product(rollouts, measured.cost!.secondsPerRollout![kind]!);
    const seconds = { campaign: measured.campaign.name, ...total };
    return { kind, rollouts, seconds, gpuHours: product(total, (gpus.policyServer + gpus.trainers) / 3600) };
  });
  return { gpus, costs: rows.filter(({ rollouts }) => rollouts.high > 0) };
}

/** Returns the base model's success rate, on the test tasks where it was measured there. */
export function measuredBase(reports: readonly Report[]): { rate: number; campaign: string } | undefined {
  for (const { arms = [], base, campaign } of reports) {
    const tested = arms.find(({ role }) => role === 'base')?.successRate?.value;
    const rate = tested ?? base?.successRate.value;
    if (typeof rate === 'number') return { rate, campaign: campaign.name };
  }
  return undefined;
}
