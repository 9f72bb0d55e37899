/** Selection: every candidate at (Cov, Delta) with its spread over the passes, and the thresholds that a pass votes by. */
import type { SelectionRule } from '../../domain/campaign';
import type { ReportedCandidate } from '../capability-model';
import { figureTitle } from '../figure-view';
import { markup, type Markup } from '../markup';
import { line, linear, spread, svg, text, ticks } from './scale';

const left = 56;
const right = 470;
const top = 18;
const bottom = 320;
const labels = right + 26;

export const selectionPlot = (plot: {
  candidates: readonly ReportedCandidate[];
  rule: SelectionRule;
  campaign: string;
}): Markup => {
  const { rule } = plot;
  // A candidate that was not labeled has no place here; the table below names it.
  const points = plot.candidates.flatMap((candidate) => {
    const [cov, delta] = [candidate.coverage.value, candidate.delta.value];
    return cov === null || delta === null ? [] : [{ candidate, cov, delta }];
  });
  const reach = (values: number[]): number => Math.min(1, Math.ceil(Math.max(...values) * 5 + 0.25) / 5);
  const highX = reach([2 * rule.rho, ...points.map((p) => p.cov + (p.candidate.coverage.std ?? 0))]);
  const highY = reach([2 * rule.delta, ...points.map((p) => p.delta + (p.candidate.delta.std ?? 0))]);
  const lowest = Math.min(0, ...points.map((p) => p.delta - (p.candidate.delta.std ?? 0)));
  const lowY = Math.max(-1, Math.floor(lowest * 5) / 5);
  const x = linear({ domain: [0, highX], range: [left, right] });
  const y = linear({ domain: [lowY, highY], range: [bottom, top] });
  const heights = spread({ wishes: points.map((p) => y(p.delta)), gap: 17, max: bottom });

  const mark = ({ candidate, cov, delta }: (typeof points)[number], i: number): Markup => {
    const kind = candidate.selected ? 'chosen' : 'left-out';
    const [sx, sy] = [candidate.coverage.std ?? 0, candidate.delta.std ?? 0];
    const at = { x: x(cov), y: y(delta) };
    const labelY = heights[i] ?? at.y;
    const title = [
      candidate.name,
      `votes ${candidate.votes} of ${candidate.passes}`,
      figureTitle({ figure: candidate.coverage, label: 'Cov', campaign: plot.campaign }),
      figureTitle({ figure: candidate.delta, label: 'Delta', campaign: plot.campaign }),
    ].join('\n');
    return markup`<g><title>${title}</title>${line({ x: at.x + 7, y: at.y }, { x: labels - 6, y: labelY }, 'leader')}
${line({ x: x(cov - sx), y: at.y }, { x: x(cov + sx), y: at.y }, `spread ${kind}`)}${line({ x: at.x, y: y(delta - sy) }, { x: at.x, y: y(delta + sy) }, `spread ${kind}`)}
<circle cx="${at.x}" cy="${at.y}" r="5" class="mark ${kind}"/>
${text({ x: labels, y: labelY + 4, class: candidate.selected ? 'strong' : 'quiet' }, `${candidate.name}  ${candidate.votes}/${candidate.passes}`)}</g>`;
  };

  return svg(
    { width: 860, height: bottom + 44, label: 'Coverage and Delta of every candidate capability' },
    markup`<rect x="${x(rule.rho)}" y="${top}" width="${right - x(rule.rho)}" height="${y(rule.delta) - top}" class="band"/>`,
    ticks({ low: 0, high: highX, about: 6 }).map((t) =>
      text({ x: x(t), y: bottom + 18, anchor: 'middle', class: 'tick' }, String(t)),
    ),
    ticks({ low: lowY, high: highY, about: 6 }).map((t) =>
      text({ x: left - 8, y: y(t) + 4, anchor: 'end', class: 'tick' }, String(t)),
    ),
    line({ x: left, y: bottom }, { x: right, y: bottom }, 'axis'),
    line({ x: left, y: top }, { x: left, y: bottom }, 'axis'),
    lowY < 0 ? line({ x: left, y: y(0) }, { x: right, y: y(0) }, 'grid') : [],
    line({ x: x(rule.rho), y: top }, { x: x(rule.rho), y: bottom }, 'threshold'),
    line({ x: left, y: y(rule.delta) }, { x: right, y: y(rule.delta) }, 'threshold'),
    text({ x: x(rule.rho) + 5, y: bottom - 6, class: 'tick' }, `rho ${rule.rho}`),
    text({ x: right - 4, y: y(rule.delta) + 14, anchor: 'end', class: 'tick' }, `delta ${rule.delta}`),
    text(
      { x: (left + right) / 2, y: bottom + 38, anchor: 'middle', class: 'tick' },
      'Cov: share of failures that lack it',
    ),
    text({ x: left + 6, y: top - 6, class: 'tick' }, 'Delta: error rate in failures minus in successes'),
    text(
      { x: labels, y: top - 6, class: 'tick' },
      points.length > 0 ? `votes (selected at ${rule.votes})` : 'no candidates',
    ),
    points.map(mark),
  );
};
