/** analysis.html. Invariant: one self-contained file: no script, nothing fetched; every text of a conversation or a model is escaped and made visible. */
import { wholeNumber } from '../../report/format';
import { Markup, markup } from '../../report/markup';
import { table } from '../../report/sections';
import { style } from '../../report/style';
import { sumOf } from '../../language-model/costs';
import type { Comparison } from './compare';
import { costText } from './cost';
import { citedView, shown } from './page-conversation';
import { failureViews } from './page-failures';
import { comparisonView } from './page-comparison';
import type { AnalysedCapability, Analysis } from './result';

export const analysisHtml = (o: { analysis: Analysis; comparison?: Comparison | undefined }): string => {
  const { analysis, comparison } = o;
  const { name, capabilities } = analysis;
  return markup`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${name}: analysis</title><style>${new Markup(style + ownStyle)}</style></head><body>
${header(analysis)}
<h2>Capabilities</h2>
${summary(analysis)}
${capabilities.map((capability) => capabilityView(capability, analysis))}
${comparison && comparisonView(comparison)}
<h2>Failed conversations</h2>
${failureViews(analysis)}
${faults(analysis)}
${costs(analysis)}
</body></html>
`.text;
};

const ownStyle = `
a { color:var(--adapter) } dd { grid-column:2 }
.turn { border-left:3px solid var(--rule); padding:2px 0 2px 10px; margin:6px 0; font-size:13.5px; max-width:90ch; overflow-wrap:anywhere; white-space:pre-wrap }
.turn.cited { border-color:var(--accent) } .turn b { font-weight:500; color:var(--quiet); margin-right:6px }
details > summary { cursor:pointer } details.block { margin:8px 0 } .says { max-width:90ch }
`;

const header = ({ name, files, analyst, conversations, notes, madeAt }: Analysis): Markup => {
  const { total, failed, passed, tokens } = conversations;
  return markup`<h1>${name}</h1>
<p class="quiet">Capabilities that an agent lacks, found in conversations that it had.</p>
<dl><dt>Conversations</dt><dd>${wholeNumber(total)}: ${wholeNumber(failed)} failed, ${wholeNumber(passed)} passed; about ${wholeNumber(tokens)} tokens</dd>
<dt>Files</dt>${files.map((file) => markup`<dd>${shown(file)}</dd>`)}
<dt>Analyst</dt><dd>${shown(analyst.model)} (analyst ${analyst.kind}, version ${analyst.version})</dd>
<dt>Made</dt><dd>${madeAt}</dd>
${notes.length > 0 && markup`<dt>Notes</dt>${notes.map((note) => markup`<dd>${shown(note)}</dd>`)}`}</dl>`;
};

const decimal = (value: number): string => value.toFixed(2);
const meanStd = ({ mean, std }: { mean: number; std: number }): string => `${decimal(mean)} ± ${decimal(std)}`;

const summary = ({
  capabilities,
  rule,
  passes,
  failedPasses,
  reason,
}: Analysis): Markup => markup`<p>Each of ${passes} passes labels every
conversation for every candidate. Cov is the share of the failures that lack it; Delta, how much more often failures lack it than passed
conversations do. A pass votes for a candidate if Cov ≥ ${decimal(rule.rho)} and Delta ≥ ${decimal(rule.delta)}; ${rule.votes} votes select it. Agreement is
Krippendorff's alpha of the passes: 1 is perfect, 0 is chance.</p>
${failedPasses.map(({ pass, reason: why }) => markup`<p class="bad">Pass ${pass + 1} failed and is left out: ${shown(why)}</p>`)}
${reason !== undefined && markup`<p class="bad">Nothing is selected: ${shown(reason)}.</p>`}
${
  capabilities.length > 0 &&
  table({
    head: ['capability', 'selected', 'votes', 'Cov', 'Delta', 'agreement', 'failures', 'definition'],
    rows: capabilities.map((c) => [
      markup`<a href="#${c.name}">${c.name}</a>`,
      c.selected ? 'yes' : 'no',
      `${c.votes} of ${c.passes}`,
      meanStd(c.coverage),
      meanStd(c.delta),
      c.agreement === undefined ? '–' : decimal(c.agreement),
      String(c.lacking.length),
      shown(c.definition),
    ]),
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
      return markup`<li><a href="#failure-${failure.conversation}">${shown(failure.conversation)}</a> (${own?.votes ?? 0} of ${own?.passes ?? 0} passes${at}): ${shown(says?.reason ?? '')}</li>`;
    });
  return markup`<h3 id="${name}">${name}${!selected && ' (not selected)'}</h3>
<p>${shown(definition)}</p>
${citations.map((cited) => citedView(cited))}
${views.length > 0 && markup`<details class="block"><summary>Failed conversations that lack it, as most passes say (${views.length})</summary><ul>${views}</ul></details>`}`;
}

const faults = ({ faults: found }: Analysis): Markup | undefined =>
  found.length === 0
    ? undefined
    : markup`<h2>Faults of the environment and of users</h2>
<p class="small quiet">What failed here for no fault of the agent's: it becomes no capability.</p>
${found.map(({ of, what, citations }) => markup`<h3>${of === 'user' ? 'the user' : 'the environment'}</h3><p>${shown(what)}</p>${citations.map((cited) => citedView(cited))}`)}`;

const costs = ({ spent, analyst }: Analysis): Markup => markup`<h2>Cost</h2>
<p>${spent.length === 0 ? 'Nothing was paid for under this name.' : `Asked of ${shown(analyst.model)} under this name so far: ${costText(sumOf(spent))}.`}</p>
${spent.length > 0 && table({ head: ['step', 'cost'], rows: spent.map(({ step, ...cost }) => [shown(step), costText(cost)]) })}`;
