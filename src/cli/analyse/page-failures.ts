/** Each failed conversation on the page: where its failure begins, what it lacks and what the passes say of it. */
import { markup, type Markup } from '../../report/markup';
import { explanationsOf, FAULT, NOT_EXPLAINED } from './explained';
import { quoted, shown } from './page-conversation';
import type { AnalysedFailure, Analysis, LackedCapability } from './result';

export function failureViews(analysis: Analysis): Markup {
  const { failures, passes } = analysis;
  const explained = explanationsOf(analysis);
  const unexplained = failures.filter(({ conversation }) => explained(conversation) === NOT_EXPLAINED);
  return markup`<p class="small quiet">Message numbers count from 0, as in the file. A failure begins at the message that most passes name: the first
after which the attempt could no longer pass unless the agent had noticed and undone it.</p>
${unexplained.length > 0 && unexplainedView(unexplained, failures.length)}
${failures.map((failure) => failureView({ failure, passes, explained: explained(failure.conversation) }))}`;
}

const unexplainedView = (unexplained: readonly AnalysedFailure[], of: number): Markup =>
  markup`<details class="block"><summary>Not explained by a capability that is selected: ${unexplained.length} of ${of}</summary><ul>${unexplained.map(
    ({ conversation, begins }) =>
      markup`<li><a href="#failure-${conversation}">${shown(conversation)}</a>${begins && markup`, message ${String(begins.message)}: ${shown(begins.reason)}`}</li>`,
  )}</ul></details>`;

function failureView(o: { failure: AnalysedFailure; passes: number; explained: string | undefined }): Markup {
  const { conversation, task, reward, messages, lacking, begins } = o.failure;
  const most = lacking.slice(0, 3).map(({ capability, votes, passes: of }) => `${capability} ${votes}/${of}`);
  const line = [
    ...(task === conversation ? [] : [`task ${task}`]),
    `reward ${Number(reward.toFixed(3))}`,
    ...(begins ? [`begins at message ${begins.message} of ${messages} (${begins.votes} of ${o.passes} passes)`] : []),
    ...(begins && begins.of !== 'agent' ? [FAULT[begins.of]] : []),
    ...most,
    ...(o.explained === NOT_EXPLAINED ? [NOT_EXPLAINED] : []),
  ];
  const head = markup`<b>${shown(conversation)}</b> <span class="quiet">${shown(line.join(' · '))}</span>`;
  if (lacking.length === 0 && !begins) return markup`<p id="failure-${conversation}">${head}</p>`;
  return markup`<details class="block" id="failure-${conversation}"><summary>${head}</summary>
${begins && markup`<p class="says">${shown(begins.reason)}</p>${quoted({ context: begins.context, message: begins.message })}`}
${lacking.map(lackedView)}</details>`;
}

const lackedView = ({ capability, votes, passes, reasons }: LackedCapability): Markup =>
  markup`<p><a href="#${capability}">${capability}</a>: ${votes} of ${passes} passes</p>
<ul class="small">${reasons.map(
    ({ pass, reason, message }) =>
      markup`<li>pass ${pass + 1}${message !== undefined && markup`, message ${String(message)}`}: ${shown(reason)}</li>`,
  )}</ul>`;
