/** Lines with marks, and the bar of an interval. */
import * as Observable from '@observablehq/plot';
import { useEffect, useRef, useState } from 'preact/hooks';
import { shortPercent, wholeNumber } from '../../src/report/format';

interface Point {
  x: number;
  y: number;
}

export interface Mark extends Point {
  /** Ends of its interval. */
  low?: number | undefined;
  high?: number | undefined;
  /** The line whose colour it has. */
  line: number;
  size?: 'small' | 'large';
  /** Filled with the paper's colour. */
  isOpen?: boolean;
  /** Stands beside it. */
  name?: string;
  /** Shown on hover. */
  title: string;
}

export interface ChartData {
  label: string;
  width: number;
  height: number;
  x: string;
  /** A domain from 0 to a share of at most 1; without it the domain follows from the values. */
  shares?: boolean;
  lines: readonly { name: string; points: readonly Point[] }[];
  marks?: readonly Mark[];
}

const COLOURS = ['--one', '--two', '--three', '--four', '--base'];
const colour = (line: number): string => `var(${COLOURS[line % COLOURS.length] ?? '--one'})`;
const RADIUS = { small: 2, large: 6 };
/** The x axis is this much longer than its last mark where marks have names. */
const ROOM = 1.3;

export function Chart({ data }: { data: ChartData }) {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const { current } = frame;
    if (!current) return undefined;
    const sized = new ResizeObserver(() => setWidth(current.clientWidth));
    sized.observe(current);
    return () => sized.disconnect();
  }, []);
  useEffect(() => {
    if (width > 0) frame.current?.replaceChildren(draw(data, Math.min(width, data.width)));
  }, [data, width]);
  return (
    <figure>
      <div ref={frame} class="chart" style={{ maxWidth: data.width }} role="img" aria-label={data.label} />
      {data.lines.length > 1 && (
        <ul class="legend">
          {data.lines.map(({ name }, n) => (
            <li key={name} style={{ '--line': colour(n) }}>
              {name}
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}

/** Returns the end of an axis of shares: a tenth above the largest, at most 1. */
const shareEnd = (values: readonly number[]): number => Math.min(1, Math.ceil(Math.max(0.1, ...values) * 10) / 10);

const shorten = (value: number): string => String(Number(value.toPrecision(3)));

function draw({ x, height, shares = false, lines, marks = [] }: ChartData, width: number): Element {
  const points = lines.flatMap(({ name, points: own }, line) =>
    own.map((point) => ({ ...point, line, title: `${name}, ${x} ${wholeNumber(point.x)}: ${shorten(point.y)}` })),
  );
  const named = marks.filter(({ name }) => name !== undefined);
  const xHigh = Math.max(1, ...[...points, ...marks].map((one) => one.x)) * (named.length > 0 ? ROOM : 1);
  const ends = [...points.map(({ y }) => y), ...marks.flatMap(({ y, low = y, high = y }) => [low, high])];
  const domain = shares ? [0, shareEnd(ends)] : [Math.min(0, ...ends), Math.max(...ends, 1e-9)];
  const stroke = ({ line }: { line: number }) => colour(line);
  const chart = Observable.plot({
    ...{ width, height, className: 'plot', marginLeft: 48, marginRight: 16, marginBottom: 36 },
    x: { domain: [0, xHigh], label: x, ticks: 4, tickFormat: wholeNumber },
    y: { domain, label: null, ticks: 5, grid: true, tickFormat: shares ? shortPercent : shorten },
    marks: [
      Observable.lineY(points, { x: 'x', y: 'y', z: 'line', stroke }),
      Observable.ruleX(
        marks.filter(({ low, high }) => low !== undefined && high !== undefined),
        { x: 'x', y1: 'low', y2: 'high', stroke, strokeWidth: 1.5 },
      ),
      Observable.dot(marks, {
        ...{ x: 'x', y: 'y', stroke, r: ({ size }: Mark) => (size === undefined ? 4 : RADIUS[size]) },
        fill: ({ line, isOpen }: Mark) => (isOpen ? 'var(--paper)' : colour(line)),
      }),
      Observable.text(named, {
        ...{ x: 'x', y: 'y', text: ({ name = '' }: Mark) => name, dx: 10 },
        ...{ textAnchor: 'start', fill: 'var(--ink)', stroke: 'var(--paper)', strokeWidth: 3, fontWeight: 600 },
      }),
      Observable.tip(
        [...points, ...marks],
        Observable.pointer({ x: 'x', y: 'y', title: 'title', fill: 'var(--raised)', stroke: 'var(--rule)' }),
      ),
    ],
    color: { type: 'identity' },
    r: { type: 'identity' },
  });
  // The frame has a label; labels of its parts may not be given to a screen reader.
  for (const part of chart.querySelectorAll('[aria-label]')) part.removeAttribute('aria-label');
  return chart;
}

/** A value with its interval on a bar from 0 to `high`; `reference` is a dashed line. */
export function Bar(o: { value: number; low?: number; high?: number; end: number; reference?: number | undefined }) {
  const { value, low, high, end, reference } = o;
  const at = (one: number) => `${(100 * one) / end}%`;
  return (
    <span class="bar" aria-hidden="true">
      {reference !== undefined && <i class="reference" style={{ left: at(reference) }} />}
      {low !== undefined && high !== undefined && <i class="spread" style={{ left: at(low), width: at(high - low) }} />}
      <i class="dot" style={{ left: at(value) }} />
    </span>
  );
}
