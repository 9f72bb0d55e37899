/** A comparison as a page and on a terminal, in the report's own words. */
import { MISSING, shortPercent, spreadText, valueText, wholeNumber } from '../format';
import { SPREAD, TEST, testText } from '../recommendation';
import type { ComparedArm, ComparedPair, Comparison, Span } from './comparison';
import { align, clip, wrap } from '../page/table';
import { markup, pageOf, table } from '../page/blocks';
import { comparisonPlot } from '../page/plots';

type Unit = 'fraction' | 'difference';

export const rateText = (value: number): string => valueText({ value, unit: 'fraction' });
export const differenceText = (value: number): string => valueText({ value, unit: 'difference' });

export const spanText = (span: Span | { value: number } | undefined, unit: Unit): string =>
  span !== undefined && 'low' in span
    ? (spreadText({ unit, interval: { low: span.low, high: span.high, level: 0.95, method: '' } }) ?? MISSING)
    : MISSING;

/** What has to be said of the comparison as a whole. */
function notesOf({ runs, arms, level }: Comparison): string[] {
  const seeds = runs.map(({ name, seed, trainingSeed }) => `${name} (seed ${seed}, training seed ${trainingSeed})`);
  return [
    `runs: ${seeds.join(', ')}`,
    `${shortPercent(level)} intervals: of success over the test tasks; of differences paired over them, and widened for other trainings, which ` +
      `differ by about ${SPREAD} (by what these runs do, where that is more) wherever one run is compared`,
    ...oneDrawText(runs),
    ...repeatedText(runs),
    ...sharedText({ runs, arms }),
    ...arms.flatMap(({ name, missing }) =>
      missing.length > 0 ? [`${name} was not evaluated in ${missing.join(', ')}`] : [],
    ),
  ];
}

function oneDrawText(runs: Comparison['runs']): string[] {
  const draws = new Set(runs.map(({ seed, trainingSeed }) => `${seed} ${trainingSeed}`)).size;
  if (draws > 1) return [];
  return [
    `one training run of each arm: all runs share seed and training seed; trainings of this size differ by about ${SPREAD}`,
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

/** `trace to grpo_target: +3.5 pt (-4.0 to +11.0), undecided, one training run; by run: demo +3.5 pt, better on 20 tasks, worse on 13, p 0.296`. */
function pairText(pair: ComparedPair): string {
  const { arm, against } = pair;
  if (pair.standing === 'same_policy')
    return `${arm} and ${against} are one policy, and their figures samples of it; by run: ${byRunText(pair)}`;
  return `${arm} to ${against}: ${standingText(pair)}; by run: ${byRunText(pair)}`;
}

const standingText = ({ difference, standing }: ComparedPair): string => {
  if (standing === 'same_policy') return 'one policy';
  const parts = [`${differenceText(difference.value)} (${spanText(difference, 'difference')})`, standing];
  return [...parts, ...(difference.runs === 1 ? ['one training run'] : [])].join(', ');
};

const byRunText = ({ byRun }: ComparedPair): string =>
  byRun
    .map(({ run, difference, test, samePolicy }) => {
      const tested = test && testText({ test });
      const parts = [`${run} ${differenceText(difference)}`, samePolicy ? 'one policy' : tested];
      return parts.filter((part) => part !== undefined).join(', ');
    })
    .join('; ');

/** `grpo_target held out: 512 rollouts 45.0%, 1,024 rollouts 52.0%`; undefined where nothing was. */
const heldOutText = ({ name, heldOut }: ComparedArm): string | undefined =>
  heldOut.length === 0
    ? undefined
    : `${name}, held out: ${heldOut.map(({ rollouts, successRate }) => `${rateText(successRate)} at ${wholeNumber(rollouts)}`).join(', ')}`;

const [WIDTH, NARROWEST] = [99, 40];

export function comparisonText(comparison: Comparison, columns: number = WIDTH): string {
  const width = Math.max(NARROWEST, Math.min(columns, WIDTH));
  const { target, runs, arms, differences, level } = comparison;
  const interval = `${shortPercent(level)} interval`;
  const rows = [
    ['arm', 'runs', 'train', 'all', 'success', interval, 'to base', 'interval', 'by run'],
    ...arms.map((arm) => [
      arm.name,
      `${arm.byRun.length}`,
      wholeNumber(arm.trainingRollouts),
      wholeNumber(arm.allRollouts),
      rateText(arm.successRate.value),
      spanText(arm.successRate, 'fraction'),
      arm.differenceToBase ? differenceText(arm.differenceToBase.value) : '',
      arm.differenceToBase ? spanText(arm.differenceToBase, 'difference') : '',
      arm.byRun
        .map(({ successRate }) => valueText({ value: successRate, unit: 'fraction' }).replace('%', ''))
        .join(' '),
    ]),
  ];
  const table = align(
    { rows, widths: [30, 4, 9, 9, 8, 14, 8, 14, 30], right: [1, 2, 3, 4, 6], spare: [3, 7, 5, 1, 8] },
    width,
  );
  const said = [
    ...differences.map(pairText),
    'success on held-out train tasks of the target at so many training rollouts, mean over the runs:',
    ...arms.flatMap((arm) => heldOutText(arm) ?? []),
    ...notesOf(comparison),
  ];
  return [
    clip(`${runs.length} runs on ${target.name} ${target.version}`, width),
    '',
    ...table,
    'train, all: rollouts of training, and all to come to the arm; means over the runs',
    '',
    ...said.flatMap((line) => wrap(line, width)),
  ].join('\n');
}

const armRow = (arm: ComparedArm): string[] => [
  arm.name,
  arm.role === 'baseline' ? `baseline ${arm.kind ?? ''}` : arm.role,
  `${arm.byRun.length}`,
  wholeNumber(arm.trainingRollouts),
  wholeNumber(arm.allRollouts),
  `${rateText(arm.successRate.value)} (${spanText(arm.successRate, 'fraction')})`,
  arm.differenceToBase
    ? `${differenceText(arm.differenceToBase.value)} (${spanText(arm.differenceToBase, 'difference')})`
    : '',
  arm.byRun.map(({ run, successRate }) => `${run} ${rateText(successRate)}`).join(', '),
];

const pairRow = (pair: ComparedPair): string[] => [
  pair.arm,
  pair.against,
  standingText(pair),
  `${pair.difference.runs} × ${pair.difference.tasks}`,
  byRunText(pair),
];

export function comparisonPage(comparison: Comparison): string {
  const { runs, target, baseModel, arms, differences } = comparison;
  const names = runs.map(({ name }) => name).join(', ');
  return pageOf({
    title: `${names}: comparison`,
    body: markup`<h1>${names}</h1>
<p class="quiet">${runs.length} runs on ${target.name} ${target.version}, base model ${baseModel}</p>
${notesOf(comparison).map((note) => markup`<p class="small">${note}</p>`)}
<h2>Arms on test tasks</h2>
${table({
  head: ['arm', 'what', 'runs', 'training rollouts', 'all rollouts', 'success', 'difference to base', 'by run'],
  rows: arms.map(armRow),
})}
<h2>Paired differences</h2>
${table({ head: ['arm', 'minus', 'difference', 'runs × tasks', 'by run'], rows: differences.map(pairRow) })}
<p class="small quiet">p: ${TEST}, of one run.</p>
<h2>Success against training rollouts</h2>
<figure><div class="scroll">${comparisonPlot(arms)}</div><figcaption>Open: held-out train tasks of the target, mean over the runs. Filled: test tasks, the mean, and
small each run. Both stand at the training rollouts that were spent.</figcaption></figure>`,
  });
}
