/**
 * The plan as text: what is made and spent, stage by stage, and on what each rate rests.
 */
import { alignColumns } from '../../terminal';
import { armName, type Campaign } from '../../domain/campaign';
import { publishedRun } from '../../domain/presets';
import { purposeNames } from '../../domain/rollout';
import { duration, MISSING, shortPercent, wholeNumber } from '../../report/format';
import type { Check } from '../../checks/check';
import { toldBy } from '../checks/target';
import { type CampaignPlan, compositesOf, type DiskPlan, type Range, type StageCost } from './estimate';
import type { LanguageModelPlan } from './language-models';
import { kinds, quantities, type Quantity, type Rate } from './rates';
import type { TargetTasks } from '../open-target';

export const between = (range: Range, text: (value: number) => string): string => {
  const [low, high] = [text(range.low), text(range.high)];
  return low === high ? low : `${low} - ${high}`;
};
export const short = (value: number): string => {
  for (const [size, unit] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const)
    if (value >= size) return `${(value / size).toPrecision(3)} ${unit}`;
  return wholeNumber(value);
};
export const rounded = (value: number): string => String(Number(value.toPrecision(2)));

const table = (rows: string[][]): string[] => alignColumns(rows, { numbers: true });

export function languageModelLines({ questions, total, trajectory, budget }: LanguageModelPlan): string[] {
  if (questions.length === 0) return [];
  const money = (dollars: (typeof total)['dollars']) => (dollars ? between(dollars, rounded) : 'no price');
  const prompts = { low: 0, high: 0 };
  const replies = { low: 0, high: 0 };
  const rows = questions.map(({ field, step, requests, promptTokens, completionTokens, dollars }) => {
    for (const end of ['low', 'high'] as const) {
      prompts[end] += promptTokens[end];
      replies[end] += completionTokens[end];
    }
    const counts = [between(requests, wholeNumber), between(promptTokens, short), between(completionTokens, short)];
    return [`${field}: ${step}`, ...counts, money(dollars)];
  });
  const all = [between(total.requests, wholeNumber), between(prompts, short), between(replies, short)];
  return [
    '',
    ...table([
      ['language models', 'requests', 'prompt tokens', 'reply tokens', 'dollars'],
      ...rows,
      ['all', ...all, money(total.dollars)],
    ]),
    ...(questions.every(({ step }) => step === 'rollouts') ? [] : [shownText(trajectory)]),
    ...(budget === undefined ? [] : [budget]),
  ];
}

const shownText = (trajectory: LanguageModelPlan['trajectory']): string =>
  `a base rollout shown to them: ${between(trajectory, rounded)} tokens; ${trajectory.basis}${trajectory.basis === 'measured' ? ' in' : ','} ${trajectory.source}`;

const row = (name: string, cost: StageCost, withGpus: boolean): string[] => {
  const cells = [
    between(cost.rollouts, wholeNumber),
    between(cost.promptTokens, short),
    between(cost.completionTokens, short),
    between(cost.wallSeconds, duration),
    ...(withGpus ? [between(cost.gpuHours, rounded)] : []),
  ];
  return [name, ...(cost.rollouts.high === 0 ? cells.map(() => MISSING) : cells)];
};

const words: Record<Quantity, string> = {
  seconds: 'seconds',
  promptTokens: 'prompt tokens',
  completionTokens: 'completion tokens',
};

const rateLine = (name: string, rate: Rate): string =>
  `  ${name}: ${between(rate, rounded)}; ${rate.basis === 'file' ? 'from' : rate.basis}${rate.basis === 'assumed' ? ',' : rate.basis === 'measured' ? ' in' : ''} ${rate.source}`;

/** The file's counts are upper limits: where the target has fewer, both are said. */
function tasksLine({ rollouts, validation, router, evaluation }: Campaign, tasks: TargetTasks['tasks']): string {
  const of = (has: number, asked: number) => (has < asked ? `${has} of ${asked}` : `${has}`);
  return (
    `tasks: ${of(tasks.train, rollouts.tasks)} train, ${of(tasks.validation, validation.targetTasks)} validation, ` +
    `${of(tasks.router, router.tasks)} router, ${of(tasks.test, evaluation.tasks)} test`
  );
}

/** What the counts take arms for. */
function arms(campaign: Campaign): string[] {
  if (campaign.arms.length === 0) return [];
  const names = campaign.arms.map(armName).join(', ');
  return [`arms (${names}): each is planned with the budget of trace, all capabilities trained to their last step`];
}

/** What the upper ends have it for. */
const composites = (campaign: Campaign, capabilities: number): string[] =>
  compositesOf(campaign, capabilities) === 0
    ? []
    : [
        'composite: one more adapter, on the environments mixed, in the upper ends; it takes ' +
          `about ${shortPercent(campaign.composites.share)} of their training rollouts (composites.share, to whole checkpoints)`,
      ];

/** How the budget compares with the published one, where the target is one of its benchmarks. */
function published(campaign: Campaign, target: TargetTasks, capabilities: number): string[] {
  if (!target.isPublished) return [];
  const { steps, groupsPerStep, groupSize } = campaign.training;
  const each = steps * groupsPerStep * groupSize;
  const { source, trainingRollouts, capabilities: n, hoursPerAdapter, gpus, gpu } = publishedRun;
  return [
    '',
    `training rollouts of the adapters: ${wholeNumber(each)} each, ${wholeNumber(each * capabilities)} in all; published: ` +
      `${wholeNumber(trainingRollouts)} for ${n} capabilities, ${hoursPerAdapter.join(' to ')} h per adapter on ${gpus.join(' to ')} ${gpu} (${source})`,
  ];
}

/** What of the target analyst and synthesizer lack, and what comes of it. */
const lacks = (parts: readonly Check[]): string[] =>
  parts.flatMap(({ name, ok, warning, detail, fix }) =>
    ok ? (warning ? [`warning: ${name}: ${detail}`] : []) : [`error: ${name}: ${detail}; ${fix}`],
  );

/** The other files of a campaign are small beside its adapters. */
function diskLines(disk: DiskPlan | undefined): string[] {
  if (!disk) return [];
  const { adapterBytes, bytes, freeBytes } = disk;
  const text =
    `disk: ${gigabytes(bytes)} for adapters (${(adapterBytes / 1e6).toFixed(1)} MB; every step's is kept), ` +
    `${gigabytes(freeBytes)} are free`;
  return [bytes > freeBytes ? `warning: ${text}; free some, or choose another folder with --home` : text];
}

const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(1)} GB`;

export function planText(o: {
  campaign: Campaign;
  target: TargetTasks;
  /** Analyst and synthesizer, held against the target. */
  parts: readonly Check[];
  plan: CampaignPlan;
  disk?: DiskPlan | undefined;
  /** Capabilities that are selected whatever the rollouts show. */
  given?: number | undefined;
  languageModels: LanguageModelPlan;
}): string {
  const { campaign, target, parts, plan, languageModels } = o;
  const { gpus, tasks, rates, purposes, stages, total } = plan;
  const withGpus = gpus.policyServer + gpus.trainers > 0;
  const head = [
    'stage',
    'rollouts',
    'prompt tokens',
    'completion tokens',
    'wall time',
    ...(withGpus ? ['GPU-hours'] : []),
  ];
  return [
    plan.capabilities === o.given
      ? `${campaign.name}: planned for the ${o.given} capabilities that it is given (--capabilities N for another number)`
      : `${campaign.name}: planned for ${plan.capabilities} capabilities; how many are selected is known after the stage selection (--capabilities N)`,
    target.note + (target.description ? `, ${toldBy(target.description)}` : ''),
    ...lacks(parts),
    tasksLine(campaign, tasks),
    ...(withGpus ? [`GPUs: ${gpus.policyServer} policy server, ${gpus.trainers} trainers, held all the time`] : []),
    '',
    ...table([head, ...stages.map(({ stage, ...cost }) => row(stage, cost, withGpus)), row('all', total, withGpus)]),
    '',
    ...table([
      ['purpose', 'rollouts'],
      ...purposes.map(({ purpose, rollouts }) => [purposeNames[purpose], between(rollouts, wholeNumber)]),
    ]),
    `calibration takes 1 to ${campaign.calibration.maxRounds} rounds a capability, with hints too where it is too hard; what is not calibrated is not trained`,
    ...composites(campaign, plan.capabilities),
    ...arms(campaign),
    ...published(campaign, target, plan.capabilities),
    ...diskLines(o.disk),
    ...languageModelLines(languageModels),
    '',
    'rates, of one rollout:',
    ...kinds.flatMap((kind) =>
      quantities.map((quantity) => rateLine(`${kind}, ${words[quantity]}`, rates[kind][quantity])),
    ),
    'Measured rates come by themselves after `campaign run FILE --until rollouts`. The wall time of analysis, synthesis and report is not counted.',
  ].join('\n');
}
