/** approval.html. Invariant: as the report: one self-contained file, no script, nothing fetched, every text escaped (markup.ts). */
import type { ReportedCitation, ReportedEpisode, ReportedMessage } from '../capability-model';
import { hintsText } from '../adapters';
import { Markup, markup } from '../markup';
import { style } from '../style';
import { visible } from '../format';
import type { ApprovalView, CapabilityView, EnvironmentView } from './build';
import { calibrationText, figuresText, placeText } from './text';

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
  markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${campaign}: waits for approval</title><style>${new Markup(style + ownStyle)}</style></head><body>
<h1>${campaign}</h1><p class="quiet">What waits for approval as of ${at}</p>
${waits.length === 0 && markup`<p>Nothing waits for approval.</p>`}
${waits.map(
  ({ view, commands }) =>
    markup`${'capabilities' in view ? markup`<h2>Capabilities</h2>${view.capabilities.map(capabilityPart)}` : environmentPart(view.environment)}
<h3>To decide</h3>${commands.map((command) => markup`<p><code>${command}</code></p>`)}`,
)}
</body></html>
`.text;

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
