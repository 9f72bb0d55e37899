/** One training run: reward by step as a line, held-out mean reward of the iterations as dots with intervals, the best step marked. */
import type { ReportedTraining } from '../../domain/reported-training';
import { figureTitle } from '../figure-view';
import { markup, type Markup } from '../markup';
import { line, linear, svg, text, ticks } from './scale';

const left = 34;
const right = 268;
const top = 14;
const bottom = 132;

/** All runs of a report are drawn on the same scales: rewards 0..1, steps 0..maxStep. */
export const rewardCurve = (plot: {
  name: string;
  training: ReportedTraining;
  maxStep: number;
  campaign: string;
}): Markup => {
  const { training } = plot;
  const x = linear({ domain: [0, plot.maxStep], range: [left, right] });
  const y = linear({ domain: [0, 1], range: [bottom, top] });
  const path = (training.rewardCurve?.points ?? []).map(
    (p, i) => markup`${i === 0 ? 'M' : 'L'}${x(p.step)} ${y(p.reward)}`,
  );
  const best = training.bestStep;
  const heldOut = training.iterations.flatMap(({ step, meanReward: reward }) =>
    reward.value === null ? [] : [{ step, reward, value: reward.value }],
  );
  return svg(
    { width: 290, height: 168, label: `Reward by step of ${plot.name}` },
    [0, 0.5, 1].map(
      (t) =>
        markup`${line({ x: left, y: y(t) }, { x: right, y: y(t) }, 'grid')}${text({ x: left - 6, y: y(t) + 4, anchor: 'end', class: 'tick' }, String(t))}`,
    ),
    ticks({ low: 0, high: plot.maxStep, about: 4 }).map((t) =>
      text({ x: x(t), y: bottom + 16, anchor: 'middle', class: 'tick' }, String(t)),
    ),
    text({ x: right, y: bottom + 31, anchor: 'end', class: 'tick' }, 'step'),
    best === undefined
      ? []
      : [
          line({ x: x(best), y: top - 2 }, { x: x(best), y: bottom }, 'reference'),
          text(
            { x: x(best), y: top - 4, anchor: x(best) > (left + right) / 2 ? 'end' : 'start', class: 'tick' },
            `best ${best}`,
          ),
        ],
    path.length > 0
      ? markup`<path d="${path}" class="curve"/>`
      : text(
          { x: left + 8, y: (top + bottom) / 2, class: 'quiet' },
          training.rewardCurve === undefined ? 'no trainer ran' : 'no finished step',
        ),
    heldOut.map(({ step, reward, value }) => {
      const { interval } = reward;
      return markup`<g><title>${figureTitle({ figure: reward, label: `held-out mean reward at step ${step}`, campaign: plot.campaign })}</title>${
        interval !== undefined &&
        line({ x: x(step), y: y(interval.low) }, { x: x(step), y: y(interval.high) }, 'whisker adapter')
      }<circle cx="${x(step)}" cy="${y(value)}" r="${step === best ? 5 : 3.5}" class="mark ${step === best ? 'adapter' : 'held-out'}"/></g>`;
    }),
  );
};
