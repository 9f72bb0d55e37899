/** Success against the training rollouts spent: held-out success on the way (open), test success of what is evaluated (filled). */
import type { Figure } from '../../domain/figure';
import type { Arm, Role } from '../model';
import { shortName, shortPercent, valueText, wholeNumber } from '../format';
import { figureTitle } from '../figure-view';
import { markup, type Markup } from '../markup';
import { armMark, line, linear, spread, svg, text, ticks } from './scale';

const left = 56;
const right = 600;
const top = 26;
const bottom = 320;
const labels = right + 34;
const LONGEST_NAME = 27;

interface Point {
  figure: Figure;
  rollouts: number;
  value: number;
}

const point = (figure: Figure | undefined, rollouts: Figure): Point[] =>
  figure === undefined || figure.value === null || rollouts.value === null
    ? []
    : [{ figure, rollouts: rollouts.value, value: figure.value }];

export const budgetPlot = (plot: { arms: readonly Arm[]; budget?: Figure; campaign: string }): Markup => {
  const rows = plot.arms.map((arm) => ({
    arm,
    way: (arm.training?.iterations ?? []).flatMap(({ successRate, rollouts }) => point(successRate, rollouts)),
    // Where there are iterations, it is one of them.
    heldOut: arm.training ? [] : point(arm.heldOut, arm.trainingRollouts),
    test: point(arm.successRate, arm.trainingRollouts),
  }));
  const points = rows.flatMap(({ way, heldOut, test }) => [...way, ...heldOut, ...test]);
  const budget = plot.budget?.value ?? 0;
  const widest = Math.max(1, budget, ...points.map(({ rollouts }) => rollouts));
  const high = Math.min(1, Math.ceil(Math.max(0.1, ...points.map(({ value }) => value)) * 10 + 0.5) / 10);
  const x = linear({ domain: [0, widest], range: [left, right] });
  const y = linear({ domain: [0, high], range: [bottom, top] });
  const named = rows.flatMap(({ arm, test }) => test.map((at) => ({ arm, at })));
  const heights = spread({ wishes: named.map(({ at }) => y(at.value)), gap: 17, max: bottom });

  const open = (arm: Arm, { figure, rollouts, value }: Point): Markup =>
    markup`<circle cx="${x(rollouts)}" cy="${y(value)}" r="4" class="mark ${arm.role} open"><title>${figureTitle({
      figure,
      label: `${arm.name}, held out, ${wholeNumber(rollouts)} training rollouts`,
      campaign: plot.campaign,
    })}</title></circle>`;

  const way = ({ arm, way: iterations, heldOut, test }: (typeof rows)[number]): Markup => {
    const path = iterations.map((p, i) => markup`${i === 0 ? 'M' : 'L'}${x(p.rollouts)} ${y(p.value)}`);
    const fall = heldOut.flatMap((from) =>
      test.map((to) =>
        line({ x: x(from.rollouts), y: y(from.value) }, { x: x(to.rollouts), y: y(to.value) }, 'leader'),
      ),
    );
    return markup`${fall}${path.length > 0 && markup`<path d="${path}" class="iterations"/>`}${[...iterations, ...heldOut].map((p) => open(arm, p))}`;
  };

  const tested = ({ arm, at }: (typeof named)[number], i: number): Markup => {
    const to = { x: x(at.rollouts), y: y(at.value) };
    const labelY = heights[i] ?? to.y;
    const label = `${arm.name}, test, ${wholeNumber(at.rollouts)} training rollouts`;
    return markup`<g><title>${figureTitle({ figure: at.figure, label, campaign: plot.campaign })}</title>
${line({ x: to.x + 7, y: to.y }, { x: labels - 6, y: labelY }, 'leader')}${armMark({ role: arm.role, ...to })}
${text({ x: labels, y: labelY + 4, class: arm.role === 'routed' ? 'strong' : '' }, `${shortName(arm.name, LONGEST_NAME)}  ${valueText(at.figure)}`)}</g>`;
  };

  return svg(
    { width: 900, height: bottom + 92, label: 'Success of the arms against the training rollouts spent' },
    ticks({ low: 0, high, about: 6 }).map(
      (t) =>
        markup`${line({ x: left, y: y(t) }, { x: right, y: y(t) }, 'grid')}${text({ x: left - 8, y: y(t) + 4, anchor: 'end', class: 'tick' }, shortPercent(t))}`,
    ),
    ticks({ low: 0, high: widest, about: 6 }).map((t) =>
      text({ x: x(t), y: bottom + 18, anchor: 'middle', class: 'tick' }, wholeNumber(t)),
    ),
    line({ x: left, y: bottom }, { x: right, y: bottom }, 'axis'),
    text({ x: (left + right) / 2, y: bottom + 36, anchor: 'middle', class: 'tick' }, 'training rollouts'),
    budget > 0
      ? [
          line({ x: x(budget), y: top - 4 }, { x: x(budget), y: bottom }, 'threshold'),
          text({ x: x(budget), y: top - 10, anchor: 'end', class: 'tick' }, `budget ${wholeNumber(budget)}`),
        ]
      : [],
    rows.map(way),
    named.map(tested),
    legend(new Set(plot.arms.map(({ role }) => role))),
  );
};

const words: Record<Role, string> = {
  base: 'base',
  adapter: 'an adapter',
  sum: 'a sum of adapters',
  routed: 'the routed policy',
  baseline: 'a baseline',
  bound: 'bound of routing',
};

/** The roles that there are, and what open and filled mean. */
const legend = (roles: ReadonlySet<Role>): Markup => {
  const shown = (Object.keys(words) as Role[]).filter((role) => roles.has(role));
  const place = (i: number): number => left + i * 140;
  const above = bottom + 60;
  const below = bottom + 80;
  return markup`${shown.map(
    (role, i) =>
      markup`${role === 'baseline' && markup`<path d="M${place(i) - 12} ${above}L${place(i) + 12} ${above}" class="iterations"/>`}${armMark({ role, x: place(i), y: above })}${text({ x: place(i) + 16, y: above + 4, class: 'tick' }, words[role])}`,
  )}<circle cx="${left}" cy="${below}" r="4" class="mark earlier"/>${text({ x: left + 16, y: below + 4, class: 'tick' }, 'open: held-out train tasks of the target, a line through iterations; filled, and the diamond: test tasks; dashed: what baselines are held to')}`;
};
