/** The plan of a campaign: its rollouts times what a rollout costs, by stage. Invariant: totals are the sums of the stages. */
import { type Campaign, type Stage, stages } from '../../domain/campaign';
import type { Prepared } from '../../domain/results';
import { plannedRollouts, type PlannedRollouts, type Range } from './counts';
import type { Quantity, Rates } from './rates';

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
