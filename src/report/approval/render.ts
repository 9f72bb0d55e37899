/** What waits for approval, as a page and on a terminal (enough to decide; the page has the whole). Text from models is in it: the page escapes it, and whoever prints the other takes out what moves a cursor. */
import type { ReportedCitation, ReportedEpisode, ReportedMessage } from '../capability-model';
import { hintsText } from '../adapters';
import { markup, pageOf, type Markup } from '../page/blocks';
import { percent, visible } from '../format';
import type { ApprovalView, CapabilityView, EnvironmentView } from './build';
import { wrap } from '../../terminal';
import type { CalibrationReport } from '../../domain/calibration';

const ownStyle = `
pre { font:12.5px/1.45 ui-monospace,"SF Mono","DejaVu Sans Mono",monospace; white-space:pre-wrap; overflow-wrap:anywhere; margin:6px 0 }
pre .added { background:var(--band); display:block } pre .removed { color:var(--accent); display:block } pre .same { display:block }
.said { border-left:2px solid var(--rule); padding:2px 0 2px 12px; margin:6px 0; white-space:pre-wrap; overflow-wrap:anywhere; max-width:90ch }
.said.cited { border-color:var(--accent) } summary { cursor:pointer }
`;

export interface Waits {
  view: ApprovalView;
  /** The command that approves it, and how it is rejected or edited. */
  commands: readonly string[];
}

/** What waits in a campaign; `at` is when it was looked at. */
export const approvalHtml = ({
  campaign,
  at,
  waits,
}: {
  campaign: string;
  at: string;
  waits: readonly Waits[];
}): string =>
  pageOf({
    title: `${campaign}: waits for approval`,
    style: ownStyle,
    body: markup`<h1>${campaign}</h1><p class="quiet">What waits for approval as of ${at}</p>
${waits.length === 0 && markup`<p>Nothing waits for approval.</p>`}
${waits.map(
  ({ view, commands }) =>
    markup`${'capabilities' in view ? markup`<h2>Capabilities</h2>${view.capabilities.map(capabilityPart)}` : environmentPart(view.environment)}
<h3>To decide</h3>${commands.map((command) => markup`<p><code>${command}</code></p>`)}`,
)}`,
  });

const capabilityPart = (view: CapabilityView): Markup =>
  markup`<h3>${view.candidate.name}</h3><p>${visible(view.candidate.definition)}</p><p class="small quiet">${figuresText(view)}</p>
${view.citations.map(citationPart)}`;

const citationPart = (citation: ReportedCitation): Markup =>
  markup`<details open><summary>${visible(citation.says)} <span class="small quiet">${placeText(citation)}</span></summary>${citation.context.map(
    (message) => said(message, message.message === citation.message),
  )}</details>`;

const environmentPart = (view: EnvironmentView): Markup => {
  const { candidate, round, version, calibration, episodes, earlier } = view;
  return markup`<h2>Environment of ${candidate.name}, round ${round}</h2><p>${visible(candidate.definition)}</p>
<dl>${version.rationale !== undefined && markup`<dt>Rationale</dt><dd>${visible(version.rationale)}</dd>`}
${calibration && markup`<dt>${['Base model', hintsText(view)].filter(Boolean).join(', ')}</dt><dd>${calibrationText(calibration)}</dd>${calibration.judged && markup`<dt>Judged</dt><dd>${visible(calibration.judged.text)}</dd>`}`}
${earlier.map((one) => markup`<dt>Round ${one.round}</dt><dd>${visible(one.said)}</dd>`)}
<dt>Module</dt><dd>${version.lines} lines, <span class="sha">${version.module.sha256}</span></dd></dl>
${diffPart(version)}<h3>Episodes of the base model</h3>${episodes.map(episodePart)}`;
};

const kinds: Record<string, string> = { '+': 'added', '-': 'removed' };
const diffPart = ({ changes }: EnvironmentView['version']): Markup | undefined =>
  changes &&
  markup`<h3>Changes to the round before</h3><p class="small quiet">${changes.added} lines added, ${changes.removed} removed</p><pre>${changes.lines.map(
    (line) => markup`<span class="${kinds[line[0] ?? ''] ?? 'same'}">${line}</span>`,
  )}${changes.missing !== undefined && `${changes.missing} more lines`}</pre>`;

const episodePart = ({ task, outcome, reward, hinted, messages, missing }: ReportedEpisode): Markup =>
  markup`<details><summary>${task}: ${outcome}, reward ${reward}${hinted && ', shown the hint'}</summary>${messages.map((message) => said(message))}${
    missing !== undefined && markup`<p class="quiet">${missing} more messages</p>`
  }</details>`;

const said = ({ role, message, text, missing }: ReportedMessage, isCited = false): Markup =>
  markup`<div class="said${isCited && ' cited'}"><span class="small quiet">${message} ${role}</span>
${visible(text)}${missing !== undefined && ` ... (${missing} more characters)`}</div>`;

/** Characters of a message, lines of a diff, messages of an episode. */
const SHORT = { message: 240, diff: 60, episode: 12 };

/** Text from models is in it: whoever prints it takes out what moves a cursor. */
export const approvalText = (view: ApprovalView): string =>
  ('capabilities' in view ? view.capabilities.map(capabilityText) : [environmentText(view.environment)]).join('\n\n');

const capabilityText = (view: CapabilityView): string =>
  [
    view.candidate.name,
    ...wrapped(view.candidate.definition),
    `  ${figuresText(view)}`,
    ...view.citations.flatMap(citationLines),
  ].join('\n');

/** `9 of 10 votes, Cov 0.42 ± 0.05, Delta 0.31 ± 0.04`. */
function figuresText({ votes, passes, coverage, delta }: CapabilityView): string {
  if (!coverage || !delta) return 'selected by the analyst outright: nothing was labeled';
  const figure = ({ mean, std }: { mean: number; std: number }) => `${mean.toFixed(2)} ± ${std.toFixed(2)}`;
  return `${votes} of ${passes} votes, Cov ${figure(coverage)}, Delta ${figure(delta)}`;
}

/** `task 12, attempt 0, failed, message 4`. */
const placeText = ({ rollout, task, attempt, outcome, message }: ReportedCitation): string =>
  [
    task === undefined ? `trajectory ${rollout}` : `task ${task}, attempt ${attempt}`,
    outcome,
    message !== undefined && `message ${message}`,
  ]
    .filter(Boolean)
    .join(', ');

const citationLines = (citation: ReportedCitation): string[] => [
  `  - ${citation.says} (${placeText(citation)})`,
  ...citation.context.map((message) => `      ${message.message === citation.message ? '>' : ' '} ${line(message)}`),
];

/** Its mean reward and the like, with what they must be within. */
function calibrationText({ meanReward, successRate, allZero, allSuccess, informative }: CalibrationReport): string {
  const shares = { success: successRate, 'all-zero': allZero, 'all-success': allSuccess, informative };
  const parts = Object.entries(shares).map(([name, share]) => `${name} ${percent(share)}`);
  return [`mean reward ${meanReward.toFixed(2)}`, ...parts].join(', ');
}

function environmentText(view: EnvironmentView): string {
  const { candidate, round, version, calibration, episodes, earlier } = view;
  const { changes, rationale, lines } = version;
  const diff = changes?.lines.slice(0, SHORT.diff) ?? [];
  const left = (changes?.lines.length ?? 0) - diff.length + (changes?.missing ?? 0);
  return [
    `${candidate.name}, round ${round}: ${lines} lines`,
    ...wrapped(candidate.definition),
    ...(rationale === undefined ? [] : wrapped(`rationale: ${rationale}`)),
    ...(calibration
      ? [`  ${['base model', hintsText(view)].filter(Boolean).join(', ')}: ${calibrationText(calibration)}`]
      : []),
    ...earlier.map((one) => `  round ${one.round}: ${one.said}`),
    ...(changes ? [`  changes to the round before: +${changes.added} -${changes.removed}`] : []),
    ...diff.map((one) => `    ${one}`),
    ...(left > 0 ? [`    ... ${left} more lines`] : []),
    ...episodes.flatMap(({ task, reward, hinted, messages, missing = 0 }) => {
      const shown = messages.slice(0, SHORT.episode);
      const more = messages.length - shown.length + missing;
      return [
        `  ${task}: reward ${reward.toFixed(2)}${hinted ? ', shown the hint' : ''}`,
        ...shown.map((message) => `      ${line(message)}`),
        ...(more > 0 ? [`      ... ${more} more messages`] : []),
      ];
    }),
  ].join('\n');
}

function line({ role, text, missing = 0 }: ReportedMessage): string {
  const whole = text.replace(/\s+/g, ' ');
  const left = whole.length - SHORT.message + missing;
  return `${role}: ${left > 0 ? `${whole.slice(0, SHORT.message)}... (${left} more characters)` : whole}`;
}

const WIDTH = 100;
const wrapped = (text: string): string[] => wrap(text.replace(/\s+/g, ' '), WIDTH).map((line) => `  ${line}`);
