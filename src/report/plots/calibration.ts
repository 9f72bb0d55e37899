/** Calibration: one row a capability, one column a condition; the accepted range is shaded, the rounds are dots, the kept one is filled. */
import type { CalibrationBands } from '../../domain/campaign';
import type { Figure } from '../../domain/figure';
import type { BandFigures, CalibrationFigures, ReportedCapability } from '../capability-model';
import { calibrationsOf, hintsText } from '../adapters';
import { figureTitle } from '../figure-view';
import { markup, type Markup } from '../markup';
import { LABELS, line, linear, rowLabel, type Scale, svg, text } from './scale';

const left = LABELS;
const cell = { width: 84, gap: 22 };
const rowHeight = 30;
const top = 44;

interface Condition {
  name: string;
  accepted: [number, number];
  figure: (of: BandFigures) => Figure;
}

const conditions = (bands: CalibrationBands): Condition[] => [
  { name: 'mean reward', accepted: bands.meanReward, figure: (r) => r.meanReward },
  { name: 'success', accepted: bands.successRate, figure: (r) => r.successRate },
  { name: 'all success', accepted: [0, bands.maxAllSuccess], figure: (r) => r.allSuccess },
  { name: 'all zero', accepted: [0, bands.maxAllZero], figure: (r) => r.allZero },
  { name: 'constant', accepted: [0, bands.maxConstant], figure: (r) => r.constant },
  { name: 'informative', accepted: [bands.minInformative, 1], figure: (r) => r.informative },
];

/** A round may have been calibrated several times: without hints and with them. */
const isSame = (one: CalibrationFigures, other: CalibrationFigures): boolean =>
  one.round === other.round && one.hints === other.hints;

const cellMarks = (marks: {
  rounds: readonly CalibrationFigures[];
  kept: CalibrationFigures;
  condition: Condition;
  x: Scale;
  y: number;
  campaign: string;
}): Markup[] =>
  marks.rounds.flatMap((round) => {
    const figure = marks.condition.figure(round.judged ?? round);
    if (figure.value === null) return [];
    const isKept = isSame(round, marks.kept);
    const kind = !isKept ? 'earlier' : round.accepted ? 'chosen' : 'refused';
    const label = [`round ${round.round}, ${marks.condition.name}`, hintsText(round), round.judged?.text]
      .filter(Boolean)
      .join(', ');
    return [
      markup`<circle cx="${marks.x(figure.value)}" cy="${marks.y}" r="${isKept ? 5 : 3}" class="mark ${kind}"><title>${figureTitle({ figure, label, campaign: marks.campaign })}</title></circle>`,
    ];
  });

export const calibrationPlot = (plot: {
  capabilities: readonly ReportedCapability[];
  bands: CalibrationBands;
  campaign: string;
}): Markup => {
  const rows = plot.capabilities.flatMap(({ name, calibration, rounds }) =>
    calibration === undefined ? [] : [{ name, kept: calibration, rounds: (rounds ?? []).flatMap(calibrationsOf) }],
  );
  const columns = conditions(plot.bands).map((condition, i) => {
    const from = left + i * (cell.width + cell.gap);
    return { condition, from, x: linear({ domain: [0, 1], range: [from, from + cell.width] }) };
  });
  const bottom = top + rows.length * rowHeight;
  return svg(
    {
      width: left + columns.length * (cell.width + cell.gap),
      height: bottom + 24,
      label: 'Calibration of each environment',
    },
    columns.map(({ condition, from, x }) => {
      const [low, high] = condition.accepted;
      return markup`${text({ x: from + cell.width / 2, y: 16, anchor: 'middle' }, condition.name)}
${text({ x: from + cell.width / 2, y: 31, anchor: 'middle', class: 'tick' }, `${low} to ${high}`)}
<rect x="${x(low)}" y="${top}" width="${x(high) - x(low)}" height="${bottom - top}" class="band"/>
${text({ x: from, y: bottom + 16, anchor: 'middle', class: 'tick' }, '0')}${text({ x: from + cell.width, y: bottom + 16, anchor: 'middle', class: 'tick' }, '1')}`;
    }),
    rows.map(({ name, kept, rounds }, i) => {
      const y = top + (i + 0.5) * rowHeight;
      // What is kept is drawn last, so that it lies on top.
      const ordered = [...rounds.filter((round) => !isSame(round, kept)), kept];
      return markup`${rowLabel({ y: y + 4, name })}${columns.map(
        ({ condition, from, x }) =>
          markup`${line({ x: from, y }, { x: from + cell.width, y }, 'grid')}${cellMarks({ rounds: ordered, kept, condition, x, y, campaign: plot.campaign })}`,
      )}`;
    }),
  );
};
