/** A comparison as sections, in the report's own words. */
import type { ComparedArm, ComparedPair, Comparison, Span } from '../comparison';
import { MISSING, shortPercent, spreadText, TEST, testText, valueText, wholeNumber } from '../format';
import { pageHtml } from '../html';
import { type Mark, type Plot, shareEnd } from '../plots';
import { SPREAD } from '../recommendation';
import { type Page, paragraph, table } from '../section';
import { terminalText } from '../terminal';

export const comparisonHtml = (comparison: Comparison): string => pageHtml(comparisonPage(comparison));
export const comparisonText = (comparison: Comparison, columns?: number): string =>
  terminalText(comparisonPage(comparison).sections, columns);

function comparisonPage(comparison: Comparison): Page {
  const { runs, target, baseModel, arms, differences } = comparison;
  return {
    title: `${runs.map(({ name }) => name).join(', ')}: comparison`,
    sections: [
      {
        blocks: [
          paragraph(`${runs.length} runs on ${target.name} ${target.version}, base model ${baseModel}`),
          { kind: 'list', items: notesOf(comparison) },
        ],
      },
      {
        title: 'Arms on test tasks',
        blocks: [
          table(
            [
              'arm',
              { head: 'what', on: 'page' },
              { head: 'runs', spare: 5 },
              { head: 'training', spare: 2 },
              { head: 'all rollouts', spare: 1 },
              'success',
              'to base',
              { head: 'by run', spare: 4 },
            ],
            arms.map((arm) => [
              arm.name,
              arm.role === 'baseline' ? `baseline ${arm.kind}` : arm.role,
              `${arm.byRun.length}`,
              wholeNumber(arm.trainingRollouts),
              wholeNumber(arm.allRollouts),
              spanText(arm.successRate, 'fraction'),
              arm.differenceToBase && spanText(arm.differenceToBase, 'difference'),
              arm.byRun.map(({ successRate }) => rateText(successRate)).join(' '),
            ]),
          ),
          paragraph('Rollouts of training, and all to come to the arm: means over the runs.', 'quiet'),
        ],
      },
      {
        title: 'Paired differences',
        blocks: [{ kind: 'list', items: differences.map(pairText) }, paragraph(`p: ${TEST}, of one run.`, 'quiet')],
      },
      {
        title: 'Success against training rollouts',
        blocks: [
          {
            kind: 'plot',
            plot: comparisonPlot(arms),
            caption:
              'Open: held-out train tasks of the target, mean over the runs. Large: test tasks, the mean, and small each run.',
          },
          {
            kind: 'list',
            items: arms.flatMap(({ name, heldOut }) =>
              heldOut.length === 0
                ? []
                : [
                    `${name}, held out: ${heldOut.map((one) => `${rateText(one.successRate)} at ${wholeNumber(one.rollouts)}`).join(', ')}`,
                  ],
            ),
          },
        ],
      },
    ],
  };
}

export const rateText = (value: number): string => valueText({ value, unit: 'fraction' });

/** `61.0% (54.1 to 67.5)`. */
export function spanText(span: Span | { value: number }, unit: 'fraction' | 'difference'): string {
  const interval = 'low' in span ? { low: span.low, high: span.high, level: 0.95, method: '' } : undefined;
  return `${valueText({ value: span.value, unit })} (${spreadText({ unit, interval }) ?? MISSING})`;
}

/** What has to be said of the comparison as a whole. */
function notesOf({ runs, arms, level }: Comparison): string[] {
  const seedsOf = ({ seed, trainingSeed }: Comparison['runs'][number]): string =>
    `seed ${seed}, training seed ${trainingSeed}`;
  const seeds = [...new Set(runs.map(seedsOf))];
  const repeated = seeds.flatMap((own) => {
    const names = runs.filter((run) => seedsOf(run) === own).map(({ name }) => name);
    if (names.length === 1) return [];
    return [`${names.join(' and ')} share ${own}: they are no independent draws and count as one, their mean`];
  });
  const most = Math.max(...runs.map(({ tasks }) => tasks));
  const shared = Math.max(0, ...arms.map(({ successRate }) => ('tasks' in successRate ? successRate.tasks : 0)));
  const each = runs.map(({ name, tasks }) => `${name} ${tasks}`).join(', ');
  const what =
    shared === 0
      ? 'no test task is evaluated in all runs: there is neither interval nor difference'
      : `success and differences are over the ${shared} test tasks that are evaluated in all runs`;
  return [
    `runs: ${runs.map((run) => `${run.name} (${seedsOf(run)})`).join(', ')}`,
    `${shortPercent(level)} intervals: of success over the test tasks; of differences paired over them, and widened for other trainings, which ` +
      `differ by about ${SPREAD} (by what these runs do, where that is more) wherever one run is compared`,
    ...(seeds.length > 1
      ? []
      : [
          `one training run of each arm: all runs share seed and training seed; trainings of this size differ by about ${SPREAD}`,
        ]),
    ...repeated,
    // Runs of other seeds evaluate on other tasks of a large target.
    ...(shared === most ? [] : [`${what} (${each}); runs that differ in --training-seed alone evaluate on the same`]),
    ...arms.flatMap(({ name, missing }) =>
      missing.length > 0 ? [`${name} was not evaluated in ${missing.join(', ')}`] : [],
    ),
  ];
}

/** `trace to grpo_target: +3.5 pt (-4.0 to +11.0), undecided, one training run; by run: demo +3.5 pt, better on 20 tasks, worse on 13, p 0.296`. */
function pairText({ arm, against, difference, standing, byRun }: ComparedPair): string {
  const runs = byRun.map(({ run, difference: value, test, samePolicy }) =>
    [`${run} ${valueText({ value, unit: 'difference' })}`, samePolicy ? 'one policy' : testText({ test })]
      .filter((part) => part !== undefined)
      .join(', '),
  );
  const once = difference.runs === 1 ? ', one training run' : '';
  const head =
    standing === 'same_policy'
      ? `${arm} and ${against} are one policy, and their figures samples of it`
      : `${arm} to ${against}: ${spanText(difference, 'difference')}, ${standing}${once}`;
  return `${head}; by run: ${runs.join('; ')}`;
}

/** Success against training rollouts: a line of held-out iterations for each arm, and its test tasks. */
export function comparisonPlot(arms: readonly ComparedArm[]): Plot {
  const marks = arms.flatMap(({ name, heldOut, byRun, trainingRollouts, successRate }, line): Mark[] => [
    ...heldOut.map((one) => ({
      ...{ x: one.rollouts, y: one.successRate, line, open: true },
      title: `${name}, held out, ${wholeNumber(one.rollouts)} training rollouts: ${rateText(one.successRate)}, mean of ${one.runs} runs`,
    })),
    ...byRun.map((one): Mark => {
      const title = `${name} in ${one.run}: ${rateText(one.successRate)}`;
      return { x: one.trainingRollouts, y: one.successRate, line, size: 'small', title };
    }),
    {
      ...{ x: trainingRollouts, y: successRate.value, line, size: 'large' },
      title: `${name}, test: ${spanText(successRate, 'fraction')}, mean of ${byRun.length} runs`,
    },
  ]);
  return {
    kind: 'lines',
    label: 'Success of the arms against the training rollouts spent, over several runs',
    width: 640,
    height: 340,
    x: { label: 'training rollouts', high: Math.max(1, ...marks.map(({ x }) => x)) },
    y: { high: shareEnd(marks.map(({ y }) => y)), percent: true },
    lines: arms.map(({ name, heldOut, successRate }) => ({
      name: `${name}  ${rateText(successRate.value)}`,
      points: heldOut.map((one) => ({ x: one.rollouts, y: one.successRate })),
    })),
    marks,
  };
}
