/** A comparison as sections, in the report's own words. */
import type { ComparedArm, Comparison, Span } from '../comparison';
import { measuredText, TEST, valueText, wholeNumber } from '../format';
import { pageHtml } from '../html';
import { type Mark, type Plot, ROOM, shareEnd } from '../plots';
import { type Blocks, heading, list, type Measured, paragraph, plot, table } from '../blocks';
import { notesOf, pairText } from '../comparison-text';

export const comparisonHtml = (comparison: Comparison): string =>
  pageHtml({
    title: `${comparison.runs.map(({ name }) => name).join(', ')}: comparison`,
    views: [{ id: 'comparison', name: 'Comparison', blocks: blocksOf(comparison) }],
  });

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
