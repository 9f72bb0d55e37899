/** `campaign plan`: the target's tasks, earlier reports and the base model's weights, put together, as text. It reads only, and starts no service. */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Check, partChecks, runChecks, textOf } from '../../checks/check';
import { armName, type Campaign } from '../../domain/campaign';
import { kindOf } from '../../domain/kinds';
import { publishedRun } from '../../domain/presets';
import { type Subset, subsets } from '../../domain/results';
import { purposeNames } from '../../domain/rollout';
import { loraModules } from '../../policy/base-model';
import { withPlugins } from '../../plugins';
import { duration, MISSING, wholeNumber } from '../../report/format';
import type { Report } from '../../report/model';
import { alignColumns, print, wrapText } from '../../terminal';
import { loadCampaign } from '../campaign-file';
import { freeBytes } from '../checks/machine';
import { readInput } from '../input';
import { describedText, mostTasks, targetTasks, type TargetTasks } from '../checks/target';
import { type CommonOptions, homeOf } from '../options';
import {
  type CampaignPlan,
  countWork,
  estimate,
  type PlannedWork,
  quantities,
  type Range,
  type Rate,
  type RatesFile,
  ratesFileSchema,
  ratesOf,
  rolloutKinds,
  sum,
  trajectoryTokens,
} from './estimate';
import { type LanguageModelPlan, plannedQuestions } from './language-models';
import { pythonPath } from '../project';
import { allReports } from '../reports';

export interface PlanOptions extends CommonOptions {
  capabilities?: number;
  rates?: string;
}

/** @returns the exit code. */
export async function plan(path: string, options: PlanOptions): Promise<number> {
  const home = homeOf(options);
  const campaign = loadCampaign({ file: path });
  const registry = withPlugins(campaign.plugins);
  const file = options.rates === undefined ? undefined : { path: options.rates, rates: readRates(options.rates) };
  const target = await targetTasks(campaign, home);
  const { name, note, tasks, description } = target;
  const parts = await runChecks(partChecks({ campaign, describe: async () => description, registry }));
  const reports = allReports(home.root).filter((report) => isLike(report, campaign, name));
  const given = await selectedBefore(campaign);
  const capabilities = options.capabilities ?? given ?? publishedRun.capabilities;
  const work = countWork({ campaign, tasks, capabilities });
  const gigabytes = weightBytes(campaign.baseModel.path) / 1e9;
  const counted = estimate(campaign, work, ratesOf({ campaign, reports, gigabytes, file }));
  const disk = await plannedDisk({ campaign, work, home: home.root });
  const trajectory = await trajectoryTokens(reports, home);
  const languageModels = plannedQuestions({ campaign, work, description, trajectory });
  if (options.json)
    print(JSON.stringify({ campaign: campaign.name, target: name, note, parts, ...counted, disk, languageModels }));
  else {
    const text = planText({ campaign, target, parts, plan: counted, disk, given, languageModels });
    print(wrapText(text, process.stdout.columns));
  }
  return parts.every(({ ok }) => ok) ? 0 : 1;
}

/** What an analyst that can't be opened would select is not known either: the checks say why. */
async function selectedBefore({ analyst, plugins }: Campaign): Promise<number | undefined> {
  try {
    return (await kindOf(withPlugins(plugins).analysts, analyst).open(analyst, undefined)).selected;
  } catch {
    return undefined;
  }
}

/** Whether a report is of the same base model and target: then a rollout costs the same. */
const isLike = ({ campaign }: Report, { baseModel }: Campaign, target: string): boolean =>
  campaign.target.name === target && campaign.baseModel.startsWith(`${basename(baseModel.path)}@`);

/** 0 where there is no such folder yet: `doctor` says so. */
const weightBytes = (folder: string): number =>
  (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => name.endsWith('.safetensors'))
    .reduce((all, name) => all + statSync(join(folder, name)).size, 0);

const readRates = (file: string): RatesFile =>
  readInput({ file, named: `--rates ${file}`, schema: ratesFileSchema, fix: 'docs/plan.md has the form' });

/** Factors A and B, in float32. */
const BYTES = 4;
/** Each step's adapter is in the store, and laid out for the policy server. */
const COPIES = 2;
/** A checkpoint has the adapter and Adam's two moments of it. */
const CHECKPOINT = 3;

/** Undefined where the base model, or the Python that would look at it, is not there yet. */
export async function plannedDisk(o: {
  campaign: Campaign;
  work: Pick<PlannedWork, 'purposes'>;
  home: string;
}): Promise<DiskPlan | undefined> {
  const { baseModel, training } = o.campaign;
  const { r, targetModules } = training.lora;
  if (!existsSync(baseModel.path)) return undefined;
  const asked = { python: pythonPath(), model: baseModel.path, targetModules, home: o.home };
  const { modules } = await loraModules(asked).catch(() => ({ modules: [] }));
  if (modules.length === 0) return undefined;
  const adapterBytes = modules.reduce((all, module) => all + (module.in + module.out) * module.experts * r * BYTES, 0);
  const rollouts = o.work.purposes.find(({ purpose }) => purpose === 'training')?.rollouts.high ?? 0;
  const steps = rollouts / (training.groupsPerStep * training.groupSize);
  const bytes = adapterBytes * steps * (COPIES + CHECKPOINT / training.checkpointEvery);
  return { adapterBytes, bytes, freeBytes: freeBytes(o.home) };
}

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

type Column<Key> = readonly [title: string, figure: Key, text: Format, without?: string];

/** A row has a range for each column, or what is said in its place. */
const tableOf = <Key extends string>(
  title: string,
  columns: readonly Column<Key>[],
  rows: readonly (readonly [name: string, figures: Partial<Record<Key, Range>>])[],
): string[] =>
  alignColumns(
    [
      [title, ...columns.map(([column]) => column)],
      ...rows.map(([name, figures]) => [
        name,
        ...columns.map(([, figure, text, without = MISSING]) => {
          const value = figures[figure];
          return value ? between(value, text) : without;
        }),
      ]),
    ],
    { numbers: true },
  );

const spent = [
  ['rollouts', 'rollouts', wholeNumber],
  ['prompt tokens', 'promptTokens', short],
  ['completion tokens', 'completionTokens', short],
  ['wall time', 'wallSeconds', duration],
  ['GPU-hours', 'gpuHours', rounded],
] as const;
const asked = [
  ['requests', 'requests', wholeNumber],
  ['prompt tokens', 'promptTokens', short],
  ['reply tokens', 'completionTokens', short],
  ['dollars', 'dollars', rounded, 'no price'],
] as const;

function languageModelLines({ questions, total, trajectory, budget }: LanguageModelPlan): string[] {
  if (questions.length === 0) return [];
  const all = {
    ...total,
    promptTokens: sum(...questions.map(({ promptTokens }) => promptTokens)),
    completionTokens: sum(...questions.map(({ completionTokens }) => completionTokens)),
  };
  const rows = questions.map((one) => [`${one.field}: ${one.step}`, one] as const);
  const isShown = questions.some(({ step }) => step !== 'rollouts');
  return [
    '',
    ...tableOf('language models', asked, [...rows, ['all', all]]),
    ...(isShown ? [rateLine('tokens of a base rollout shown to them', trajectory)] : []),
    ...(budget === undefined ? [] : [budget]),
  ];
}

const quantityNames = { seconds: 'seconds', promptTokens: 'prompt tokens', completionTokens: 'completion tokens' };
const basisNames = { measured: 'measured in', file: 'from', assumed: 'assumed,' };
const rateLine = (name: string, rate: Rate): string =>
  `${name}: ${between(rate, rounded)}; ${basisNames[rate.basis]} ${rate.source}`;

/** Where the target has fewer tasks than the file asks for, both are said. */
function tasksLine(campaign: Campaign, tasks: TargetTasks['tasks']): string {
  const most = mostTasks(campaign);
  const text = (part: Subset) => (tasks[part] < most[part] ? `${tasks[part]} of ${most[part]}` : tasks[part]);
  return `tasks: ${subsets.map((part) => `${text(part)} ${part}`).join(', ')}`;
}

/** What of the target analyst and synthesizer lack, and what comes of it. */
const checkLines = (parts: readonly Check[]): string[] =>
  parts
    .filter(({ ok, warning }) => !ok || warning)
    .map((check) => `${check.ok ? 'warning' : 'error'}: ${check.name}: ${textOf(check)}`);

/** The other files of a campaign are small beside its adapters. */
function diskLines(disk: DiskPlan | undefined): string[] {
  if (!disk) return [];
  const { adapterBytes, bytes, freeBytes } = disk;
  const size = `${gigabytes(bytes)} for adapters (${(adapterBytes / 1e6).toFixed(1)} MB; every step's is kept)`;
  const text = `disk: ${size}, ${gigabytes(freeBytes)} are free`;
  return [bytes > freeBytes ? `warning: ${text}; free some, or choose another folder with --home` : text];
}

function notes({ arms, calibration, trainer }: Campaign): string[] {
  const lines = [
    `calibration takes ${calibration.maxRounds === 1 ? '1 round' : `1 to ${calibration.maxRounds} rounds`} a capability; what is not calibrated is not trained`,
  ];
  if (arms.length > 0)
    lines.push(
      `arms (${arms.map(armName).join(', ')}): each is planned with the budget of trace, all capabilities trained to their last step`,
    );
  if (trainer.kind === 'tinker')
    lines.push(
      'what the Tinker server asks for training is in no sum here; it is counted step by step, and budget holds it',
    );
  return lines;
}

function planText(o: {
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
  const { campaign, target, parts, plan, given, languageModels } = o;
  const { gpus, tasks, rates, purposes, stages, total, capabilities } = plan;
  const withGpus = gpus.policyServer + gpus.trainers > 0;
  const selected = `${capabilities} ${capabilities === 1 ? 'capability' : 'capabilities'}`;
  const count =
    capabilities === given
      ? `the ${selected} that it is given (--capabilities N for another number)`
      : `${selected}; how many are selected is known after the stage selection (--capabilities N)`;
  const costs = [...stages.map(({ stage, ...cost }) => [stage, cost] as const), ['all', total] as const];
  return [
    `${campaign.name}: planned for ${count}`,
    [target.note, ...(target.description ? [describedText(target.description)] : [])].join(', '),
    ...checkLines(parts),
    tasksLine(campaign, tasks),
    ...(withGpus ? [`GPUs: ${gpus.policyServer} policy server, ${gpus.trainers} trainers, held all the time`] : []),
    '',
    ...tableOf(
      'stage',
      withGpus ? spent : spent.slice(0, -1),
      costs.map(([name, cost]) => [name, cost.rollouts.high > 0 ? cost : {}]),
    ),
    '',
    ...tableOf(
      'purpose',
      spent.slice(0, 1),
      purposes.map(({ purpose, rollouts }) => [purposeNames[purpose], { rollouts }]),
    ),
    ...notes(campaign),
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
