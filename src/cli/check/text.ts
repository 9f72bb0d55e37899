/** The sections of `campaign check` as text. */
import { detectableDifference } from '../../domain/power';
import { subsets } from '../../domain/results';
import { purposeNames } from '../../domain/rollout';
import { duration, percent, wholeNumber } from '../../report/format';
import { alignColumns, cut } from '../../terminal';
import { type FirstTurns, readingLines } from './first-turns';
import type { LanguageModelPlan } from './language-models';
import type { TargetTasks } from './target';
import { type Cost, type PlannedWork, type Range, sum } from './work';

type Format = (value: number) => string;
const between = ({ low, high }: Range, text: Format): string =>
  text(low) === text(high) ? text(low) : `${text(low)} to ${text(high)}`;
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

const WORDS = 60;

export function firstTurnLines(turns: FirstTurns | string): string[] {
  if (typeof turns === 'string') return [turns];
  const rows = turns.turns.map(({ task, reading, text, calls }) => [
    task,
    calls.length > 0
      ? calls.join(', ')
      : reading === 'empty'
        ? '(empty)'
        : `"${cut(text.replace(/\s+/g, ' ').trim(), WORDS)}"`,
  ]);
  return [...rows.map(([task, words]) => `  ${task}: ${words}`), ...readingLines(turns)];
}

/** Names the counts of the file beside those of the target where these are smaller. */
function taskLines({ wanted, taken, available }: TargetTasks): string[] {
  const counts = subsets.map((part) =>
    taken[part] < wanted[part]
      ? `${taken[part]} ${part} (the file asks for ${wanted[part]})`
      : `${taken[part]} ${part}`,
  );
  const has = available && `the target has ${available.train} train and ${available.test} test tasks`;
  return [
    `tasks: ${counts.join(', ')}; ${has ?? 'these are the counts of the file, since the target does not list its own'}`,
  ];
}

const MEASURE = '`campaign run FILE --until rollouts` measures rollouts, a finished training measures training';

export function costLines(o: { tasks: TargetTasks; work: PlannedWork; cost: Cost; isGiven: boolean }): string[] {
  const { work, isGiven } = o;
  const { gpus, costs: rows } = o.cost;
  const all = sum(...work.purposes.map(({ rollouts }) => rollouts));
  const table = [
    ...work.purposes.map(({ purpose, rollouts }) => [purposeNames[purpose], between(rollouts, wholeNumber)]),
    ['all rollouts', between(all, wholeNumber)],
  ];
  const capabilities = `${work.capabilities} ${work.capabilities === 1 ? 'capability' : 'capabilities'}`;
  const withGpus = gpus.policyServer + gpus.trainers > 0;
  const costs = rows.map(({ kind, seconds, promptTokens, completionTokens, gpuHours }) => {
    const what = kind === 'training' ? 'training' : 'rollouts without training';
    if (!seconds) return `${what}: not measured yet`;
    return [
      `${what}: ${between(seconds, duration)}`,
      ...(promptTokens ? [`${between(promptTokens, short)} prompt tokens`] : []),
      ...(completionTokens ? [`${between(completionTokens, short)} completion tokens`] : []),
      ...(gpuHours && withGpus ? [`${between(gpuHours, rounded)} GPU-hours`] : []),
      `measured in campaign ${seconds.campaign}`,
    ].join(', ');
  });
  return [
    isGiven
      ? `planned for ${capabilities}, as given`
      : `planned for ${capabilities}, as published; the selection decides`,
    ...taskLines(o.tasks),
    ...alignColumns(table, { numbers: true }).map((line) => `  ${line}`),
    ...(withGpus ? [`GPUs held: ${gpus.policyServer} by the policy server, ${gpus.trainers} by trainers`] : []),
    ...(rows.some(({ seconds }) => seconds)
      ? costs
      : [`time, tokens${withGpus ? ', GPU-hours' : ''}: not measured yet`]),
    ...(rows.every(({ seconds }) => seconds) ? [] : [MEASURE]),
  ];
}

export function requestLines({ questions, total, trajectory, budget }: LanguageModelPlan): string[] {
  const line = (name: string, o: { requests: Range; tokens: Range; dollars?: Range }) =>
    `${name}: requests ${between(o.requests, wholeNumber)}, tokens ${between(o.tokens, short)}, ${o.dollars ? `${between(o.dollars, rounded)} dollars` : 'no price'}`;
  const shown = trajectory.campaign ? `measured in campaign ${trajectory.campaign}` : 'estimated';
  return [
    ...questions.map((one) =>
      line(`${one.field}, ${one.step}`, { ...one, tokens: sum(one.promptTokens, one.completionTokens) }),
    ),
    ...(questions.length > 1 ? [line('all', total)] : []),
    `tokens of a base rollout shown to them: ${between(trajectory, rounded)}, ${shown}`,
    ...(budget === undefined ? [] : [budget]),
  ];
}

export function detectableLines(o: {
  tasks: number;
  trials: number;
  base: { rate: number; campaign: string } | undefined;
  difference: number | undefined;
}): string[] {
  const { tasks, trials, base, difference } = o;
  const rate = base
    ? `a base rate of ${percent(base.rate)}, measured in campaign ${base.campaign}`
    : 'a base rate of 50%, the least favourable one';
  const setting = `${tasks} test tasks, ${trials} ${trials === 1 ? 'trial' : 'trials'} each, ${rate}`;
  if (difference === undefined)
    return [`none with 80% power (${setting}); use more test tasks (evaluation.tasks) or trials (evaluation.trials)`];
  const twice = detectableDifference({ tasks, trials: 2 * trials, base: base?.rate ?? 0.5 });
  return [
    `${points(difference)} with 80% power at the 5% level (${setting})`,
    ...(twice === undefined ? [] : [`with ${2 * trials} trials each: ${points(twice)}`]),
    'Another training of the same campaign differs by chance, too; this figure does not include it.',
  ];
}

const points = (difference: number): string => `${(100 * difference).toFixed(1)} points`;
