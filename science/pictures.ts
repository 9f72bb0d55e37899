/** The page's two pictures, as SVG files that stand alone. Invariant: they show the tables' figures and nothing else. */
import { shortPercent } from '../src/report/format';
import type { ComparedArm } from '../src/report/compare/comparison';
import { comparisonPlot, LABELS, line, linear, rowLabel, text, ticks } from '../src/report/page/plots';
import { Markup, markup } from '../src/report/page/blocks';
import { style } from '../src/report/page/style';
import { sizeText, spanText } from './tables';
import type { Row } from './rows';

/** One setting. */
export interface Panel {
  title: string;
  arms: readonly ComparedArm[];
  rows: readonly Row[];
}

const WIDTH = 900;
const RIGHT = WIDTH - 90;
const [TITLE, ROW, AXIS, GAP] = [28, 24, 24, 14];
const PLOT_HEIGHT = 368;

const picture = (o: { height: number; label: string; content: readonly Markup[] }): string =>
  markup`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${o.height}" width="${WIDTH}" height="${o.height}" role="img" aria-label="${o.label}"><style>${new Markup(style)} svg { font-family: system-ui, sans-serif; background: var(--paper) }</style>
${o.content}</svg>
`.text;

/** Success against training rollouts: the plot of `campaign compare`, one for each setting. */
export function rolloutsPicture(panels: readonly Panel[]): string {
  const each = TITLE + PLOT_HEIGHT + GAP;
  return picture({
    height: Math.max(1, panels.length) * each,
    label: 'Success against training rollouts, by setting: open marks held-out train tasks, filled marks test tasks',
    content: panels.map(
      ({ title, arms }, n) =>
        markup`<g transform="translate(0 ${n * each})">${text({ x: 12, y: 18, class: 'strong' }, title)}<g transform="translate(0 ${TITLE})">${comparisonPlot(arms)}</g></g>
`,
    ),
  });
}

/** Success of every policy in every setting, with its interval and each seed as a small dot. */
export function armsPicture(panels: readonly Panel[]): string {
  const heights = panels.map(({ rows }) => TITLE + rows.length * ROW + AXIS + GAP);
  const tops = heights.map((_, n) => heights.slice(0, n).reduce((sum, height) => sum + height, 0));
  return picture({
    height: Math.max(
      TITLE,
      heights.reduce((sum, height) => sum + height, 0),
    ),
    label: 'Success on test tasks by policy and setting, with intervals over tasks and seeds',
    content: panels.map(
      (panel, n) => markup`<g transform="translate(0 ${tops[n]})">${armsPanel(panel)}</g>
`,
    ),
  });
}

function armsPanel({ title, rows }: Panel): Markup {
  const x = linear({ domain: [0, 1], range: [LABELS, RIGHT] });
  const bottom = TITLE + rows.length * ROW;
  const marks = rows.map(({ name, success, bySeed }, n) => {
    const y = TITLE + n * ROW + ROW / 2;
    if (!success) return markup``;
    const of = name === 'base' ? 'base' : /^trace\b(?!_)/.test(name) ? 'routed' : 'baseline';
    const seeds = bySeed.map((one) => markup`<circle cx="${x(one.success)}" cy="${y}" r="2" class="mark ${of}"/>`);
    return markup`<g><title>${name}: ${spanText(success, 'fraction')}, n ${sizeText(success)}</title>${rowLabel({ y: y + 4, name, strong: name === 'trace' })}${line({ x: x(success.low), y }, { x: x(success.high), y }, `whisker ${of}`)}${seeds}<circle cx="${x(success.value)}" cy="${y}" r="5" class="mark ${of}"/>${text({ x: RIGHT + 12, y: y + 4 }, shortPercent(success.value))}</g>`;
  });
  const grid = ticks({ low: 0, high: 1, about: 5 }).map(
    (at) =>
      markup`${line({ x: x(at), y: TITLE }, { x: x(at), y: bottom }, 'grid')}${text({ x: x(at), y: bottom + 16, anchor: 'middle', class: 'tick' }, shortPercent(at))}`,
  );
  return markup`${text({ x: 12, y: 18, class: 'strong' }, title)}${grid}${marks}`;
}
