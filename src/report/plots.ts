/** The two charts of the pages, as SVG: intervals by row, and lines with marks. A finite value gives a finite coordinate, also for an empty domain. */
import { shortName, shortPercent, wholeNumber } from './format';
import { markup, type Markup } from './markup';

/** A measured value: `others` are the runs that it is the mean of. */
interface Measured {
  value: number;
  low?: number | undefined;
  high?: number | undefined;
  others?: readonly number[];
}

export interface IntervalRow {
  name: string;
  /** Style of its mark. */
  role: string;
  measured?: Measured | undefined;
  /** What stands beside it. */
  text: string;
  /** What a pointer shows. */
  title: string;
}

interface Point {
  x: number;
  y: number;
}

export interface Mark extends Point {
  low?: number | undefined;
  high?: number | undefined;
  /** The line whose style it has. */
  line: number;
  size?: 'small' | 'large';
  /** Filled with the paper's colour. */
  open?: boolean;
  title: string;
}

export type Plot =
  | {
      kind: 'intervals';
      label: string;
      rows: readonly IntervalRow[];
      reference?: { value: number; name: string } | undefined;
    }
  | {
      kind: 'lines';
      label: string;
      width: number;
      height: number;
      x: { label: string; high: number };
      y: { high: number; percent?: boolean };
      lines: readonly { name: string; points: readonly Point[] }[];
      marks: readonly Mark[];
    };

export type Scale = (value: number) => number;

/** A linear map of [low, high] onto [from, to]; values outside are clamped, a domain without width maps to the middle. */
export const linear = (o: { domain: [number, number]; range: [number, number] }): Scale => {
  const [low, high] = o.domain;
  const [from, to] = o.range;
  if (high <= low) return () => (from + to) / 2;
  return (value) => from + ((Math.min(high, Math.max(low, value)) - low) / (high - low)) * (to - from);
};

/** Round values from 0 to `high`, about `about` of them. */
export const ticks = (high: number, about: number): number[] => {
  if (high <= 0) return [0];
  const power = 10 ** Math.floor(Math.log10(high / about));
  const step = ([1, 2, 5, 10].find((s) => high / (s * power) <= about) ?? 10) * power;
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, i) => Number((i * step).toPrecision(12)));
};

/** The end of an axis of shares: a tenth above the largest, at most 1. */
export const shareEnd = (values: readonly number[]): number =>
  Math.min(1, Math.ceil(Math.max(0.1, ...values) * 10) / 10);

type Anchor = 'start' | 'middle' | 'end';
export const text = (at: Point & { anchor?: Anchor; class?: string }, content: string): Markup =>
  markup`<text x="${at.x}" y="${at.y}" text-anchor="${at.anchor ?? 'start'}" class="${at.class ?? ''}">${content}</text>`;

export const line = (from: Point, to: Point, style: string): Markup =>
  markup`<line x1="${from.x}" y1="${from.y}" x2="${to.x}" y2="${to.y}" class="${style}"/>`;

const dot = (at: Point, r: number, style: string): Markup =>
  markup`<circle cx="${at.x}" cy="${at.y}" r="${r}" class="${style}"/>`;

/** The svg element of a plot; `label` is what a screen reader says. */
export const svg = (
  size: { width: number; height: number; label: string },
  ...content: (Markup | Markup[])[]
): Markup =>
  markup`<svg viewBox="0 0 ${size.width} ${size.height}" width="${size.width}" height="${size.height}" role="img" aria-label="${size.label}">${content}</svg>`;

/** Room for row labels, left of every plot with rows. */
export const LABELS = 258;

/** A row's name, right-aligned before the plot; a long one is cut, the mark's title has it whole. */
export const rowLabel = ({ y, name, strong }: { y: number; name: string; strong?: boolean }): Markup =>
  text({ x: LABELS - 12, y, anchor: 'end', class: strong ? 'strong' : '' }, shortName(name, 31));

export const drawPlot = (plot: Plot): Markup => (plot.kind === 'intervals' ? intervals(plot) : lines(plot));

const [TOP, ROW, RIGHT, WIDTH] = [26, 30, 650, 900];
const AXIS = 34;

export const plotHeight = (plot: Plot): number =>
  plot.kind === 'intervals' ? TOP + plot.rows.length * ROW + AXIS : plot.height + LEGEND * plot.lines.length;

function intervals(plot: Extract<Plot, { kind: 'intervals' }>): Markup {
  const { rows, label, reference } = plot;
  const high = shareEnd(rows.flatMap(({ measured }) => [measured?.value ?? 0, measured?.high ?? 0]));
  const x = linear({ domain: [0, high], range: [LABELS, RIGHT] });
  const bottom = TOP + rows.length * ROW;
  const vertical = (value: number, style: string): Markup =>
    line({ x: x(value), y: TOP - 4 }, { x: x(value), y: bottom }, style);
  return svg(
    { width: WIDTH, height: plotHeight(plot), label },
    ticks(high, 6).map(
      (t) =>
        markup`${vertical(t, 'grid')}${text({ x: x(t), y: bottom + 18, anchor: 'middle', class: 'tick' }, shortPercent(t))}`,
    ),
    reference === undefined
      ? []
      : [
          vertical(reference.value, 'reference'),
          text({ x: x(reference.value), y: TOP - 10, anchor: 'middle', class: 'tick' }, reference.name),
        ],
    rows.map(({ name, role, measured, text: beside, title }, n) => {
      const y = TOP + (n + 0.5) * ROW;
      const { value, low, high: upper, others = [] } = measured ?? {};
      return markup`<g><title>${title}</title>${rowLabel({ y: y + 4, name, strong: role === 'routed' })}${
        low !== undefined && upper !== undefined && line({ x: x(low), y }, { x: x(upper), y }, role)
      }${others.map((other) => dot({ x: x(other), y }, 2, role))}${
        value !== undefined && dot({ x: x(value), y }, 5, `${role}${role === 'bound' || role === 'sum' ? ' open' : ''}`)
      }${text({ x: RIGHT + 20, y: y + 4 }, beside)}</g>`;
    }),
  );
}

const MARGIN = { left: 46, right: 14, top: 14, bottom: 38 };
const LEGEND = 16;
const STYLES = 5;
const RADIUS = { small: 2, large: 5.5 };

function lines(plot: Extract<Plot, { kind: 'lines' }>): Markup {
  const { width, height, label } = plot;
  const [right, bottom] = [width - MARGIN.right, height - MARGIN.bottom];
  const x = linear({ domain: [0, plot.x.high], range: [MARGIN.left, right] });
  const y = linear({ domain: [0, plot.y.high], range: [bottom, MARGIN.top] });
  const style = (n: number): string => `line-${n % STYLES}`;
  return svg(
    { width, height: plotHeight(plot), label },
    ticks(plot.y.high, 5).map(
      (t) =>
        markup`${line({ x: MARGIN.left, y: y(t) }, { x: right, y: y(t) }, 'grid')}${text({ x: MARGIN.left - 6, y: y(t) + 4, anchor: 'end', class: 'tick' }, plot.y.percent ? shortPercent(t) : String(t))}`,
    ),
    ticks(plot.x.high, 4).map((t) =>
      text({ x: x(t), y: bottom + 16, anchor: 'middle', class: 'tick' }, wholeNumber(t)),
    ),
    text({ x: right, y: bottom + 31, anchor: 'end', class: 'tick' }, plot.x.label),
    plot.lines.map(({ name, points }, n) => {
      const at = { x: MARGIN.left, y: height + LEGEND * (n + 0.5) };
      const path = points.map((p, i) => markup`${i === 0 ? 'M' : 'L'}${x(p.x)} ${y(p.y)}`);
      return markup`${path.length > 1 && markup`<path d="${path}" class="curve ${style(n)}"/>`}${line(at, { x: at.x + 16, y: at.y }, style(n))}${text({ x: at.x + 22, y: at.y + 4, class: 'tick' }, name)}`;
    }),
    plot.marks.map(
      ({ low, high, line: n, size, open, title, ...at }) =>
        markup`<g><title>${title}</title>${
          low !== undefined &&
          high !== undefined &&
          line({ x: x(at.x), y: y(low) }, { x: x(at.x), y: y(high) }, style(n))
        }${dot({ x: x(at.x), y: y(at.y) }, size === undefined ? 3.5 : RADIUS[size], `${style(n)}${open ? ' open' : ''}`)}</g>`,
    ),
  );
}
