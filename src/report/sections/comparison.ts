/** A comparison as sections, in the report's own words. */
import type { ComparedArm, ComparedPair, Comparison, Span } from '../comparison';
import { measuredText, shortPercent, TEST, testText, valueText, wholeNumber } from '../format';
import { pageHtml } from '../html';
import { type Mark, type Plot, ROOM, shareEnd } from '../plots';
import { type Blocks, heading, list, type Measured, paragraph, plot, table } from '../blocks';
import { terminalText } from '../terminal';

export const comparisonHtml = (comparison: Comparison): string =>
  pageHtml({
    title: `${comparison.runs.map(({ name }) => name).join(', ')}: comparison`,
    views: [{ id: 'comparison', name: 'Comparison', blocks: blocksOf(comparison) }],
  });
export const comparisonText = (comparison: Comparison, columns?: number): string =>
  terminalText(blocksOf(comparison), columns);

const PLOT =
  'Open: held-out train tasks of the target, mean over the runs. Large: test tasks, the mean, and small each run.';

function blocksOf(comparison: Comparison): Blocks {
  const { runs, target, baseModel, arms, differences, level } = comparison;
  const heldOut = arms.flatMap(({ name, heldOut: points }) => {
    const each = points.map((one) => `${rateText(one.successRate)} at ${wholeNumber(one.rollouts)}`);
    return each.length > 0 ? [`${name}, held out: ${each.join(', ')}`] : [];
  });
  return [
    paragraph(`${runs.length} runs on ${target.name} ${target.version}, base model ${baseModel}`),
    list(notesOf(comparison)),
    heading('Arms on test tasks'),
    table(arms, [
      ['arm', ({ name }) => name],
      ['what', ({ role, kind }) => (role === 'baseline' ? `baseline ${kind}` : role), { detail: true }],
      ['runs', ({ byRun }) => `${byRun.length}`, { spare: 5 }],
      ['training', ({ trainingRollouts }) => wholeNumber(trainingRollouts), { spare: 2 }],
      ['all rollouts', ({ allRollouts }) => wholeNumber(allRollouts), { spare: 1 }],
      ['success', ({ successRate }) => measured(successRate, 'fraction', level)],
      ['to base', ({ differenceToBase: difference }) => difference && measured(difference, 'difference', level)],
      ['by run', ({ byRun }) => byRun.map((one) => rateText(one.successRate)).join(' '), { spare: 2 }],
    ]),
    paragraph('Rollouts of training, and all to come to the arm: means over the runs.', 'quiet'),
    heading('Paired differences'),
    list(differences.map(pairText)),
    paragraph(`p: ${TEST}, of one run.`, 'quiet'),
    heading('Success against training rollouts'),
    plot(comparisonPlot(arms), PLOT),
    list(heldOut),
  ];
}

const rateText = (value: number): string => valueText({ value, unit: 'fraction' });

/** Only tables show the level. */
const measured = (span: Span | { value: number }, unit: 'fraction' | 'difference', level = 0): Measured => ({
  value: span.value,
  unit,
  interval: 'low' in span ? { low: span.low, high: span.high, level, method: '' } : undefined,
});

/** What has to be said of the comparison as a whole. */
function notesOf({ runs, arms, level }: Comparison): string[] {
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
function pairText({ arm, against, difference, standing, byRun }: ComparedPair): string {
  const runs = byRun.map(({ run, difference: value, test, samePolicy }) => {
    const tested = samePolicy ? 'one policy' : testText({ test });
    return [`${run} ${valueText({ value, unit: 'difference' })}`, tested].filter(Boolean).join(', ');
  });
  const head =
    standing === 'same_policy'
      ? `${arm} and ${against} are one policy, and their figures samples of it`
      : `${arm} to ${against}: ${measuredText(measured(difference, 'difference'))}, ${standingText[standing]}`;
  return `${head}; by run: ${runs.join('; ')}`;
}

/** Success against training rollouts: a line of held-out iterations for each arm, and its test tasks. Sums are many, and in the table. */
function comparisonPlot(all: readonly ComparedArm[]): Plot {
  const arms = all.filter(({ role }) => role !== 'sum' && role !== 'bound');
  const marks = arms.flatMap(({ name, role, heldOut, byRun, trainingRollouts, successRate }, line): Mark[] => [
    ...heldOut.map(({ rollouts: x, successRate: y, runs }): Mark => {
      const title = `${name}, held out, ${wholeNumber(x)} training rollouts: ${rateText(y)}, mean of ${runs} runs`;
      return { x, y, line, open: true, title };
    }),
    ...byRun.map(({ run, trainingRollouts: x, successRate: y }): Mark => {
      return { x, y, line, size: 'small', title: `${name} in ${run}: ${rateText(y)}` };
    }),
    {
      x: trainingRollouts,
      y: successRate.value,
      line,
      size: 'large',
      ...(role !== 'adapter' && { name }),
      title: `${name}, test: ${measuredText(measured(successRate, 'fraction'))}, mean of ${byRun.length} runs`,
    },
  ]);
  return {
    kind: 'lines',
    label: 'Success of the arms against the training rollouts spent, over several runs',
    width: 640,
    height: 340,
    x: { label: 'training rollouts', high: ROOM * Math.max(1, ...marks.map(({ x }) => x)) },
    y: { high: shareEnd(marks.map(({ y }) => y)), percent: true },
    lines: arms.map(({ name, heldOut, successRate }) => ({
      name: `${name}  ${rateText(successRate.value)}`,
      points: heldOut.map((one) => ({ x: one.rollouts, y: one.successRate })),
    })),
    marks,
  };
}
