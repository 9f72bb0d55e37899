/** Numbers of a comparison as text, in the report's own way. */
import { MISSING, shortPercent, spreadText, valueText, wholeNumber } from '../format';
import { testText } from '../paired';
import type { ComparedArm, ComparedPair, Comparison } from './comparison';
import type { Span } from './outcomes';

type Unit = 'fraction' | 'difference';

export const rateText = (value: number): string => valueText({ value, unit: 'fraction' });
export const differenceText = (value: number): string => valueText({ value, unit: 'difference' });

export const spanText = (span: Span | { value: number } | undefined, unit: Unit): string =>
  span !== undefined && 'low' in span
    ? (spreadText({ unit, interval: { low: span.low, high: span.high, level: 0.95, method: '' } }) ?? MISSING)
    : MISSING;

export const METHOD = 'Intervals: bootstrap over runs and tasks, paired where it is a difference.';
/** Their spread is what the interval of few runs misses. */
const FEW_RUNS = 5;

/** What has to be said of the comparison as a whole. */
export function notesOf({ runs, arms, level }: Comparison): string[] {
  const seeds = runs.map(({ name, seed, trainingSeed }) => `${name} (seed ${seed}, training seed ${trainingSeed})`);
  const draws = new Set(runs.map(({ seed, trainingSeed }) => `${seed} ${trainingSeed}`)).size;
  const few =
    draws < FEW_RUNS
      ? ` Of ${draws} runs they are too narrow: the runs’ spread counts for ${draws - 1}/${draws} of what it is.`
      : '';
  return [
    `runs: ${seeds.join(', ')}`,
    `${shortPercent(level)} intervals. ${METHOD}${few}`,
    ...repeatedText(runs),
    ...sharedText({ runs, arms }),
    ...arms.flatMap(({ name, missing }) =>
      missing.length > 0 ? [`${name} was not evaluated in ${missing.join(', ')}`] : [],
    ),
  ];
}

/** Runs that share both seeds are no independent draws. */
function repeatedText(runs: Comparison['runs']): string[] {
  const of = ({ seed, trainingSeed }: Comparison['runs'][number]): string =>
    `seed ${seed}, training seed ${trainingSeed}`;
  return [...new Set(runs.map(of))].flatMap((seeds) => {
    const names = runs.filter((run) => of(run) === seeds).map(({ name }) => name);
    if (names.length === 1) return [];
    return [`${names.join(' and ')} share ${seeds}: they are no independent draws and count as one, their mean`];
  });
}

/** Runs of other seeds evaluate on other tasks of a large target. */
function sharedText({ runs, arms }: Pick<Comparison, 'runs' | 'arms'>): string[] {
  const most = Math.max(...runs.map(({ tasks }) => tasks));
  const shared = Math.max(0, ...arms.map(({ successRate }) => ('tasks' in successRate ? successRate.tasks : 0)));
  if (shared === most) return [];
  const each = runs.map(({ name, tasks }) => `${name} ${tasks}`).join(', ');
  const what =
    shared === 0
      ? 'no test task is evaluated in all runs: there is neither interval nor difference'
      : `success and differences are over the ${shared} test tasks that are evaluated in all runs`;
  return [`${what} (${each}); runs that differ in --training-seed alone evaluate on the same`];
}

/** `trace to grpo_target: +3.5 pt (-1.0 to +8.0); by run demo +2.0 pt, better on 20 tasks, worse on 16, p 0.618; ...`. */
export function pairText({ arm, against, difference, byRun }: ComparedPair): string {
  const each = byRun.map(({ run, difference: value, test }) => {
    const tested = test && testText({ test });
    return [`${run} ${differenceText(value)}`, ...(tested ? [tested] : [])].join(', ');
  });
  const whole = `${differenceText(difference.value)} (${spanText(difference, 'difference')})`;
  return `${arm} to ${against}: ${whole}; by run: ${each.join('; ')}`;
}

/** `grpo_target held out: 512 rollouts 45.0%, 1,024 rollouts 52.0%`; undefined where nothing was. */
export const heldOutText = ({ name, heldOut }: ComparedArm): string | undefined =>
  heldOut.length === 0
    ? undefined
    : `${name}, held out: ${heldOut.map(({ rollouts, successRate }) => `${rateText(successRate)} at ${wholeNumber(rollouts)}`).join(', ')}`;
