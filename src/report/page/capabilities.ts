/** The page's sections on the selection, its evidence, the capabilities and the versions of their environments. Absent parts give nothing. */
import type { Figure } from '../../domain/figure';
import type { Report } from '../model';
import {
  citationView,
  figureView,
  longText,
  markup,
  type Markup,
  messagesView,
  sourceView,
  table,
  trajectoryView,
} from './blocks';
import { adapterVerdict, AGREEMENT, compositeText, failedPassesText, votesText } from '../words';
import type {
  CalibrationFigures,
  ReportedCapability,
  ReportedEpisode,
  ReportedEvidence,
  ReportedFaults,
  ReportedRound,
  ReportedSelection,
  ReportedVersion,
} from '../capability-model';
import { calibrationsOf, hintsText } from '../adapters';
import { MISSING, shortSha, wholeNumber } from '../format';

export const selectionSection = ({ selection, campaign }: Report): Markup | undefined => {
  if (selection === undefined) return undefined;
  const { candidates, rule } = selection;
  const agreed = candidates.some(({ agreement }) => agreement !== undefined);
  const view = (figure: Figure): Markup => figureView({ figure, campaign: campaign.name });
  return markup`<h2>Selection</h2>
<div>Base rollouts: failed ${view(selection.failed)} successful ${view(selection.passed)}</div>
<p>${
    selection.passes === 0
      ? 'The analyst gives the capabilities outright; nothing was labeled.'
      : `Each of ${selection.passes} passes labels them. A pass votes for a capability if Cov ≥ ${rule.rho} and Delta ≥ ${rule.delta}; ${rule.votes} votes select it.`
  }</p>${failedPassesText(selection).map((text) => markup`<p class="bad">${text}</p>`)}${selection.reason !== undefined && markup`<p class="bad">${selection.reason}</p>`}${selection.decision !== undefined && markup`<p>The selected ones were ${selection.decision}.</p>`}${selection.noComposite !== undefined && markup`<p>No composite: ${selection.noComposite}.</p>`}
${sourceView({ from: selection.from, campaign: campaign.name })}
${table({
  head: ['candidate', 'votes', 'Cov', 'Delta', ...(agreed ? ['agreement'] : []), 'selected', 'definition'],
  rows: candidates.map((c) => [
    c.name,
    votesText(c, ' of '),
    view(c.coverage),
    view(c.delta),
    ...(agreed ? [figureView({ figure: c.agreement, campaign: campaign.name })] : []),
    c.selected ? 'yes' : 'no',
    longText(c.definition),
  ]),
})}
${agreed && markup`<p class="small quiet">${AGREEMENT}</p>`}
${evidenceView(selection, campaign.name)}`;
};

/** The selected ones open, the others closed. */
const evidenceView = ({ evidence = [], candidates }: ReportedSelection, campaign: string): Markup | undefined => {
  if (evidence.length === 0) return undefined;
  const selected = new Set(candidates.flatMap((candidate) => (candidate.selected ? [candidate.name] : [])));
  return markup`<h3>What was seen</h3>
<p class="small quiet">Steps that the analyst cites, and for the selected capabilities failed trajectories that passes label LACKING. Each
opens to the message and its neighbours; the code is the rollout’s key, for <code>campaign lineage</code>.</p>
${evidence.map(
  (of) =>
    markup`<details class="seen"${selected.has(of.capability) && markup` open`}><summary><b>${of.capability}</b> <span class="quiet">${counted(of)}</span></summary>${seen(of, campaign)}</details>`,
)}`;
};

const counted = ({ citations, lacking = [] }: ReportedEvidence): string =>
  [
    ...(citations.length > 0 ? [`${citations.length} cited step${citations.length === 1 ? '' : 's'}`] : []),
    ...(lacking.length > 0 ? [`${lacking.length} LACKING trajector${lacking.length === 1 ? 'y' : 'ies'}`] : []),
  ].join(', ');

const seen = ({ citations, lacking = [] }: ReportedEvidence, campaign: string): Markup =>
  markup`${citations.map((citation) => citationView(citation, { campaign }))}${
    lacking.length > 0 &&
    markup`<div class="small quiet">Labeled LACKING</div>${lacking.map((one) => {
      const cited = one.message === undefined ? '' : `, ${one.citing} cite the message`;
      return citationView(one, { campaign, also: `LACKING in ${one.lacking} of ${one.passes} passes${cited}` });
    })}`
  }`;

const whose = { environment: 'Environment', user: 'Simulated user' } as const;

/** What failed for no fault of the agent's. */
export const faultsSection = ({ selection, campaign }: Report): Markup | undefined => {
  const faults = selection?.faults;
  if (faults === undefined) return undefined;
  return markup`<h2>Faults of the environment or the simulated user</h2>
<p class="small quiet">What an agent can’t mend: it never becomes a capability. A failed trajectory counts here if the passes put it
down to one of the two more often than to the agent; it is NA for every capability in the passes that do.</p>
${faults.trajectories !== undefined && counts(faults.trajectories, campaign.name)}
${faults.found.map(
  ({ of, what, citations }) =>
    markup`<h3>${whose[of]}</h3><div>${longText(what)}</div>${citations.map((citation) => citationView(citation, { campaign: campaign.name }))}`,
)}`;
};

const counts = (
  { environment, user, examples }: NonNullable<ReportedFaults['trajectories']>,
  campaign: string,
): Markup =>
  markup`<div>Failed trajectories put down to the environment ${figureView({ figure: environment, campaign })} to the simulated user ${figureView({ figure: user, campaign })}</div>${examples.map(
    (one) =>
      markup`<div class="citation">${trajectoryView(one, campaign)}, ${whose[one.of].toLowerCase()} in ${one.votes} of ${one.passes} passes: ${longText(one.reason)}</div>`,
  )}`;

type View = (figure: Figure | undefined) => Markup;

const ended = ({ status, calibration }: ReportedCapability): Markup =>
  markup`${(status ?? 'not finished').replace('_', ' ')}${calibration?.accepted && hintsText(calibration) !== undefined && markup`<div class="quiet">accepted ${hintsText(calibration)}</div>`}`;

export const capabilitiesSection = (report: Report): Markup | undefined => {
  const { capabilities, bands, campaign } = report;
  if (capabilities === undefined || capabilities.length === 0) return undefined;
  const view: View = (figure) => figureView({ figure, campaign: campaign.name });
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
${roundsTable({ capabilities, bands, view })}
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
const roundsTable = (o: {
  capabilities: readonly ReportedCapability[];
  bands: Report['bands'];
  view: View;
}): Markup | undefined => {
  const { capabilities, bands, view } = o;
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
  const calibrated = capabilities.some(({ calibration }) => calibration !== undefined);
  return markup`<h3>Rounds of synthesis</h3>
${bands !== undefined && calibrated && markup`<p class="small quiet">The base model on each version. Accepted: ${bandsText(bands)}.</p>`}${table(
    {
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
    },
  )}`;
};

const bandsText = (bands: NonNullable<Report['bands']>): string =>
  [
    `mean reward ${bands.meanReward.join(' to ')}`,
    `success ${bands.successRate.join(' to ')}`,
    `all success at most ${bands.maxAllSuccess}`,
    `all zero at most ${bands.maxAllZero}`,
    `constant at most ${bands.maxConstant}`,
    `informative at least ${bands.minInformative}`,
  ].join(', ');

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

const versionsSection = ({ capabilities = [], campaign }: Report): Markup | undefined => {
  const written = capabilities.filter(({ rounds = [] }) => rounds.length > 0);
  if (written.length === 0) return undefined;
  return markup`<h3>Versions of the environments</h3>
<p class="small quiet">Every version that was written, with its writer’s reason and what changed to the round before. The whole module is the
artifact. Sample episodes are the base model’s, of the last calibration.</p>${written.map((capability) => versions(capability, campaign.name))}`;
};

const versions = ({ name, rounds = [], episodes = [] }: ReportedCapability, campaign: string): Markup =>
  markup`<h4>${name}</h4>${rounds.map((round) => versionView(round, campaign))}${episodes.map(episodeView)}`;

/** What was found of it, in a line. */
const foundText = (round: ReportedRound): string =>
  [
    round.selfTest.passed ? 'self-test passed' : 'self-test failed',
    ...calibrationsOf(round).map((one) => [one.verdict.replaceAll('_', ' '), hintsText(one)].filter(Boolean).join(' ')),
    ...(round.decision === undefined ? [] : [round.decision]),
  ].join(', ');

const versionView = (round: ReportedRound, campaign: string): Markup => {
  const { version, selfTest } = round;
  const notes = [...selfTest.findings, ...calibrationsOf(round).flatMap(({ reasons }) => reasons)];
  return markup`<details class="seen"><summary>Round ${round.round}: ${sizeText(version)} <span class="quiet">${foundText(round)}</span></summary>
<div class="small">module ${sourceView({ from: [version.module], campaign })}${selfTest.hints && ', gives hints'}</div>
${version.rationale !== undefined && markup`<div>${longText(version.rationale)}</div>`}
${notes.length > 0 && markup`<ul class="small">${notes.map((note) => markup`<li>${longText(note)}</li>`)}</ul>`}
${diffView(round)}</details>`;
};

const sizeText = ({ lines, changes }: ReportedVersion): string =>
  changes === undefined ? `${lines} lines` : `${lines} lines, +${changes.added} −${changes.removed}`;

const kinds: Record<string, string> = { '+': 'added', '-': 'removed', '@': 'quiet' };

const diffView = ({ round, version: { changes } }: ReportedRound): Markup | undefined => {
  if (changes === undefined)
    return round === 1
      ? undefined
      : markup`<div class="small">too little in common with the round before to compare them</div>`;
  const { lines, missing } = changes;
  if (lines.length === 0) return markup`<div class="small">the same as in the round before</div>`;
  return markup`<pre class="diff">${lines.map((line) => markup`<span class="${kinds[line.charAt(0)] ?? 'same'}">${line}</span>\n`)}</pre>${
    missing !== undefined &&
    markup`<div class="small quiet">${wholeNumber(missing)} more lines are in the artifacts</div>`
  }`;
};

export const episodeView = ({
  rollout,
  task,
  outcome,
  reward,
  stopReason,
  hinted,
  messages,
  missing,
}: ReportedEpisode): Markup =>
  markup`<details class="seen"><summary>Sample episode: ${task}, ${outcome} <span class="quiet">reward ${reward}${hinted && ', shown the hint'}, ended by ${stopReason.replaceAll('_', ' ')}; <code>${shortSha(rollout)}</code></span></summary>
${messagesView(messages)}${missing !== undefined && markup`<div class="small quiet">${missing} more messages are in the artifact</div>`}</details>`;
