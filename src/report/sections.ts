/** The page's sections before training: what came out, the solver matrix, the selection. Absent parts give nothing. */
import type { ArtifactRef } from '../domain/artifacts';
import type { Figure } from '../domain/figure';
import type { Report } from './model';
import { evidenceView } from './evidence-section';
import { figureView, sourceView } from './figure-view';
import { lineageCommand } from './format';
import { longText } from './long-text';
import { markup, type Markup } from './markup';
import { selectionPlot } from './plots/selection';
import { solverMatrixPlot } from './plots/solver-matrix';
import { AGREEMENT, failedPassesText, votesText } from './words';

type Cell = Markup | string | undefined;

/** A sum is called by its parts, and may be broken between them: a long name in the first column pushes the others off the page. */
const breakable = (cell: Cell): Cell | Markup[] =>
  typeof cell === 'string' ? cell.split('+').map((part, i) => markup`${i > 0 && markup`+<wbr>`}${part}`) : cell;

/** A table that scrolls when it is wider than the page. A cell in the last column may hold long text. */
export const table = ({ head, rows }: { head: string[]; rows: Cell[][] }): Markup =>
  markup`<div class="scroll"><table><tr>${head.map((h) => markup`<th>${h}</th>`)}</tr>${rows.map(
    (cells) =>
      markup`<tr>${cells.map((cell, i) => markup`<td${i === head.length - 1 && markup` class="wrap"`}>${i === 0 ? breakable(cell) : cell}</td>`)}</tr>`,
  )}</table></div>`;

/** A plot that scrolls when it is wider than the page, with what it shows and where it is from. */
export const plotFigure = (plot: {
  body: Markup;
  caption: string;
  from?: readonly ArtifactRef[];
  campaign: string;
}): Markup =>
  markup`<figure><div class="scroll">${plot.body}</div><figcaption>${plot.caption} ${
    plot.from !== undefined && sourceView({ from: plot.from, campaign: plot.campaign })
  }</figcaption></figure>`;

const statusWords = {
  running: 'running',
  stopped_at_stage: 'stopped after a stage',
  completed: 'completed',
  failed: 'failed',
} as const;

export const headerSection = ({ campaign, baseCheck }: Report): Markup => markup`<h1>${campaign.name}</h1>
<p class="quiet">Campaign on ${campaign.target.name} ${campaign.target.version}, seed ${campaign.seed}${campaign.trainingSeed !== undefined && `, training seed ${campaign.trainingSeed}`}:
${statusWords[campaign.status]}, stage ${campaign.stage}</p>
${(campaign.target.notes ?? []).map((note) => markup`<p>Of the target: ${note}</p>`)}
<dl><dt>Base model</dt><dd>${campaign.baseModel}</dd><dt>Config</dt><dd><code>${campaign.configSha256}</code></dd>
<dt>Started</dt><dd>${campaign.startedAt}</dd>${campaign.finishedAt !== undefined && markup`<dt>Finished</dt><dd>${campaign.finishedAt}</dd>`}
${campaign.workflowId !== undefined && markup`<dt>Workflow</dt><dd><code>${campaign.workflowId}</code></dd>`}
${campaign.reason !== undefined && markup`<dt>Reason</dt><dd class="bad">${campaign.reason}</dd>`}
${baseCheck !== undefined && markup`<dt>Base rollouts</dt>${baseCheck.findings.map((finding) => markup`<dd class="bad">${finding}</dd>`)}<dd>${sourceView({ from: baseCheck.from, campaign: campaign.name })}</dd>`}</dl>`;

export const verdictSection = ({ verdict, campaign }: Report): Markup => markup`<h2>Verdict</h2>
<p class="small quiet">Computed from the figures below by fixed rules. A difference counts only if its interval excludes zero, which is where its p is below 1 minus the level: both are of one test.</p>
<ul class="verdict">${verdict.map(
  ({ text, behind }) =>
    markup`<li>${text} ${behind.map(
      (start) =>
        markup`<code title="${lineageCommand({ start, campaign: campaign.name })}">${/^[0-9a-f]{64}$/.test(start) ? start.slice(0, 8) : start}</code> `,
    )}</li>`,
)}</ul>`;

export const solverMatrixSection = ({ solverMatrix, arms = [], campaign }: Report): Markup | undefined => {
  if (solverMatrix === undefined) return undefined;
  const { inline, from, tasks } = solverMatrix;
  return markup`<h2>Solver matrix</h2>${
    inline === undefined
      ? markup`<p>${tasks} tasks: too many to draw; the whole matrix is artifact ${sourceView({ from: [from], campaign: campaign.name })}</p>`
      : plotFigure({
          body: solverMatrixPlot({ matrix: inline, arms }),
          caption:
            'One column a test task, filled where the option solves it (lighter: in some of its trials; red: no scored rollout).',
          from: [from],
          campaign: campaign.name,
        })
  }`;
};

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
${
  selection.passes > 0 &&
  plotFigure({
    body: selectionPlot({ candidates, rule, campaign: campaign.name }),
    caption:
      'Mean over the passes with one standard deviation each way; filled: selected. Both thresholds are met in the shaded area.',
    from: selection.from,
    campaign: campaign.name,
  })
}
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
