/** The page's section on the selected capabilities: what became of each, and every version of its environment. */
import type { Figure } from '../domain/figure';
import type { Report } from '../domain/report';
import type { ReportedCapability, ReportedRound } from '../domain/reported-capability';
import { figureView, sourceView } from './figure-view';
import { MISSING } from './format';
import { markup, type Markup } from './markup';
import { calibrationPlot } from './plots/calibration';
import { plotFigure, table } from './sections';

type View = (figure: Figure | undefined) => Markup;

const ended = ({ status }: ReportedCapability): string => (status ?? 'not finished').replace('_', ' ');

export const capabilitiesSection = ({ capabilities, bands, campaign }: Report): Markup | undefined => {
  if (capabilities === undefined || capabilities.length === 0) return undefined;
  const view: View = (figure) => figureView({ figure, campaign: campaign.name });
  const calibrated = capabilities.some((c) => c.calibration !== undefined);
  return markup`<h2>Capabilities</h2>
${table({
  head: ['capability', 'status', 'helps', 'rounds', 'target before', 'target after', 'difference', 'reason'],
  rows: capabilities.map((c) => [
    markup`${c.name}${c.adapter !== undefined && markup`<div class="quiet">adapter ${sourceView({ from: [c.adapter], campaign: campaign.name })}</div>`}`,
    ended(c),
    c.validation === undefined ? MISSING : c.validation.helps ? 'yes' : 'no',
    c.rounds === undefined ? MISSING : String(c.rounds.length),
    view(c.validation?.target.before),
    view(c.validation?.target.after),
    view(c.validation?.target.difference),
    c.reason,
  ]),
})}
${
  bands !== undefined &&
  calibrated &&
  markup`<h2>Calibration</h2>${plotFigure({
    body: calibrationPlot({ capabilities, bands, campaign: campaign.name }),
    caption:
      'Base model on each synthesized environment. Shaded: accepted; small open dots: earlier rounds; filled: the last round (red: outside).',
    campaign: campaign.name,
  })}`
}
${roundsTable(capabilities, view)}`;
};

/** Every round: one whose self-test failed went back to the synthesizer and has no calibration. */
const roundsTable = (capabilities: readonly ReportedCapability[], view: View): Markup | undefined => {
  const rows = capabilities.flatMap(({ name, rounds = [] }) =>
    rounds.map((round) => [name, String(round.round), ...roundCells(round, view)]),
  );
  if (rows.length === 0) return undefined;
  return markup`<h3>Rounds of synthesis</h3>${table({
    head: [
      'capability',
      'round',
      'self-test',
      'verdict',
      'mean reward',
      'success',
      'informative',
      'pass@k',
      'findings',
    ],
    rows,
  })}`;
};

const roundCells = ({ selfTest, calibration }: ReportedRound, view: View): (Markup | string)[] => [
  selfTest.passed ? 'passed' : markup`<span class="bad">failed</span>`,
  calibration === undefined ? 'not calibrated' : calibration.verdict.replaceAll('_', ' '),
  view(calibration?.meanReward),
  view(calibration?.successRate),
  view(calibration?.informative),
  markup`${Object.entries(calibration?.passAt ?? {}).map(([k, figure]) => markup`<div>@${k} ${view(figure)}</div>`)}`,
  [...selfTest.findings, ...(calibration?.reasons ?? [])].join('; '),
];
