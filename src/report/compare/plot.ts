/** Success against training rollouts over several runs: held-out success on the way (open), test success by run (small) and as a mean (filled). */
import { shortName, shortPercent, wholeNumber } from '../format';
import { markup, type Markup } from '../markup';
import { armMark, line, linear, spread, svg, text, ticks } from '../plots/scale';
import type { ComparedArm } from './comparison';
import { rateText, spanText } from './words';

const [left, right, top, bottom] = [56, 600, 26, 320];
const labels = right + 34;

export function comparisonPlot(arms: readonly ComparedArm[]): Markup {
  const points = arms.flatMap(({ heldOut, byRun }) => [
    ...heldOut,
    ...byRun.map(({ trainingRollouts: rollouts, successRate }) => ({ rollouts, successRate })),
  ]);
  const widest = Math.max(1, ...points.map(({ rollouts }) => rollouts));
  const high = Math.min(1, Math.ceil(Math.max(0.1, ...points.map(({ successRate }) => successRate)) * 10 + 0.5) / 10);
  const x = linear({ domain: [0, widest], range: [left, right] });
  const y = linear({ domain: [0, high], range: [bottom, top] });
  const heights = spread({ wishes: arms.map(({ successRate }) => y(successRate.value)), gap: 17, max: bottom });

  const way = ({ name, role, heldOut }: ComparedArm): Markup => {
    const path = heldOut.map((p, i) => markup`${i === 0 ? 'M' : 'L'}${x(p.rollouts)} ${y(p.successRate)}`);
    return markup`${path.length > 1 && markup`<path d="${path}" class="iterations"/>`}${heldOut.map(
      (p) =>
        markup`<circle cx="${x(p.rollouts)}" cy="${y(p.successRate)}" r="4" class="mark ${role} open"><title>${name}, held out, ${wholeNumber(p.rollouts)} training rollouts: ${rateText(p.successRate)}, mean of ${p.runs} runs</title></circle>`,
    )}`;
  };
  const tested = (arm: ComparedArm, i: number): Markup => {
    const to = { x: x(arm.trainingRollouts), y: y(arm.successRate.value) };
    const labelY = heights[i] ?? to.y;
    const runs = arm.byRun.map(
      ({ run, trainingRollouts, successRate }) =>
        markup`<circle cx="${x(trainingRollouts)}" cy="${y(successRate)}" r="2" class="mark ${arm.role}"><title>${arm.name} in ${run}: ${rateText(successRate)}</title></circle>`,
    );
    const title = `${arm.name}, test: ${rateText(arm.successRate.value)} (${spanText(arm.successRate, 'fraction')}), mean of ${arm.byRun.length} runs`;
    return markup`${runs}<g><title>${title}</title>${line({ x: to.x + 7, y: to.y }, { x: labels - 6, y: labelY }, 'leader')}${armMark({ role: arm.role, ...to })}
${text({ x: labels, y: labelY + 4, class: arm.role === 'routed' ? 'strong' : '' }, `${shortName(arm.name, 30)}  ${rateText(arm.successRate.value)}`)}</g>`;
  };
  return svg(
    {
      width: 900,
      height: bottom + 48,
      label: 'Success of the arms against the training rollouts spent, over several runs',
    },
    ticks({ low: 0, high, about: 6 }).map(
      (t) =>
        markup`${line({ x: left, y: y(t) }, { x: right, y: y(t) }, 'grid')}${text({ x: left - 8, y: y(t) + 4, anchor: 'end', class: 'tick' }, shortPercent(t))}`,
    ),
    ticks({ low: 0, high: widest, about: 6 }).map((t) =>
      text({ x: x(t), y: bottom + 18, anchor: 'middle', class: 'tick' }, wholeNumber(t)),
    ),
    line({ x: left, y: bottom }, { x: right, y: bottom }, 'axis'),
    text({ x: (left + right) / 2, y: bottom + 36, anchor: 'middle', class: 'tick' }, 'training rollouts'),
    arms.map(way),
    arms.map(tested),
  );
}
