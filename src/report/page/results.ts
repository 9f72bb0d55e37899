/** The page's sections on what came out: the verdict, the arms on test tasks, by group and task by task, the base model. Absent parts give nothing. */
import type { Figure } from '../../domain/figure';
import type { Arm, Report } from '../model';
import { figureView, markup, type Markup, plotFigure, sourceView, table } from './blocks';
import { foldSums, lineageCommand, MISSING, wholeNumber } from '../format';
import { armsPlot, solverMatrixPlot } from './plots';
import { TEST, testText } from '../recommendation';
import { evaluatedAt, groupsTable, type Measure } from '../words';
import { episodeView } from './capabilities';

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

export const armsSection = ({ arms, budget, comparisons = [], campaign }: Report): Markup | undefined => {
  if (arms === undefined) return undefined;
  const view = (figure: Figure | undefined): Markup => figureView({ figure, campaign: campaign.name });
  const { shown, folded } = foldSums(arms);
  const bound = arms.some(({ role }) => role === 'bound');
  return markup`<h2>Arms on test tasks</h2>
${plotFigure({
  body: armsPlot({ arms: shown, campaign: campaign.name }),
  caption: `Share of test tasks solved, with its interval.${bound ? ' The diamond is a bound, not a policy: tasks that any of the router’s options alone solves.' : ''}`,
  campaign: campaign.name,
})}
${armsTable(shown, view)}
${folded.length > 0 && markup`<details class="seen"><summary>${folded.length} more sums of adapters</summary>${armsTable(folded, view)}</details>`}
<p class="small quiet">Training rollouts: those spent to choose what is evaluated from, for a baseline within what the adapters spent together. Held out: train tasks of the target that nothing trained on. All rollouts: whatever was rolled out to come to it, that is training,
calibration and held-out evaluations, and for the routed policy also base rollouts and the router’s outcome matrix. Test rollouts are
nobody’s.</p>
${
  comparisons.length > 0 &&
  markup`<h3>Paired differences between arms</h3>${table({
    head: ['arm', 'minus', 'difference', 'on single tasks', 'over trainings too', 'standing'],
    rows: comparisons.map(({ arm, against, difference, acrossTrainings, standing }) => [
      arm,
      against,
      view(difference),
      testText(difference),
      view(acrossTrainings),
      standing.replace('_', ' '),
    ]),
  })}<p class="small quiet">p: ${TEST}.</p>`
}
${budget !== undefined && markup`<div class="small">training rollouts of all adapters, trained to their last step: what baselines are held to ${view(budget)}</div>`}
${endings(arms, view)}`;
};

type View = (figure: Figure | undefined) => Markup;

const armsTable = (arms: readonly Arm[], view: View): Markup =>
  table({
    head: [
      'arm',
      'what',
      'training rollouts',
      'all rollouts',
      'tasks × trials',
      'held out',
      'success',
      'difference to base',
      'status',
    ],
    rows: arms.map((arm) => [
      arm.name,
      whatIs(arm),
      training(arm, view),
      view(arm.allRollouts),
      `${arm.tasks} × ${arm.trials}`,
      view(arm.heldOut),
      view(arm.successRate),
      view(arm.differenceToBase),
      arm.status === 'failed' ? markup`<span class="bad">failed: ${arm.reason}</span>` : 'evaluated',
    ]),
  });

const whatIs = ({ role, kind, routable, conversations, sameAs, builtOn = [] }: Arm): Markup => {
  const more = `${conversations === undefined ? '' : `, ${conversations} conversations`}${routable ? ', routable' : ''}`;
  const of = builtOn.length > 0 && markup`<div class="quiet small">of ${builtOn.join(', ')}</div>`;
  const same = sameAs !== undefined && markup`<div class="quiet small">the same policy as ${sameAs}</div>`;
  return markup`${role === 'baseline' ? `baseline ${kind ?? ''}${more}` : role}${of}${same}`;
};

const training = (arm: Arm, view: View): Markup => {
  const at = evaluatedAt(arm);
  return markup`${view(arm.trainingRollouts)}${at !== undefined && markup`<div class="quiet small">${at}</div>${arm.evaluatedRollouts && view(arm.evaluatedRollouts)}${arm.trainedTo && view(arm.trainedTo)}`}`;
};

const endings = (arms: readonly Arm[], view: View): Markup | undefined => {
  const ended = arms.flatMap(({ name, stopReasons }) => (stopReasons === undefined ? [] : [{ name, stopReasons }]));
  const reasons = [...new Set(ended.flatMap(({ stopReasons }) => stopReasons.map(({ reason }) => reason)))];
  if (reasons.length === 0) return undefined;
  return markup`<h3>Why test rollouts ended</h3>${table({
    head: ['arm', ...reasons.map((reason) => reason.replaceAll('_', ' '))],
    rows: ended.map(({ name, stopReasons }) => [
      name,
      ...reasons.map((reason) => view(stopReasons.find((one) => one.reason === reason)?.rollouts)),
    ]),
  })}`;
};

export const groupsSection = (report: Report): Markup | undefined => {
  const { groups, published, campaign } = report;
  if (groups === undefined) return undefined;
  const cellOf = (figure: Figure | undefined, measure: Measure): Markup => {
    const view = figureView({ figure, campaign: campaign.name });
    return figure && measure === 'successRate' ? markup`${view}${solvedCount(figure)}` : view;
  };
  const tableOf = (measure: Measure): Markup => {
    const { head, ours, published: theirs } = groupsTable(report, measure);
    return table({
      head: ['arm', ...head],
      rows: [
        ...ours.map(({ arm, cells }) => [arm, ...cells.map((figure) => cellOf(figure, measure))]),
        ...theirs.map(({ arm, cells }) =>
          [`${arm} (published, other run)`, ...cells.map((text) => text ?? MISSING)].map(
            (text) => markup`<span class="quiet">${text}</span>`,
          ),
        ),
      ],
    });
  };
  const { name, version } = campaign.target;
  return markup`<h2>Test tasks by group</h2>
<p class="small">Scored by ${name} ${version}.${
    published !== undefined &&
    ` Rows marked as published are from ${published.source} (${published.setUp}), over as many tasks as they say; nothing of them was measured here.`
  }</p>
<h3>Solved: tasks with reward 1</h3>${tableOf('successRate')}
<h3>Mean reward</h3>${tableOf('meanReward')}`;
};

/** `22 of 50`; with several trials the mean over them, `22.3 of 50`. */
const solvedCount = ({ value, n }: Figure): Markup | undefined =>
  value === null
    ? undefined
    : markup`<div class="quiet small">${`${Number((value * n).toFixed(1))} of ${String(n)}`}</div>`;

export const baseSection = ({ base, campaign }: Report): Markup | undefined => {
  if (base === undefined) return undefined;
  const { successRate, meanReward, groups = [], conversations } = base;
  const view = (figure: typeof successRate | undefined): Markup => figureView({ figure, campaign: campaign.name });
  const all = ['train tasks', wholeNumber(successRate.n), view(successRate), view(meanReward)];
  const rows = groups.map(({ group, tasks, arms: [one] }) => [
    group,
    wholeNumber(tasks),
    view(one?.successRate),
    view(one?.meanReward),
  ]);
  return markup`<h2>Base model</h2>
${table({ head: ['base rollouts', 'tasks', 'solved', 'mean reward'], rows: [all, ...rows] })}
${conversations.map(episodeView)}`;
};
