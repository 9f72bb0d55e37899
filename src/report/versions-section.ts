/** The versions of each synthesized environment on the page: why it was written so, what changed, what was found; and sample episodes. */
import type { Report } from './model';
import type { ReportedCapability, ReportedEpisode, ReportedRound, ReportedVersion } from './capability-model';
import { calibrationsOf, hintsText } from './adapters';
import { messagesView } from './conversation';
import { sourceView } from './figure-view';
import { shortSha, wholeNumber } from './format';
import { longText } from './long-text';
import { markup, type Markup } from './markup';

export const versionsSection = ({ capabilities = [], campaign }: Report): Markup | undefined => {
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
