/** The sections of `campaign check` as text. */
import { subsets } from '../../domain/results';
import { purposeNames } from '../../domain/rollout';
import { duration, percent, wholeNumber } from '../../report/format';
import { alignColumns, cut } from '../../terminal';
import { type FirstTurns, readingLines } from './first-turns';
import type { LanguageModelPlan } from './language-models';
import { type Cost, type PlannedWork, type Range, sum } from './work';

type Format = (value: number) => string;
const between = ({ low, high }: Range, text: Format): string =>
  text(low) === text(high) ? text(low) : `${text(low)} to ${text(high)}`;
const rounded: Format = (value) => String(Number(value.toPrecision(2)));
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

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

const MEASURE = '`campaign run FILE --until rollouts` measures rollouts, a finished training measures training';

export function costLines({ work, cost, isGiven }: { work: PlannedWork; cost: Cost; isGiven: boolean }): string[] {
  const { gpus, costs: rows } = cost;
  const all = sum(...work.purposes.map(({ rollouts }) => rollouts));
  const table = [
    ...work.purposes.map(({ purpose, rollouts }) => [purposeNames[purpose], between(rollouts, wholeNumber)]),
    ['all rollouts', between(all, wholeNumber)],
  ];
  const capabilities = `${work.capabilities} ${work.capabilities === 1 ? 'capability' : 'capabilities'}`;
  const withGpus = gpus.policyServer + gpus.trainers > 0;
  const costs = rows.map(({ kind, seconds, gpuHours }) => {
    const what = kind === 'training' ? 'training' : 'rollouts without training';
    if (!seconds) return `${what}: not measured yet`;
    return [
      `${what}: ${between(seconds, duration)}`,
      ...(gpuHours && withGpus ? [`${between(gpuHours, rounded)} GPU-hours`] : []),
      `measured in campaign ${seconds.campaign}`,
    ].join(', ');
  });
  return [
    `planned for ${capabilities}, as ${isGiven ? 'given' : 'published; the selection decides'}`,
    `tasks: ${subsets.map((part) => `${work.tasks[part]} ${part}`).join(', ')}`,
    ...alignColumns(table, { numbers: true }).map((line) => `  ${line}`),
    ...(withGpus ? [`GPUs held: ${gpus.policyServer} by the policy server, ${gpus.trainers} by trainers`] : []),
    ...(rows.some(({ seconds }) => seconds) ? costs : [`time${withGpus ? ', GPU-hours' : ''}: not measured yet`]),
    ...(rows.every(({ seconds }) => seconds) ? [] : [MEASURE]),
  ];
}

export function requestLines({ questions, total }: LanguageModelPlan): string[] {
  const line = (name: string, o: { requests: Range; tokens: Range; dollars?: Range }) =>
    `${name}: requests ${between(o.requests, wholeNumber)}, tokens ${between(o.tokens, (count) => compact.format(count))}, ${o.dollars ? `${between(o.dollars, rounded)} dollars` : 'no price'}`;
  return [
    ...questions.map((one) =>
      line(`${one.field}, ${one.step}`, { ...one, tokens: sum(one.promptTokens, one.completionTokens) }),
    ),
    ...(questions.length > 1 ? [line('all', total)] : []),
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
  return [
    `${(100 * difference).toFixed(1)} points with 80% power at the 5% level (${setting})`,
    'Another training of the same campaign differs by chance, too; this figure does not include it.',
  ];
}
