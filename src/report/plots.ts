/** The two charts of the pages, as SVG: intervals by row, and lines with marks. A finite value gives a finite coordinate, also for an empty domain. */
import { shortName, shortPercent, wholeNumber } from './format';
import { markup, type Markup } from './markup';

/** Ends of its interval, where it has one. */
interface Ends {
  low?: number | undefined;
  high?: number | undefined;
}

export interface IntervalRow {
  name: string;
  /** Style of its mark. */
  role: string;
  /** `others` are the runs that it is the mean of. */
  measured?: Ends & { value: number; others?: readonly number[] };
  /** What stands beside it. */
  text: string;
  /** What a pointer shows. */
  title: string;
}

interface Point {
  x: number;
  y: number;
}

export interface Mark extends Point, Ends {
  /** The line whose style it has. */
  line: number;
  size?: 'small' | 'large';
  /** Filled with the paper's colour. */
  open?: boolean;
  title: string;
}

interface Intervals {
  kind: 'intervals';
  label: string;
  rows: readonly IntervalRow[];
  reference?: { value: number; name: string } | undefined;
}

interface Lines {
  kind: 'lines';
  label: string;
  width: number;
  height: number;
  x: { label: string; high: number };
  y: { high: number; percent?: boolean };
  lines: readonly { name: string; points: readonly Point[] }[];
  marks: readonly Mark[];
}

export type Plot = Intervals | Lines;

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

export const text = (at: Point & { anchor?: 'start' | 'middle' | 'end'; class?: string }, content: string): Markup =>
  markup`<text x="${at.x}" y="${at.y}" text-anchor="${at.anchor ?? 'start'}" class="${at.class ?? ''}">${content}</text>`;

export const line = (from: Point, to: Point, style: string): Markup =>
  markup`<line x1="${from.x}" y1="${from.y}" x2="${to.x}" y2="${to.y}" class="${style}"/>`;

const dot = (at: Point, r: number, style: string): Markup =>
  markup`<circle cx="${at.x}" cy="${at.y}" r="${r}" class="${style}"/>`;

/** The svg element of a plot; `label` is what a screen reader says. */
export const svg = (
  { width, height, label }: { width: number; height: number; label: string },
  ...content: (Markup | Markup[] | false)[]
): Markup =>
  markup`<svg viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${label}">${content}</svg>`;

/** Room for row labels, left of every plot with rows. */
export const LABELS = 258;

/** A row's name, right-aligned before the plot; a long one is cut, the mark's title has it whole. */
export const rowLabel = ({ y, name, strong }: { y: number; name: string; strong?: boolean }): Markup =>
  text({ x: LABELS - 12, y, anchor: 'end', class: strong ? 'strong' : '' }, shortName(name, 31));

export const drawPlot = (plot: Plot): Markup => (plot.kind === 'intervals' ? intervals(plot) : lines(plot));

const [TOP, ROW, RIGHT, WIDTH, AXIS] = [26, 30, 650, 900, 34];
const MARGIN = { left: 46, right: 14, top: 14, bottom: 38 };
const [LEGEND, STYLES] = [16, 5];

export const plotHeight = (plot: Plot): number =>
  plot.kind === 'intervals' ? TOP + plot.rows.length * ROW + AXIS : plot.height + LEGEND * plot.lines.length;

function intervals(plot: Intervals): Markup {
  const { rows, label, reference } = plot;
  const high = shareEnd(rows.flatMap(({ measured }) => [measured?.value ?? 0, measured?.high ?? 0]));
  const x = linear({ domain: [0, high], range: [LABELS, RIGHT] });
  const bottom = TOP + rows.length * ROW;
  /** A line at a value, and its text at one end. */
  const vertical = (value: number, style: string, y: number, content: string): Markup =>
    markup`${line({ x: x(value), y: TOP - 4 }, { x: x(value), y: bottom }, style)}${text({ x: x(value), y, anchor: 'middle', class: 'tick' }, content)}`;
  return svg(
    { width: WIDTH, height: plotHeight(plot), label },
    ticks(high, 6).map((tick) => vertical(tick, 'grid', bottom + 18, shortPercent(tick))),
    reference !== undefined && vertical(reference.value, 'reference', TOP - 10, reference.name),
    rows.map(({ name, role, measured, text: beside, title }, n) => {
      const y = TOP + (n + 0.5) * ROW;
      const open = role === 'bound' || role === 'sum' ? ' open' : '';
      const marks = measured && [
        spread(measured, (end) => ({ x: x(end), y }), role),
        (measured.others ?? []).map((other) => dot({ x: x(other), y }, 2, role)),
        dot({ x: x(measured.value), y }, 5, `${role}${open}`),
      ];
      return markup`<g><title>${title}</title>${rowLabel({ y: y + 4, name, strong: role === 'routed' })}${marks}${text({ x: RIGHT + 20, y: y + 4 }, beside)}</g>`;
    }),
  );
}

const spread = ({ low, high }: Ends, at: (end: number) => Point, style: string): Markup | false =>
  low !== undefined && high !== undefined && line(at(low), at(high), style);

function lines(plot: Lines): Markup {
  const { width, height, label } = plot;
  const [right, bottom] = [width - MARGIN.right, height - MARGIN.bottom];
  const x = linear({ domain: [0, plot.x.high], range: [MARGIN.left, right] });
  const y = linear({ domain: [0, plot.y.high], range: [bottom, MARGIN.top] });
  const style = (n: number): string => `line-${n % STYLES}`;
  const tick = (at: Point, anchor: 'start' | 'middle' | 'end', content: string): Markup =>
    text({ ...at, anchor, class: 'tick' }, content);
  return svg(
    { width, height: plotHeight(plot), label },
    ticks(plot.y.high, 5).map((t) => {
      const name = plot.y.percent ? shortPercent(t) : String(t);
      return markup`${line({ x: MARGIN.left, y: y(t) }, { x: right, y: y(t) }, 'grid')}${tick({ x: MARGIN.left - 6, y: y(t) + 4 }, 'end', name)}`;
    }),
    ticks(plot.x.high, 4).map((t) => tick({ x: x(t), y: bottom + 16 }, 'middle', wholeNumber(t))),
    tick({ x: right, y: bottom + 31 }, 'end', plot.x.label),
    plot.lines.map(({ name, points }, n) => {
      const at = { x: MARGIN.left, y: height + LEGEND * (n + 0.5) };
      const path = points.map((p, i) => markup`${i === 0 ? 'M' : 'L'}${x(p.x)} ${y(p.y)}`);
      const curve = path.length > 1 && markup`<path d="${path}" class="curve ${style(n)}"/>`;
      return markup`${curve}${line(at, { x: at.x + 16, y: at.y }, style(n))}${tick({ x: at.x + 22, y: at.y + 4 }, 'start', name)}`;
    }),
    plot.marks.map(({ line: n, size, open, title, ...at }) => {
      const radius = size === undefined ? 3.5 : { small: 2, large: 5.5 }[size];
      const point = dot({ x: x(at.x), y: y(at.y) }, radius, `${style(n)}${open ? ' open' : ''}`);
      return markup`<g><title>${title}</title>${spread(at, (end) => ({ x: x(at.x), y: y(end) }), style(n))}${point}</g>`;
    }),
  );
}
