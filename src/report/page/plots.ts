/** The report's plots, plain SVG. Invariant: a finite value gives a finite coordinate, also for an empty or one-point domain. */
import type { Arm, Role, SolverMatrix } from '../model';
import { percent, shortName, shortPercent, spreadText, valueText, wholeNumber } from '../format';
import { figureTitle, markup, type Markup } from './blocks';
import type { Curve, ReportedTraining } from '../capability-model';
import type { ComparedArm } from '../compare/comparison';
import { rateText, spanText } from '../compare/render';

export type Scale = (value: number) => number;

/** A linear map of [low, high] onto [from, to]; values outside are clamped, a domain without width maps to the middle. */
export const linear = ({
  domain: [low, high],
  range: [from, to],
}: {
  domain: [number, number];
  range: [number, number];
}): Scale => {
  const width = high - low;
  if (!(width > 0)) return () => (from + to) / 2;
  return (value) => from + ((Math.min(high, Math.max(low, value)) - low) / width) * (to - from);
};

/** Round values in [low, high], about `about` of them; always at least one. */
export const ticks = ({ low, high, about }: { low: number; high: number; about: number }): number[] => {
  const width = high - low;
  if (!(width > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(width / about));
  const step = ([1, 2, 5, 10].find((s) => width / (s * power) <= about) ?? 10) * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  const found = Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
  return found.length > 0 ? found : [low];
};

/** Moves labels apart along one axis: each at least `gap` from the one before, in the order of their wishes; kept under `max` if they fit. */
export const spread = ({ wishes, gap, max }: { wishes: readonly number[]; gap: number; max: number }): number[] => {
  const order = wishes.map((wish, i) => ({ wish, i })).sort((a, b) => a.wish - b.wish || a.i - b.i);
  const placed: number[] = new Array<number>(wishes.length).fill(0);
  let last = -Infinity;
  for (const { wish, i } of order) last = placed[i] = Math.max(wish, last + gap);
  let limit = max;
  for (const { i } of order.reverse()) {
    limit = placed[i] = Math.min(placed[i] ?? 0, limit);
    limit -= gap;
  }
  return placed;
};

export const text = (
  at: { x: number; y: number; anchor?: 'start' | 'middle' | 'end'; class?: string },
  content: string,
): Markup =>
  markup`<text x="${at.x}" y="${at.y}" text-anchor="${at.anchor ?? 'start'}" class="${at.class ?? ''}">${content}</text>`;

/** Room for row labels, left of every plot with rows. */
export const LABELS = 258;
const LONGEST_LABEL = 31;

/** A row's name, right-aligned before the plot; a long one is cut, the mark's title has it whole. */
export const rowLabel = ({ y, name, strong }: { y: number; name: string; strong?: boolean }): Markup =>
  text({ x: LABELS - 12, y, anchor: 'end', class: strong ? 'strong' : '' }, shortName(name, LONGEST_LABEL));

export const line = (from: { x: number; y: number }, to: { x: number; y: number }, style: string): Markup =>
  markup`<line x1="${from.x}" y1="${from.y}" x2="${to.x}" y2="${to.y}" class="${style}"/>`;

/** An arm at its test success: a dot, a diamond for the bound. */
const armMark = ({ role, x, y }: { role: Role; x: number; y: number }): Markup =>
  role === 'bound'
    ? markup`<path d="M${x} ${y - 6}l6 6l-6 6l-6 -6z" class="mark ${role}"/>`
    : markup`<circle cx="${x}" cy="${y}" r="5" class="mark ${role}"/>`;

/** The svg element of a plot; `label` is what a screen reader says. */
export const svg = (
  size: { width: number; height: number; label: string },
  ...content: (Markup | Markup[])[]
): Markup =>
  markup`<svg viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" height="${size.height}" role="img" aria-label="${size.label}">${content}</svg>`;

const ARM_ROWS = { right: 650, top: 26, height: 30 };

export const armsPlot = ({ arms, campaign }: { arms: readonly Arm[]; campaign: string }): Markup => {
  const ends = arms.flatMap(({ successRate: f }) => [f?.value ?? 0, f?.interval?.high ?? 0]);
  const high = Math.min(1, Math.ceil(Math.max(0.1, ...ends) * 10) / 10);
  const x = linear({ domain: [0, high], range: [LABELS, ARM_ROWS.right] });
  const bottom = ARM_ROWS.top + arms.length * ARM_ROWS.height;
  const base = arms.find((arm) => arm.role === 'base')?.successRate?.value ?? null;

  const row = (arm: Arm, i: number): Markup => {
    const y = ARM_ROWS.top + (i + 0.5) * ARM_ROWS.height;
    const rate = arm.successRate;
    const name = rowLabel({ y: y + 4, name: arm.name, strong: arm.role === 'routed' });
    if (arm.status === 'failed' || rate === undefined || rate.value === null)
      return markup`${name}${text({ x: LABELS + 8, y: y + 4, class: 'quiet' }, arm.status === 'failed' ? 'failed' : 'no scored rollout')}`;
    const { interval } = rate;
    const mark = armMark({ role: arm.role, x: x(rate.value), y });
    return markup`<g><title>${figureTitle({ figure: rate, label: arm.name, campaign })}</title>
${name}${interval !== undefined && line({ x: x(interval.low), y }, { x: x(interval.high), y }, `whisker ${arm.role}`)}${mark}
${text({ x: ARM_ROWS.right + 20, y: y + 4, class: 'strong' }, valueText(rate))}${text({ x: ARM_ROWS.right + 74, y: y + 4, class: 'quiet' }, spreadText(rate) ?? '')}
${text({ x: ARM_ROWS.right + 170, y: y + 4, class: 'quiet' }, `n ${rate.n}`)}</g>`;
  };

  return svg(
    { width: 900, height: bottom + 34, label: 'Success rate of each arm on test tasks' },
    ticks({ low: 0, high, about: 6 }).map(
      (t) =>
        markup`${line({ x: x(t), y: ARM_ROWS.top - 4 }, { x: x(t), y: bottom }, 'grid')}${text(
          { x: x(t), y: bottom + 18, anchor: 'middle', class: 'tick' },
          shortPercent(t),
        )}`,
    ),
    base === null
      ? []
      : [
          line({ x: x(base), y: ARM_ROWS.top - 4 }, { x: x(base), y: bottom }, 'reference'),
          text({ x: x(base), y: ARM_ROWS.top - 10, anchor: 'middle', class: 'tick' }, 'base'),
        ],
    arms.map(row),
  );
};

const STRIPS = { width: 520, row: 26, height: 20, top: 24 };

type Cell = number | null;

/** Rows of outcomes by task, most widely solved first, then by pattern from the first option on. */
const sortedOutcomes = ({ outcomes }: SolverMatrix): Cell[][] => {
  const total = (row: Cell[]): number => row.reduce<number>((sum, cell) => sum + (cell ?? 0), 0);
  return [...outcomes].sort((a, b) => {
    for (let i = 0; i < a.length; i++) {
      const difference = (b[i] ?? -1) - (a[i] ?? -1);
      if (difference !== 0) return difference;
    }
    return total(b) - total(a);
  });
};

/** Neighbouring equal cells as one: the page stays small with hundreds of tasks. */
const runs = (cells: readonly Cell[]): { from: number; to: number; cell: Cell }[] => {
  const found: { from: number; to: number; cell: Cell }[] = [];
  cells.forEach((cell, i) => {
    const last = found.at(-1);
    if (last !== undefined && last.cell === cell) last.to = i + 1;
    else found.push({ from: i, to: i + 1, cell });
  });
  return found;
};

export const solverMatrixPlot = ({ matrix, arms }: { matrix: SolverMatrix; arms: readonly Arm[] }): Markup => {
  const routed = arms.find(({ role }) => role === 'routed')?.name;
  const sorted = sortedOutcomes(matrix);
  const unit = sorted.length === 0 ? 0 : STRIPS.width / sorted.length;
  return svg(
    {
      width: 900,
      height: STRIPS.top + matrix.options.length * STRIPS.row + 24,
      label: 'Which option solves which task',
    },
    text(
      { x: LABELS, y: 14, class: 'tick' },
      `${sorted.length} tasks, those that ${matrix.options[0] ?? 'no option'} solves first`,
    ),
    text({ x: LABELS + STRIPS.width + 16, y: 14, class: 'tick' }, 'solved'),
    matrix.options.map((option, column) => {
      const y = STRIPS.top + column * STRIPS.row;
      const cells = sorted.map((row) => row[column] ?? null);
      const scored = cells.filter((cell) => cell !== null);
      const solved = scored.reduce((sum, cell) => sum + cell, 0);
      const share = scored.length === 0 ? 'nothing scored' : `${percent(solved / scored.length)} of ${scored.length}`;
      return markup`<g><title>${option}: ${share}</title>${rowLabel({ y: y + 14, name: option, strong: option === routed })}
<rect x="${LABELS}" y="${y}" width="${STRIPS.width}" height="${STRIPS.height}" class="strip"/>${runs(cells).flatMap(
        ({ from, to, cell }) =>
          cell === 0
            ? []
            : [
                markup`<rect x="${LABELS + from * unit}" y="${y}" width="${(to - from) * unit}" height="${STRIPS.height}" class="${cell === null ? 'unscored' : 'solved'}" ${cell !== null && cell < 1 && markup`opacity="${cell}"`}/>`,
              ],
      )}${text({ x: LABELS + STRIPS.width + 16, y: y + 14, class: 'quiet' }, share)}</g>`;
    }),
  );
};

const CURVE = { left: 34, right: 268, top: 14, bottom: 132 };
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
  const x = linear({ domain: [0, plot.maxStep], range: [CURVE.left, CURVE.right] });
  const y = linear({ domain: [0, 1], range: [CURVE.bottom, CURVE.top] });
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
        markup`${line({ x: CURVE.left, y: y(t) }, { x: CURVE.right, y: y(t) }, 'grid')}${text({ x: CURVE.left - 6, y: y(t) + 4, anchor: 'end', class: 'tick' }, String(t))}`,
    ),
    ticks({ low: 0, high: plot.maxStep, about: 4 }).map((t) =>
      text({ x: x(t), y: CURVE.bottom + 16, anchor: 'middle', class: 'tick' }, String(t)),
    ),
    text({ x: CURVE.right, y: CURVE.bottom + 31, anchor: 'end', class: 'tick' }, 'step'),
    best === undefined
      ? []
      : [
          line({ x: x(best), y: CURVE.top - 2 }, { x: x(best), y: CURVE.bottom }, 'reference'),
          text(
            {
              x: x(best),
              y: CURVE.top - 4,
              anchor: x(best) > (CURVE.left + CURVE.right) / 2 ? 'end' : 'start',
              class: 'tick',
            },
            `best ${best}`,
          ),
        ],
    branches.map(
      ({ branch, points }, i) =>
        markup`<g><title>mean reward of ${branch} by step</title><path d="${pathOf(points)}" class="curve branch-${i % BRANCH_STYLES}"/></g>`,
    ),
    branches.map(({ branch }, i) => {
      const at = { x: CURVE.left + 4 + 66 * (i % 4), y: CURVE.bottom + 46 + 14 * Math.floor(i / 4) };
      return markup`${line({ x: at.x, y: at.y - 4 }, { x: at.x + 14, y: at.y - 4 }, `curve branch-${i % BRANCH_STYLES}`)}${text({ ...at, x: at.x + 18, class: 'tick' }, shortName(branch, 8))}`;
    }),
    path.length > 0
      ? markup`<path d="${path}" class="curve"/>`
      : text(
          { x: CURVE.left + 8, y: (CURVE.top + CURVE.bottom) / 2, class: 'quiet' },
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

const ROLLOUTS = { left: 56, right: 600, top: 26, bottom: 320, labels: 634 };

export function comparisonPlot(arms: readonly ComparedArm[]): Markup {
  const points = arms.flatMap(({ heldOut, byRun }) => [
    ...heldOut,
    ...byRun.map(({ trainingRollouts: rollouts, successRate }) => ({ rollouts, successRate })),
  ]);
  const widest = Math.max(1, ...points.map(({ rollouts }) => rollouts));
  const high = Math.min(1, Math.ceil(Math.max(0.1, ...points.map(({ successRate }) => successRate)) * 10 + 0.5) / 10);
  const x = linear({ domain: [0, widest], range: [ROLLOUTS.left, ROLLOUTS.right] });
  const y = linear({ domain: [0, high], range: [ROLLOUTS.bottom, ROLLOUTS.top] });
  const heights = spread({
    wishes: arms.map(({ successRate }) => y(successRate.value)),
    gap: 17,
    max: ROLLOUTS.bottom,
  });

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
    return markup`${runs}<g><title>${title}</title>${line({ x: to.x + 7, y: to.y }, { x: ROLLOUTS.labels - 6, y: labelY }, 'leader')}${armMark({ role: arm.role, ...to })}
${text({ x: ROLLOUTS.labels, y: labelY + 4, class: arm.role === 'routed' ? 'strong' : '' }, `${shortName(arm.name, 30)}  ${rateText(arm.successRate.value)}`)}</g>`;
  };
  return svg(
    {
      width: 900,
      height: ROLLOUTS.bottom + 48,
      label: 'Success of the arms against the training rollouts spent, over several runs',
    },
    ticks({ low: 0, high, about: 6 }).map(
      (t) =>
        markup`${line({ x: ROLLOUTS.left, y: y(t) }, { x: ROLLOUTS.right, y: y(t) }, 'grid')}${text({ x: ROLLOUTS.left - 8, y: y(t) + 4, anchor: 'end', class: 'tick' }, shortPercent(t))}`,
    ),
    ticks({ low: 0, high: widest, about: 6 }).map((t) =>
      text({ x: x(t), y: ROLLOUTS.bottom + 18, anchor: 'middle', class: 'tick' }, wholeNumber(t)),
    ),
    line({ x: ROLLOUTS.left, y: ROLLOUTS.bottom }, { x: ROLLOUTS.right, y: ROLLOUTS.bottom }, 'axis'),
    text(
      { x: (ROLLOUTS.left + ROLLOUTS.right) / 2, y: ROLLOUTS.bottom + 36, anchor: 'middle', class: 'tick' },
      'training rollouts',
    ),
    arms.map(way),
    arms.map(tested),
  );
}
