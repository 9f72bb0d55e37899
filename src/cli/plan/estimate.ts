/**
 * Counts the rollouts of a campaign by stage and purpose, with the arithmetic of the workflows, and estimates what a rollout costs. Every rate says whether it was measured in an earlier campaign, read from a file, or assumed.
 */
import { z } from 'zod';
import { openStore } from '../../store/open-store';
import { type Campaign, type Stage, stages } from '../../domain/campaign';
import { tokensOf } from '../../domain/endpoints';
import { kindOf } from '../../domain/kinds';
import { jsonText } from '../../domain/messages';
import { countSums } from '../../domain/policies';
import { publishedRun } from '../../domain/presets';
import type { Prepared } from '../../domain/results';
import { type Purpose, rolloutSchema } from '../../domain/rollout';
import { compactOne } from '../../domain/transcript';
import { withPlugins } from '../../plugins';
import { registry } from '../../registry';
import type { Report } from '../../report/model';
import type { Home } from '../project';

export interface PlannedRollouts {
  stage: Stage;
  purpose: Purpose;
  kind: RolloutKind;
  rollouts: Range;
}

/** `capabilities`: so many are selected, calibrated and trained. Without one, no arm is trained. */
export function countWork(o: { campaign: Campaign; tasks: Prepared['tasks']; capabilities: number }) {
  const { campaign, tasks, capabilities: n } = o;
  const { rollouts, calibration, training, validation, router, evaluation } = campaign;
  const budget = n * training.steps * training.groupsPerStep * training.groupSize;
  const arms = (n > 0 ? campaign.arms : []).map((spec) => {
    const kind = kindOf(registry.arms, spec);
    return { spec, kind, ...kind.planned(spec, { campaign, capabilities: n, budget }) };
  });
  const round = calibration.seeds * calibration.rolloutsPerSeed;
  // A trainer saves every so many steps and at its end; the start is evaluated beside every checkpoint.
  const evaluated = Math.ceil(training.steps / training.checkpointEvery) + 1;
  const onTarget = (n > 0 ? 1 : 0) + n + arms.reduce((all, { heldOut }) => all + heldOut, 0);
  const heldOut = (n * evaluated * validation.seeds + onTarget * tasks.validation) * validation.trials;
  const sums = countSums(n);
  const routed = 1 + n + sums.tried;
  // Every policy alone, every sum, every arm, and trace.
  const alone = 1 + n + arms.length + 1;
  const tested = { low: alone + sums.options.low, high: alone + sums.options.high };
  const [routerTasks, testTasks] = [tasks.router * router.trials, tasks.test * evaluation.trials];
  const rows: [Stage, Purpose, low: number, high?: number][] = [
    ['rollouts', 'base_rollouts', tasks.train * rollouts.perTask],
    ['capabilities', 'calibration', n * round, n * round * calibration.maxRounds],
    ['capabilities', 'training', budget + arms.reduce((all, arm) => all + arm.training, 0)],
    ['capabilities', 'held_out', heldOut],
    ['router', 'outcome_matrix', routed * routerTasks],
    ['evaluation', 'test', tested.low * testTasks, tested.high * testTasks],
  ];
  const purposes = rows.map(([stage, purpose, low, high = low]): PlannedRollouts => {
    const kind = purpose === 'training' ? 'training' : 'rollout';
    return { stage, purpose, kind, rollouts: { low, high } };
  });
  return { capabilities: n, tasks, arms, purposes: purposes.filter((one) => one.rollouts.high > 0) };
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

/** `low` and `high` differ where a campaign decides on its way. */
export interface Range {
  low: number;
  high: number;
}
export const range = (of: (end: keyof Range) => number): Range => ({ low: of('low'), high: of('high') });
const exactly = (value: number): Range => ({ low: value, high: value });

/** Ends with ends; a number is both. */
const folded =
  (fold: (all: number, one: number) => number, start: number) =>
  (...values: (Range | number)[]): Range =>
    range((end) => values.map((one) => (typeof one === 'number' ? one : one[end])).reduce(fold, start));
export const sum = folded((all, one) => all + one, 0);
export const product = folded((all, one) => all * one, 1);

/** Whether a gradient follows the rollout. */
export const rolloutKinds = ['rollout', 'training'] as const;
export type RolloutKind = (typeof rolloutKinds)[number];
/** Of one rollout: wall time with the campaign's layout, and the policy's tokens; every turn counts its whole prompt. */
export const quantities = ['seconds', 'promptTokens', 'completionTokens'] as const;
export type Quantity = (typeof quantities)[number];

export interface Rate extends Range {
  basis: 'measured' | 'file' | 'assumed';
  source: string;
}
type Table<Value> = Record<RolloutKind, Record<Quantity, Value>>;
export type Rates = Table<Rate>;
type Assumption = Omit<Rate, 'basis'>;

const amount = z.number().nonnegative().optional();
const kindRates = z.strictObject({ seconds: amount, promptTokens: amount, completionTokens: amount }).optional();
/** A file of rates: any of them, by kind. */
export const ratesFileSchema = z.strictObject({ rollout: kindRates, training: kindRates });
export type RatesFile = z.infer<typeof ratesFileSchema>;

/** Measured rates first, then the file's, then assumptions. `gigabytes`: of the base model's weights. */
export function ratesOf(o: {
  campaign: Campaign;
  reports: readonly Report[];
  file?: { path: string; rates: RatesFile } | undefined;
  gigabytes: number;
}): Rates {
  const { campaign, reports, file, gigabytes } = o;
  const assumed = campaign.policyServer.kind === 'vllm' ? published(campaign) : onTwoCores(campaign, gigabytes);
  const rate = (kind: RolloutKind, quantity: Quantity): Rate => {
    for (const report of reports) {
      const value = measured(report, kind, quantity);
      const source = `campaign ${report.campaign.name} of ${report.campaign.startedAt.slice(0, 10)}`;
      if (value !== undefined) return { ...exactly(value), basis: 'measured', source };
    }
    const given = file?.rates[kind]?.[quantity];
    if (file && given !== undefined) return { ...exactly(given), basis: 'file', source: file.path };
    return { ...assumed[kind][quantity], basis: 'assumed' };
  };
  const ratesFor = (kind: RolloutKind): Rates[RolloutKind] => ({
    seconds: rate(kind, 'seconds'),
    promptTokens: rate(kind, 'promptTokens'),
    completionTokens: rate(kind, 'completionTokens'),
  });
  return { rollout: ratesFor('rollout'), training: ratesFor('training') };
}

/** What one report tells of the cost of a rollout; undefined where it tells nothing. */
export function measured({ rollouts, cost }: Report, kind: RolloutKind, quantity: Quantity): number | undefined {
  if (quantity === 'seconds') return cost?.secondsPerRollout?.[kind];
  const counted = (rollouts?.byPurpose ?? []).filter(
    (one) => (one.purpose === 'training') === (kind === 'training') && one[quantity] !== undefined,
  );
  const n = counted.reduce((all, { scored }) => all + scored.n, 0);
  return n === 0 ? undefined : counted.reduce((all, one) => all + (one[quantity]?.value ?? 0), 0) / n;
}

const DEMO = 'the demo, seed 2 (docs/results.md): its model, its environment, two cores';
const demo = {
  gigabytes: 0.004,
  seconds: { rollout: 0.011, training: 0.016 },
  promptTokens: 340,
  completionTokens: 20,
};
/**
 * Seconds of a rollout on two cores for each gigabyte of float32 weights beside the demo's: SmolLM2-135M (0.54 GB), 64 tokens a rollout, processor
 * time by two (docs/results.md). Twice that is the upper end: server and trainer share the cores.
 */
const perGigabyte = { rollout: 0.4, training: 0.86 };
/** Seconds of a rollout on two cores, of a target that starts a program for each. */
const PROGRAM = {
  low: 0.1,
  high: 3,
  source: 'no measurement: a program is started for each rollout, 0.1 to 3 s of two cores',
};
const CHAT = 'no measurement: between the demo and SmolLM2-135M (docs/results.md), one answer as long as may be';

/** Of the embedded policy server. */
function onTwoCores({ rollouts, target, plugins }: Campaign, gigabytes: number): Table<Assumption> {
  const program = kindOf(withPlugins(plugins).environments, target).startsPrograms ? PROGRAM : undefined;
  const larger = Math.max(0, gigabytes - demo.gigabytes);
  const weights = `${gigabytes.toFixed(2)} GB of weights, as docs/results.md has it for 0.54 GB and 64 tokens; two cores`;
  const seconds = (kind: RolloutKind): Assumption => {
    const [least, more] = [demo.seconds[kind], larger * perGigabyte[kind]];
    const { low, high, source } = program ?? { low: 0, high: 0, source: more > least ? weights : DEMO };
    // Trainings are in synthesized environments, but for those on the target.
    return { low: least + more + (kind === 'rollout' ? low : 0), high: least + 2 * more + high, source };
  };
  const source = larger === 0 ? DEMO : CHAT;
  const { promptTokens, completionTokens } = demo;
  const longest = larger === 0 ? completionTokens : Math.max(completionTokens, rollouts.sampling.maxTokens);
  const tokens = {
    promptTokens: { low: larger === 0 ? promptTokens : 50, high: promptTokens, source },
    completionTokens: { low: completionTokens, high: longest, source },
  };
  return { rollout: { seconds: seconds('rollout'), ...tokens }, training: { seconds: seconds('training'), ...tokens } };
}

/** Of a vLLM on GPUs: what the method's authors report. */
function published({ workers }: Campaign): Table<Assumption> {
  const { source, hoursPerAdapter, gpus, gpu, trainingRollouts, capabilities } = publishedRun;
  const perAdapter = trainingRollouts / capabilities;
  // Where all of them see the same GPUs, one is taken.
  const trainers = workers.gpuSlots * workers.gpusPerTrainer || 1;
  const [low, high] = hoursPerAdapter.map((hours) => (hours * 3600) / perAdapter) as [number, number];
  const text = `${source}: ${hoursPerAdapter.join(' to ')} h per adapter, taken as ${perAdapter} rollouts, on ${gpus.join(' to ')} ${gpu}`;
  const prompts = 'no measurement: 6 to 20 turns, each with a prompt of 5,000 to 9,000 tokens';
  const tokens = {
    promptTokens: { low: 6 * 5000, high: 20 * 9000, source: prompts },
    completionTokens: { low: 6 * 60, high: 20 * 150, source: 'no measurement: 6 to 20 turns of 60 to 150 tokens' },
  };
  const sampled = { low: low / 10, high, source: `${text}; without gradient between a tenth of it and all of it` };
  const trained = {
    low: low * (gpus[0] / trainers),
    high: high * (gpus[1] / trainers),
    source: `${text}; ${trainers} here`,
  };
  return { rollout: { seconds: sampled, ...tokens }, training: { seconds: trained, ...tokens } };
}

const ASSUMED_TRAJECTORY: Rate = {
  low: 4 * 40,
  high: 20 * 200,
  basis: 'assumed',
  source: 'no measurement: 4 to 20 turns of 40 to 200 tokens once they are compacted',
};

/** Tokens of a base rollout as it is shown: by the newest report of like campaigns whose base rollouts are in the home's store. */
export async function trajectoryTokens(reports: readonly Report[], home: Home): Promise<Rate> {
  const store = await openStore(home.root);
  const line = jsonText.pipe(rolloutSchema);
  for (const { campaign, rollouts } of reports) {
    const [ref] = rollouts?.byPurpose.find(({ purpose }) => purpose === 'base_rollouts')?.scored.from ?? [];
    // What is damaged or gone is measured in the next one.
    const text = ref && (await store.read(ref).catch(() => undefined))?.toString('utf8');
    const lengths = (text ?? '').split('\n').flatMap((one) => {
      const rollout = one === '' ? undefined : line.safeParse(one).data;
      return rollout?.status === 'scored' ? [tokensOf(compactOne({ rollout, id: 'r100' }).length)] : [];
    });
    if (lengths.length === 0) continue;
    const mean = lengths.reduce((all, length) => all + length, 0) / lengths.length;
    return {
      ...exactly(mean),
      basis: 'measured',
      source: `campaign ${campaign.name}, ${lengths.length} base rollouts`,
    };
  }
  return ASSUMED_TRAJECTORY;
}
