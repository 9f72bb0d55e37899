/** analysis.html. Invariant: one self-contained file: no script, nothing fetched; every text of a conversation or a model is escaped and made visible. */
import { languageModelCost } from '../../report/build/report';
import { markup, messagesView, pageOf, table, type Markup } from '../../report/page/blocks';
import { wholeNumber } from '../../report/format';
import { languageModelRows, spentText } from '../../report/words';
import {
  beginsText,
  type Comparison,
  comparisonHead,
  comparisonIntro,
  comparisonRow,
  confusionHead,
  confusionRows,
} from './comparison';
import {
  type AnalysedCapability,
  type AnalysedFailure,
  type Analysis,
  type Cited,
  explanationsOf,
  FAULT,
  type LackedCapability,
  NOT_EXPLAINED,
} from './result';
import { capabilityCells, capabilityHead } from './text';

export const analysisHtml = (o: { analysis: Analysis; comparison?: Comparison | undefined }): string => {
  const { analysis, comparison } = o;
  const { name, capabilities } = analysis;
  return pageOf({
    title: `${name}: analysis`,
    style: ownStyle,
    body: markup`${header(analysis)}
<h2>Capabilities</h2>
${summary(analysis)}
${capabilities.map((capability) => capabilityView(capability, analysis))}
${comparison && comparisonView(comparison)}
<h2>Failed conversations</h2>
${failureViews(analysis)}
${faults(analysis)}
${costs(analysis)}`,
  });
};

const ownStyle = `
a { color:var(--adapter) } dd { grid-column:2 }
details > summary { cursor:pointer } details.block { margin:8px 0 } .says { max-width:90ch }
`;

const header = ({ name, files, analyst, conversations, notes, madeAt }: Analysis): Markup => {
  const { total, failed, passed, tokens } = conversations;
  return markup`<h1>${name}</h1>
<p class="quiet">Capabilities that an agent lacks, found in conversations that it had.</p>
<dl><dt>Conversations</dt><dd>${wholeNumber(total)}: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed; about ${wholeNumber(tokens)} tokens</dd>
<dt>Files</dt>${files.map((file) => markup`<dd>${file}</dd>`)}
<dt>Analyst</dt><dd>${analyst.model} (analyst ${analyst.kind}, version ${analyst.version})</dd>
<dt>Made</dt><dd>${madeAt}</dd>
${notes.length > 0 && markup`<dt>Notes</dt>${notes.map((note) => markup`<dd>${note}</dd>`)}`}</dl>`;
};

const summary = ({
  capabilities,
  rule,
  passes,
  failedPasses,
  reason,
}: Analysis): Markup => markup`<p>Each of ${passes} passes labels every
conversation for every candidate. Cov is the share of the failures that lack it; Delta, how much more often failures lack it than passed
conversations do. A pass votes for a candidate if Cov ≥ ${rule.rho.toFixed(2)} and Delta ≥ ${rule.delta.toFixed(2)}; ${rule.votes} votes select it. Agreement is
Krippendorff's alpha of the passes: 1 is perfect, 0 is chance.</p>
${failedPasses.map(({ pass, reason: why }) => markup`<p class="bad">Pass ${pass + 1} failed and is left out: ${why}</p>`)}
${reason !== undefined && markup`<p class="bad">Nothing is selected: ${reason}.</p>`}
${
  capabilities.length > 0 &&
  table({
    head: [...capabilityHead, 'definition'],
    rows: capabilities.map((capability) => {
      const [name = '', ...figures] = capabilityCells(capability);
      return [markup`<a href="#${name}">${name}</a>`, ...figures, capability.definition];
    }),
  })
}`;

/** What most passes call lacking, each at the step that they cite. */
function capabilityView(
  { name, definition, citations, lacking, selected }: AnalysedCapability,
  { failures }: Analysis,
): Markup {
  const views = failures
    .filter(({ conversation }) => lacking.includes(conversation))
    .map((failure) => {
      const own = failure.lacking.find(({ capability }) => capability === name);
      const at = own?.message === undefined ? '' : `, message ${own.message}`;
      const says = own?.reasons.find(({ message }) => message === own.message) ?? own?.reasons[0];
      return markup`<li><a href="#failure-${failure.conversation}">${failure.conversation}</a> (${own?.votes ?? 0} of ${own?.passes ?? 0} passes${at}): ${says?.reason ?? ''}</li>`;
    });
  return markup`<h3 id="${name}">${name}${!selected && ' (not selected)'}</h3>
<p>${definition}</p>
${citations.map((cited) => citedView(cited))}
${views.length > 0 && markup`<details class="block"><summary>Failed conversations that lack it, as most passes say (${views.length})</summary><ul>${views}</ul></details>`}`;
}

const faults = ({ faults: found }: Analysis): Markup | undefined =>
  found.length === 0
    ? undefined
    : markup`<h2>Faults of the environment and of users</h2>
<p class="small quiet">What failed here for no fault of the agent's: it becomes no capability.</p>
${found.map(({ of, what, citations }) => markup`<h3>${of === 'user' ? 'the user' : 'the environment'}</h3><p>${what}</p>${citations.map((cited) => citedView(cited))}`)}`;

function costs({ spent, budget, analyst }: Analysis): Markup {
  const { languageModel } = languageModelCost(spent, { budget });
  if (!languageModel) return markup`<h2>Cost</h2><p>Nothing was paid for under this name.</p>`;
  return markup`<h2>Cost</h2>
<p>Asked of ${analyst.model} under this name so far: ${spentText(languageModel)}.</p>${table(languageModelRows(languageModel))}`;
}

/** Each failed conversation: where its failure begins, what it lacks and what the passes say of it. */
function failureViews(analysis: Analysis): Markup {
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
      markup`<li><a href="#failure-${conversation}">${conversation}</a>${begins && markup`, message ${begins.message}: ${begins.reason}`}</li>`,
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
  const head = markup`<b>${conversation}</b> <span class="quiet">${line.join(' · ')}</span>`;
  if (lacking.length === 0 && !begins) return markup`<p id="failure-${conversation}">${head}</p>`;
  return markup`<details class="block" id="failure-${conversation}"><summary>${head}</summary>
${begins && markup`<p class="says">${begins.reason}</p>${messagesView(begins.context, begins.message)}`}
${lacking.map(lackedView)}</details>`;
}

const lackedView = ({ capability, votes, passes, reasons }: LackedCapability): Markup =>
  markup`<p><a href="#${capability}">${capability}</a>: ${votes} of ${passes} passes</p>
<ul class="small">${reasons.map(
    ({ pass, reason, message }) =>
      markup`<li>pass ${pass + 1}${message !== undefined && markup`, message ${message}`}: ${reason}</li>`,
  )}</ul>`;

const citedView = ({ conversation, outcome, message, says, context }: Cited): Markup =>
  markup`<details class="block"><summary class="says">${conversation} (${outcome}), message ${message}: ${says}</summary>${messagesView(context, message)}</details>`;

/** People's labels against the passes. */
const comparisonView = (comparison: Comparison): Markup => markup`<h2>Labels by people</h2>
<p>${comparisonIntro(comparison)}</p>
${comparison.begins && markup`<p>${beginsText(comparison.begins)}</p>`}
${comparison.rows.length > 0 && table({ head: comparisonHead, rows: comparison.rows.map(comparisonRow) })}
${comparison.rows.map(
  (row) =>
    markup`<details class="block"><summary>${row.capability}: label by label</summary>${table({ head: confusionHead, rows: confusionRows(row) })}</details>`,
)}`;
