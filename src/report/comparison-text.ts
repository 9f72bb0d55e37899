/** A comparison of runs as short text: on a terminal, and the sentences of its page. */
import type { ComparedPair, Comparison } from './comparison';
import { measuredText, percent, shortPercent, testText, valueText, wholeNumber } from './format';
import { clip, fittingWidth, tableLines } from './terminal';

/** Returns the policies over all runs, the routed policy beside each, and what limits the comparison. */
export function comparisonText(comparison: Comparison, columns?: number): string {
  const width = fittingWidth(columns);
  const { runs, target, baseModel, arms, differences } = comparison;
  const rate = (value: number): string => valueText({ value, unit: 'fraction' });
  const rows = arms.map(({ name, successRate, allRollouts, byRun }) => [
    name,
    rate(successRate.value),
    'low' in successRate ? `${percent(successRate.low)} to ${percent(successRate.high)}` : '',
    wholeNumber(allRollouts),
    byRun.map((one) => rate(one.successRate)).join(' '),
  ]);
  return [
    ...clip(`${runs.length} runs on ${target.name} ${target.version}, base model ${baseModel}`, width),
    ...tableLines(['policy', 'success', 'interval', 'rollouts', 'by run'], rows, width),
    ...differences.flatMap((pair) => clip(pairText(pair), width)),
    ...notesOf(comparison).flatMap((text) => clip(text, width)),
  ].join('\n');
}

/** Returns what limits the comparison as a whole. */
export function notesOf({ runs, arms, level }: Comparison): string[] {
  const seedsOf = (run: Comparison['runs'][number]) => `seed ${run.seed}, training seed ${run.trainingSeed}`;
  const draws = new Map<string, string[]>();
  for (const run of runs) draws.set(seedsOf(run), [...(draws.get(seedsOf(run)) ?? []), run.name]);
  const repeated = [...draws].filter(([, names]) => names.length > 1);
  const most = Math.max(...runs.map(({ tasks }) => tasks));
  const shared = Math.max(0, ...arms.map(({ successRate }) => ('tasks' in successRate ? successRate.tasks : 0)));
  const each = runs.map(({ name, tasks }) => `${name} ${tasks}`).join(', ');
  const over =
    shared === 0
      ? 'no test task is evaluated in all runs: there is neither interval nor difference'
      : `success and differences are over the ${shared} test tasks that are evaluated in all runs`;
  const notes: (string | false)[] = [
    `runs: ${runs.map((run) => `${run.name} (${seedsOf(run)})`).join(', ')}`,
    draws.size === 1
      ? `one training run of each arm: all runs share seed and training seed, so how far trainings differ on this target is unknown, and ${shortPercent(level)} intervals are over the test tasks alone`
      : `${shortPercent(level)} intervals are for other tasks and other trainings: over the test tasks, and by Student’s t over the runs; of base, and of what was trained once, over the tasks alone`,
    ...repeated.map(
      ([seeds, names]) =>
        `${names.join(' and ')} share ${seeds}: they are no independent draws and count as one, their mean`,
    ),
    // Runs of other seeds evaluate on other tasks of a large target.
    shared < most && `${over} (${each}); runs that differ in --training-seed alone evaluate on the same`,
    ...arms.map(({ name, missing }) => missing.length > 0 && `${name} was not evaluated in ${missing.join(', ')}`),
  ];
  return notes.filter((one) => one !== false);
}

const standingText = {
  ahead: 'ahead over trainings',
  behind: 'behind over trainings',
  undecided: 'no significant difference over trainings',
  one_training: 'one training of each',
  same_policy: 'one policy',
} as const satisfies Record<ComparedPair['standing'], string>;

/** `trace to grpo_target: +3.5 pt (-4.0 to +11.0), one training of each; by run: demo +3.5 pt, better on 20 tasks, worse on 13, p 0.296`. */
export function pairText({ arm, against, difference, standing, byRun }: ComparedPair): string {
  const runs = byRun.map(({ run, difference: value, test, samePolicy }) => {
    const tested = samePolicy ? 'one policy' : testText({ test });
    return [`${run} ${valueText({ value, unit: 'difference' })}`, tested].filter(Boolean).join(', ');
  });
  const { value, low, high } = difference;
  const head =
    standing === 'same_policy'
      ? `${arm} and ${against} are one policy, and their figures samples of it`
      : `${arm} to ${against}: ${measuredText({ value, unit: 'difference', interval: { low, high, level: 0, method: '' } })}, ${standingText[standing]}`;
  return `${head}; by run: ${runs.join('; ')}`;
}
