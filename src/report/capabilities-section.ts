/** The page's section on the selected capabilities: what became of each, and every version of its environment. */
import type { Figure } from '../domain/figure';
import type { Report } from './model';
import type { CalibrationFigures, ReportedCapability, ReportedRound } from './capability-model';
import { calibrationsOf, hintsText } from './adapters';
import { figureView, sourceView } from './figure-view';
import { MISSING } from './format';
import { markup, type Markup } from './markup';
import { calibrationPlot } from './plots/calibration';
import { plotFigure, table } from './sections';
import { versionsSection } from './versions-section';
import { adapterVerdict, compositeText } from './words';

type View = (figure: Figure | undefined) => Markup;

const ended = ({ status, calibration }: ReportedCapability): Markup =>
  markup`${(status ?? 'not finished').replace('_', ' ')}${calibration?.accepted && hintsText(calibration) !== undefined && markup`<div class="quiet">accepted ${hintsText(calibration)}</div>`}`;

export const capabilitiesSection = (report: Report): Markup | undefined => {
  const { capabilities, bands, campaign } = report;
  if (capabilities === undefined || capabilities.length === 0) return undefined;
  const view: View = (figure) => figureView({ figure, campaign: campaign.name });
  const calibrated = capabilities.some((c) => c.calibration !== undefined);
  return markup`<h2>Capabilities</h2>
${table({
  head: [
    'capability',
    'status',
    'verdict',
    'rounds',
    'held-out before',
    'held-out after',
    'all target tasks',
    'what is known',
  ],
  rows: capabilities.map((c) => [
    markup`${c.name}${c.adapter !== undefined && markup`<div class="quiet">adapter ${sourceView({ from: [c.adapter], campaign: campaign.name })}</div>`}${c.parts !== undefined && markup`<div class="quiet">${compositeText(c)}</div>`}`,
    ended(c),
    c.statement?.gamed ? markup`<span class="bad">${adapterVerdict(c)}</span>` : adapterVerdict(c),
    c.rounds === undefined ? MISSING : String(c.rounds.length),
    view(c.validation?.target.before),
    view(c.validation?.target.after),
    view(c.onTarget?.all),
    c.reason ?? c.statement?.text,
  ]),
})}
${branchTable(capabilities, view)}
${
  bands !== undefined &&
  calibrated &&
  markup`<h2>Calibration</h2>${plotFigure({
    body: calibrationPlot({ capabilities, bands, campaign: campaign.name }),
    caption:
      'Base model on each synthesized environment (on a composite’s, the sum of its parts’ adapters). Shaded: accepted; small open dots: earlier rounds; filled: the last round (red: outside). Where the base has mastered a branch ' +
      'of the instances, the marks are over the others, which were judged.',
    campaign: campaign.name,
  })}`
}
${roundsTable(capabilities, view)}
${versionsSection(report)}`;
};

/** The held-out seeds by branch: a gain on one that is paid with another is no skill. */
const branchTable = (capabilities: readonly ReportedCapability[], view: View): Markup | undefined => {
  const rows = capabilities.flatMap(({ name, validation }) =>
    (validation?.branches ?? []).map(({ branch, before, after, difference }) => [
      name,
      branch,
      view(before),
      view(after),
      view(difference),
    ]),
  );
  if (rows.length === 0) return undefined;
  return markup`<h3>Held-out seeds by branch</h3><p class="small quiet">Success of what the training starts from (the base, or a composite’s sum)
and of the best iteration on the same seeds of the synthesized environment. An adapter that rises on one branch and falls on another beyond chance is gamed: it does the same everywhere. The
router may choose it all the same, if that pays on the target.</p>${table({
    head: ['capability', 'branch', 'before', 'best iteration', 'difference'],
    rows,
  })}`;
};

/** Every round: one whose self-test failed went back to the synthesizer and has no calibration. */
const roundsTable = (capabilities: readonly ReportedCapability[], view: View): Markup | undefined => {
  const rows = capabilities.flatMap(({ name, rounds = [] }) =>
    rounds.flatMap((round) => {
      const [first, ...others] = calibrationsOf(round);
      return [first, ...others].map((calibration) => [
        name,
        String(round.round),
        ...roundCells(round, calibration, view),
      ]);
    }),
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

const roundCells = (
  { selfTest }: ReportedRound,
  calibration: CalibrationFigures | undefined,
  view: View,
): (Markup | string)[] => [
  selfTest.passed ? 'passed' : markup`<span class="bad">failed</span>`,
  calibration === undefined
    ? 'not calibrated'
    : markup`${calibration.verdict.replaceAll('_', ' ')}${hintsText(calibration) !== undefined && markup`<div class="quiet">${hintsText(calibration)}</div>`}${calibration.judged && markup`<div class="quiet">${calibration.judged.text}</div>`}`,
  ...(['meanReward', 'successRate', 'informative'] as const).map(
    (name) =>
      markup`${view(calibration?.[name])}${calibration?.branches?.map((of) => markup`<div>${of.branch} ${view(of[name])}</div>`)}`,
  ),
  markup`${Object.entries(calibration?.passAt ?? {}).map(([k, figure]) => markup`<div>@${k} ${view(figure)}</div>`)}`,
  [...selfTest.findings, ...(calibration?.reasons ?? [])].join('; '),
];
