/** The two charts: intervals by row, as rows of the page itself, so that names wrap; and lines with marks. */
import * as Observable from '@observablehq/plot';
import { useEffect, useRef, useState } from 'preact/hooks';
import { shortPercent, wholeNumber } from '../../src/report/format';
import type { Intervals, Lines, Plot as Data } from '../../src/report/plots';
import { Text } from './text';

export const Plot = ({ plot }: { plot: Data }) =>
  plot.kind === 'intervals' ? <Rows plot={plot} /> : <Chart plot={plot} />;

function Rows({ plot: { rows, label, reference } }: { plot: Intervals }) {
  const high = Math.max(0.1, ...rows.flatMap(({ measured }) => [measured?.value ?? 0, measured?.high ?? 0]));
  const at = (value: number) => `${(100 * value) / high}%`;
  return (
    <div class="intervals" role="table" aria-label={label}>
      {rows.map(({ name, role, measured, text, title }) => (
        <div key={name} class={role} role="row" title={title}>
          <span class="name" role="rowheader">
            <Text text={name} />
          </span>
          <span class="bar" role="cell">
            {reference && <i class="reference" style={{ left: at(reference.value) }} />}
            {measured?.low !== undefined && measured.high !== undefined && (
              <i class="spread" style={{ left: at(measured.low), width: at(measured.high - measured.low) }} />
            )}
            {measured?.others?.map((other, n) => (
              <i key={n} class="dot small" style={{ left: at(other) }} />
            ))}
            {measured && <i class="dot" style={{ left: at(measured.value) }} />}
          </span>
          <span class="quiet" role="cell">
            {text}
          </span>
        </div>
      ))}
    </div>
  );
}

const COLOURS = ['--one', '--two', '--three', '--base', '--four'];
const colour = (line: number): string => `var(${COLOURS[line % COLOURS.length] ?? '--one'})`;
const RADIUS = { small: 2, large: 6 };

function Chart({ plot }: { plot: Lines }) {
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
    if (width > 0) frame.current?.replaceChildren(drawn(plot, Math.min(width, plot.width)));
  }, [plot, width]);
  return (
    <>
      <div ref={frame} class="chart" style={{ maxWidth: plot.width }} role="img" aria-label={plot.label} />
      {plot.lines.length > 1 && (
        <ul class="legend">
          {plot.lines.map(({ name }, n) => (
            <li key={name} style={{ '--line': colour(n) }}>
              {name}
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function drawn({ x, y, height, lines, marks }: Lines, width: number): Element {
  const points = lines.flatMap(({ points: own }, line) => own.map((point) => ({ ...point, line })));
  const named = marks.filter(({ name }) => name !== undefined);
  const share = (value: number) => (y.percent ? shortPercent(value) : String(value));
  const chart = Observable.plot({
    ...{ width, height, className: 'plot', marginLeft: 44, marginRight: 16, marginBottom: 36 },
    x: { domain: [0, x.high], label: x.label, ticks: 4, tickFormat: (value: number) => wholeNumber(value) },
    y: { domain: [0, y.high], label: null, ticks: 5, grid: true, tickFormat: share },
    marks: [
      Observable.lineY(points, { x: 'x', y: 'y', z: 'line', stroke: ({ line }: { line: number }) => colour(line) }),
      Observable.ruleX(
        marks.filter(({ low, high }) => low !== undefined && high !== undefined),
        { x: 'x', y1: 'low', y2: 'high', stroke: ({ line }: { line: number }) => colour(line), strokeWidth: 1.5 },
      ),
      Observable.dot(marks, {
        ...{ x: 'x', y: 'y', r: ({ size }: (typeof marks)[number]) => (size === undefined ? 4 : RADIUS[size]) },
        stroke: ({ line }: { line: number }) => colour(line),
        fill: ({ line, open }: (typeof marks)[number]) => (open ? 'var(--paper)' : colour(line)),
        title: ({ title }: (typeof marks)[number]) => title,
      }),
      Observable.text(named, {
        ...{ x: 'x', y: 'y', text: ({ name = '' }: (typeof marks)[number]) => name, dx: 10 },
        ...{ textAnchor: 'start', fill: 'var(--ink)', stroke: 'var(--paper)', strokeWidth: 3, fontWeight: 600 },
      }),
    ].filter(Boolean),
    color: { type: 'identity' },
    r: { type: 'identity' },
  });
  // The frame says what it is; its parts have labels that a screen reader may not be given.
  for (const part of chart.querySelectorAll('[aria-label]')) part.removeAttribute('aria-label');
  return chart;
}
