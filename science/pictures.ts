/** The page's two pictures, as SVG files that stand alone. Invariant: they show the tables' figures and nothing else. */
import type { ComparedArm } from '../src/report/comparison';
import { shortPercent } from '../src/report/format';
import { Markup, markup, style } from '../src/report/markup';
import { drawPlot, type IntervalRow, type Plot, plotHeight, text } from '../src/report/plots';
import { comparisonPlot } from '../src/report/sections/comparison';
import { sizeText, spanText } from './tables';
import type { Row } from './rows';

/** One setting. */
export interface Panel {
  title: string;
  arms: readonly ComparedArm[];
  rows: readonly Row[];
}

const WIDTH = 900;
const [TITLE, GAP] = [28, 14];

/** The plots below each other, each under its title. */
function picture(label: string, plots: readonly { title: string; plot: Plot }[]): string {
  const heights = plots.map(({ plot }) => TITLE + plotHeight(plot) + GAP);
  const tops = heights.map((_, n) => heights.slice(0, n).reduce((sum, height) => sum + height, 0));
  const height = Math.max(TITLE, ...heights.map((own, n) => own + tops[n]!));
  const content = plots.map(
    ({ title, plot }, n) =>
      markup`<g transform="translate(0 ${tops[n]})">${text({ x: 12, y: 18, class: 'strong' }, title)}<g transform="translate(0 ${TITLE})">${drawPlot(plot)}</g></g>
`,
  );
  return markup`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${label}"><style>${new Markup(style)} svg { font-family: system-ui, sans-serif; background: var(--paper) }</style>
${content}</svg>
`.text;
}

/** Success against training rollouts: the plot of `campaign compare`, one for each setting. */
export const rolloutsPicture = (panels: readonly Panel[]): string =>
  picture(
    'Success against training rollouts, by setting: open marks held-out train tasks, filled marks test tasks',
    panels.map(({ title, arms }) => ({ title, plot: comparisonPlot(arms) })),
  );

/** Success of every policy in every setting, with its interval and each seed as a small dot. */
export const armsPicture = (panels: readonly Panel[]): string =>
  picture(
    'Success on test tasks by policy and setting, with intervals over tasks and seeds',
    panels.map(({ title, rows }) => ({
      title,
      plot: { kind: 'intervals', label: title, rows: rows.flatMap((row) => intervalRow(row) ?? []) },
    })),
  );

function intervalRow({ name, success, bySeed }: Row): IntervalRow | undefined {
  if (!success) return undefined;
  const role = name === 'base' ? 'base' : /^trace\b(?!_)/.test(name) ? 'routed' : 'baseline';
  const { value, low, high } = success;
  const title = `${name}: ${spanText(success, 'fraction')}, n ${sizeText(success)}`;
  return {
    name,
    role,
    title,
    text: shortPercent(value),
    measured: { value, low, high, others: bySeed.map((one) => one.success) },
  };
}
