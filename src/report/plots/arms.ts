/** Arms: success on test tasks as dot and interval, one row an arm, with base as the line to compare with. */
import type { Arm } from '../model';
import { figureTitle } from '../figure-view';
import { shortPercent, spreadText, valueText } from '../format';
import { markup, type Markup } from '../markup';
import { armMark, LABELS, line, linear, rowLabel, svg, text, ticks } from './scale';

const rowHeight = 30;
const left = LABELS;
const right = 650;
const top = 26;

export const armsPlot = ({ arms, campaign }: { arms: readonly Arm[]; campaign: string }): Markup => {
  const ends = arms.flatMap(({ successRate: f }) => [f?.value ?? 0, f?.interval?.high ?? 0]);
  const high = Math.min(1, Math.ceil(Math.max(0.1, ...ends) * 10) / 10);
  const x = linear({ domain: [0, high], range: [left, right] });
  const bottom = top + arms.length * rowHeight;
  const base = arms.find((arm) => arm.role === 'base')?.successRate?.value ?? null;

  const row = (arm: Arm, i: number): Markup => {
    const y = top + (i + 0.5) * rowHeight;
    const rate = arm.successRate;
    const name = rowLabel({ y: y + 4, name: arm.name, strong: arm.role === 'routed' });
    if (arm.status === 'failed' || rate === undefined || rate.value === null)
      return markup`${name}${text({ x: left + 8, y: y + 4, class: 'quiet' }, arm.status === 'failed' ? 'failed' : 'no scored rollout')}`;
    const { interval } = rate;
    const mark = armMark({ role: arm.role, x: x(rate.value), y });
    return markup`<g><title>${figureTitle({ figure: rate, label: arm.name, campaign })}</title>
${name}${interval !== undefined && line({ x: x(interval.low), y }, { x: x(interval.high), y }, `whisker ${arm.role}`)}${mark}
${text({ x: right + 20, y: y + 4, class: 'strong' }, valueText(rate))}${text({ x: right + 74, y: y + 4, class: 'quiet' }, spreadText(rate) ?? '')}
${text({ x: right + 170, y: y + 4, class: 'quiet' }, `n ${rate.n}`)}</g>`;
  };

  return svg(
    { width: 900, height: bottom + 34, label: 'Success rate of each arm on test tasks' },
    ticks({ low: 0, high, about: 6 }).map(
      (t) =>
        markup`${line({ x: x(t), y: top - 4 }, { x: x(t), y: bottom }, 'grid')}${text(
          { x: x(t), y: bottom + 18, anchor: 'middle', class: 'tick' },
          shortPercent(t),
        )}`,
    ),
    base === null
      ? []
      : [
          line({ x: x(base), y: top - 4 }, { x: x(base), y: bottom }, 'reference'),
          text({ x: x(base), y: top - 10, anchor: 'middle', class: 'tick' }, 'base'),
        ],
    arms.map(row),
  );
};
