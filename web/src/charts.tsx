/** Lines, dots and intervals, drawn by Observable Plot. */
import * as Observable from '@observablehq/plot';
import { useEffect, useRef } from 'preact/hooks';
import { wholeNumber } from '../../src/report/format';

export interface ChartPoint {
  x: number;
  y: number;
  /** The line that it belongs to. */
  series: string;
  /** Ends of its interval. */
  low?: number | undefined;
  high?: number | undefined;
}

export interface ChartData {
  label: string;
  width: number;
  height: number;
  x: string;
  points: readonly ChartPoint[];
  /** Shows a dot at each point. */
  hasDots?: boolean;
  /** Names the points, in place of a legend, and shows values as percentages. */
  areNamedShares?: boolean;
}

const COLOURS = ['--one', '--two', '--three', '--four', '--base'].map((name) => `var(${name})`);

export function Chart({ data }: { data: ChartData }) {
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const { current } = frame;
    current?.replaceChildren(draw(data, Math.min(current.clientWidth || data.width, data.width)));
  }, [data]);
  return <div ref={frame} class="chart" style={{ maxWidth: data.width }} role="img" aria-label={data.label} />;
}

function draw({ x, height, points, hasDots = false, areNamedShares = false }: ChartData, width: number): Element {
  const series = [...new Set(points.map((point) => point.series))];
  const at = { x: 'x', y: 'y', stroke: 'series' };
  const chart = Observable.plot({
    ...{ width, height, marginLeft: 48, marginRight: areNamedShares ? 120 : 16 },
    x: { zero: true, label: x, ticks: 4, tickFormat: wholeNumber },
    y: { zero: true, nice: true, label: null, ticks: 5, grid: true, percent: areNamedShares },
    color: { type: 'categorical', domain: series, range: COLOURS, legend: series.length > 1 && !areNamedShares },
    marks: [
      Observable.lineY(points, at),
      Observable.ruleX(
        points.filter(({ low }) => low !== undefined),
        { x: 'x', y1: 'low', y2: 'high', stroke: 'series' },
      ),
      hasDots ? Observable.dot(points, { ...at, fill: 'series' }) : null,
      areNamedShares ? Observable.text(points, { x: 'x', y: 'y', text: 'series', dx: 10, textAnchor: 'start' }) : null,
      Observable.tip(points, Observable.pointer(at)),
    ],
  });
  // The frame has a label; labels of its parts may not be given to a screen reader.
  for (const part of chart.querySelectorAll('[aria-label]')) part.removeAttribute('aria-label');
  return chart;
}
