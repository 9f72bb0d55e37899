/** The plan as text: what is made and spent, stage by stage, and on what each rate rests. */
import type { Check } from '../../checks/check';
import { armName, type Campaign } from '../../domain/campaign';
import { publishedRun } from '../../domain/presets';
import { purposeNames } from '../../domain/rollout';
import { duration, MISSING, shortPercent, wholeNumber } from '../../report/format';
import { alignColumns } from '../../terminal';
import { describedText, type TargetTasks } from '../open-target';
import { compositesOf, type CampaignPlan, type StageCost } from './estimate';
import type { LanguageModelPlan } from './language-models';
import { quantities, type Range, range, type Rate, rolloutKinds } from './rates';

export interface DiskPlan {
  adapterBytes: number;
  /** Of all that are made. */
  bytes: number;
  /** Where the home is, or will be. */
  freeBytes: number;
}

type Format = (value: number) => string;
const between = ({ low, high }: Range, text: Format): string =>
  text(low) === text(high) ? text(low) : `${text(low)} - ${text(high)}`;
const rounded: Format = (value) => String(Number(value.toPrecision(2)));
const units = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const;
const short: Format = (value) => {
  const [size, unit] = units.find(([least]) => value >= least) ?? [];
  return size ? `${(value / size).toPrecision(3)} ${unit}` : wholeNumber(value);
};
const gigabytes: Format = (bytes) => `${(bytes / 1e9).toFixed(1)} GB`;

interface Column<Row> {
  title: string;
  range: (row: Row) => Range | undefined;
  text: Format;
  /** In the place of a range that there is not. */
  without?: string;
}

const tableOf = <Row>(title: string, columns: readonly Column<Row>[], rows: readonly [string, Row][]): string[] =>
  alignColumns(
    [
      [title, ...columns.map((column) => column.title)],
      ...rows.map(([name, row]) => [
        name,
        ...columns.map(({ range, text, without = MISSING }) => {
          const value = range(row);
          return value ? between(value, text) : without;
        }),
      ]),
    ],
    { numbers: true },
  );

const rollouts = { title: 'rollouts', range: (row: { rollouts: Range }) => row.rollouts, text: wholeNumber };
const spent = (title: string, quantity: keyof StageCost, text: Format): Column<StageCost> => ({
  title,
  range: (cost) => (cost.rollouts.high > 0 ? cost[quantity] : undefined),
  text,
});
const stageColumns = [
  spent('rollouts', 'rollouts', wholeNumber),
  spent('prompt tokens', 'promptTokens', short),
  spent('completion tokens', 'completionTokens', short),
  spent('wall time', 'wallSeconds', duration),
];
const gpuColumn = spent('GPU-hours', 'gpuHours', rounded);

type Questions = Pick<LanguageModelPlan['questions'][number], 'requests' | 'promptTokens' | 'completionTokens'> & {
  dollars?: Range;
};
const questionColumns: Column<Questions>[] = [
  { title: 'requests', range: ({ requests }) => requests, text: wholeNumber },
  { title: 'prompt tokens', range: ({ promptTokens }) => promptTokens, text: short },
  { title: 'reply tokens', range: ({ completionTokens }) => completionTokens, text: short },
  { title: 'dollars', range: ({ dollars }) => dollars, text: rounded, without: 'no price' },
];

export function languageModelLines({ questions, total, trajectory, budget }: LanguageModelPlan): string[] {
  if (questions.length === 0) return [];
  const sum = (of: 'promptTokens' | 'completionTokens') =>
    range((end) => questions.reduce((all, one) => all + one[of][end], 0));
  const all = { ...total, promptTokens: sum('promptTokens'), completionTokens: sum('completionTokens') };
  const rows = questions.map((one): [string, Questions] => [`${one.field}: ${one.step}`, one]);
  return [
    '',
    ...tableOf('language models', questionColumns, [...rows, ['all', all]]),
    ...(questions.every(({ step }) => step === 'rollouts')
      ? []
      : [rateLine('tokens of a base rollout shown to them', trajectory)]),
    ...(budget === undefined ? [] : [budget]),
  ];
}

const quantityNames = { seconds: 'seconds', promptTokens: 'prompt tokens', completionTokens: 'completion tokens' };
const basisNames = { measured: 'measured in', file: 'from', assumed: 'assumed,' };
const rateLine = (name: string, rate: Rate): string =>
  `${name}: ${between(rate, rounded)}; ${basisNames[rate.basis]} ${rate.source}`;

/** The file's counts are upper limits: where the target has fewer, both are said. */
function tasksLine({ rollouts, validation, router, evaluation }: Campaign, tasks: TargetTasks['tasks']): string {
  const of = (has: number, asked: number) => (has < asked ? `${has} of ${asked}` : `${has}`);
  return (
    `tasks: ${of(tasks.train, rollouts.tasks)} train, ${of(tasks.validation, validation.targetTasks)} validation, ` +
    `${of(tasks.router, router.tasks)} router, ${of(tasks.test, evaluation.tasks)} test`
  );
}

/** How the budget compares with the published one, where the target is one of its benchmarks. */
function publishedLines({ training }: Campaign, target: TargetTasks, capabilities: number): string[] {
  if (!target.isPublished) return [];
  const each = training.steps * training.groupsPerStep * training.groupSize;
  const { source, trainingRollouts, capabilities: n, hoursPerAdapter, gpus, gpu } = publishedRun;
  return [
    '',
    `training rollouts of the adapters: ${wholeNumber(each)} each, ${wholeNumber(each * capabilities)} in all; published: ` +
      `${wholeNumber(trainingRollouts)} for ${n} capabilities, ${hoursPerAdapter.join(' to ')} h per adapter on ${gpus.join(' to ')} ${gpu} (${source})`,
  ];
}

/** What of the target analyst and synthesizer lack, and what comes of it. */
const checkLines = (parts: readonly Check[]): string[] =>
  parts.flatMap(({ name, ok, warning, detail, fix }) =>
    ok ? (warning ? [`warning: ${name}: ${detail}`] : []) : [`error: ${name}: ${detail}; ${fix}`],
  );

/** The other files of a campaign are small beside its adapters. */
function diskLines(disk: DiskPlan | undefined): string[] {
  if (!disk) return [];
  const { adapterBytes, bytes, freeBytes } = disk;
  const size = `${gigabytes(bytes)} for adapters (${(adapterBytes / 1e6).toFixed(1)} MB; every step's is kept)`;
  const text = `disk: ${size}, ${gigabytes(freeBytes)} are free`;
  return [bytes > freeBytes ? `warning: ${text}; free some, or choose another folder with --home` : text];
}

function notes(campaign: Campaign, capabilities: number): string[] {
  const { arms, calibration, composites } = campaign;
  return [
    `calibration takes 1 to ${calibration.maxRounds} rounds a capability, with hints too where it is too hard; what is not calibrated is not trained`,
    ...(compositesOf(campaign, capabilities) > 0
      ? [
          `composite: one more adapter, on the environments mixed, in the upper ends; it takes about ${shortPercent(composites.share)} of their training rollouts (composites.share, to whole checkpoints)`,
        ]
      : []),
    ...(arms.length > 0
      ? [
          `arms (${arms.map(armName).join(', ')}): each is planned with the budget of trace, all capabilities trained to their last step`,
        ]
      : []),
  ];
}

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
  const { gpus, tasks, rates, purposes, stages, total, capabilities } = plan;
  const withGpus = gpus.policyServer + gpus.trainers > 0;
  const stageRows = stages.map(({ stage, ...cost }): [string, StageCost] => [stage, cost]);
  return [
    capabilities === o.given
      ? `${campaign.name}: planned for the ${o.given} capabilities that it is given (--capabilities N for another number)`
      : `${campaign.name}: planned for ${capabilities} capabilities; how many are selected is known after the stage selection (--capabilities N)`,
    [target.note, ...(target.description ? [describedText(target.description)] : [])].join(', '),
    ...checkLines(parts),
    tasksLine(campaign, tasks),
    ...(withGpus ? [`GPUs: ${gpus.policyServer} policy server, ${gpus.trainers} trainers, held all the time`] : []),
    '',
    ...tableOf('stage', withGpus ? [...stageColumns, gpuColumn] : stageColumns, [...stageRows, ['all', total]]),
    '',
    ...tableOf(
      'purpose',
      [rollouts],
      purposes.map((one) => [purposeNames[one.purpose], one]),
    ),
    ...notes(campaign, capabilities),
    ...publishedLines(campaign, target, capabilities),
    ...diskLines(o.disk),
    ...languageModelLines(languageModels),
    '',
    'rates, of one rollout:',
    ...rolloutKinds.flatMap((kind) =>
      quantities.map((quantity) => rateLine(`  ${kind}, ${quantityNames[quantity]}`, rates[kind][quantity])),
    ),
    'Measured rates come by themselves after `campaign run FILE --until rollouts`. The wall time of analysis, synthesis and report is not counted.',
  ].join('\n');
}
