/** One training run: reward by step as a line, that of each branch as a thin one, held-out mean reward of the iterations as dots with intervals, the best step marked. */
import type { Curve, ReportedTraining } from '../capability-model';
import { shortName } from '../format';
import { figureTitle } from '../figure-view';
import { markup, type Markup } from '../markup';
import { line, linear, svg, text, ticks } from './scale';

const left = 34;
const right = 268;
const top = 14;
const bottom = 132;
/** Styles of lines; further branches take them again. */
const BRANCH_STYLES = 4;

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
  const pathOf = (points: Curve = []): Markup[] =>
    points.map((p, i) => markup`${i === 0 ? 'M' : 'L'}${x(p.step)} ${y(p.reward)}`);
  const path = pathOf(training.rewardCurve?.points);
  const branches = training.rewardCurve?.branches ?? [];
  const best = training.bestStep;
  const heldOut = training.iterations.flatMap(({ step, meanReward: reward }) =>
    reward.value === null ? [] : [{ step, reward, value: reward.value }],
  );
  return svg(
    { width: 290, height: 168 + 14 * Math.ceil(branches.length / 4), label: `Reward by step of ${plot.name}` },
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
    branches.map(
      ({ branch, points }, i) =>
        markup`<g><title>mean reward of ${branch} by step</title><path d="${pathOf(points)}" class="curve branch-${i % BRANCH_STYLES}"/></g>`,
    ),
    branches.map(({ branch }, i) => {
      const at = { x: left + 4 + 66 * (i % 4), y: bottom + 46 + 14 * Math.floor(i / 4) };
      return markup`${line({ x: at.x, y: at.y - 4 }, { x: at.x + 14, y: at.y - 4 }, `curve branch-${i % BRANCH_STYLES}`)}${text({ ...at, x: at.x + 18, class: 'tick' }, shortName(branch, 8))}`;
    }),
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
