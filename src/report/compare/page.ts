/** A comparison as a page. Invariant: one self-contained file: no script, nothing fetched, every text escaped (markup.ts). */
import { wholeNumber } from '../format';
import { Markup, markup } from '../markup';
import { TEST } from '../recommendation';
import { table } from '../sections';
import { style } from '../style';
import type { ComparedArm, ComparedPair, Comparison } from './comparison';
import { comparisonPlot } from './plot';
import { byRunText, differenceText, notesOf, rateText, spanText, standingText } from './words';

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
  return markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${names}: comparison</title><style>${new Markup(style)}</style></head><body>
<h1>${names}</h1>
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
small each run. Both stand at the training rollouts that were spent.</figcaption></figure>
</body></html>
`.text;
}
