/** The page's sections on environments, training, routing and the run itself. Absent parts give nothing. */
import type { Figure } from '../domain/figure';
import type { Report, ReportedCapability } from '../domain/report';
import { figureView, sourceView } from './figure-view';
import { duration } from './format';
import { markup, type Markup } from './markup';
import { calibrationPlot } from './plots/calibration';
import { rewardCurve } from './plots/reward-curve';
import { routerPlot } from './plots/router';
import { plotFigure, table } from './sections';

const ended = ({ status }: ReportedCapability): string => (status ?? 'not finished').replace('_', ' ');

export const capabilitiesSection = ({ capabilities, bands, campaign }: Report): Markup | undefined => {
  if (capabilities === undefined || capabilities.length === 0) return undefined;
  const view = (figure: Figure | undefined): Markup => figureView({ figure, campaign: campaign.name });
  const calibrated = capabilities.some((c) => c.calibration !== undefined);
  return markup`<h2>Capabilities</h2>
${table({
  head: [
    'capability',
    'status',
    'helps',
    'rounds',
    'self-test',
    'target before',
    'target after',
    'difference',
    'reason',
  ],
  rows: capabilities.map((c) => [
    markup`${c.name}${c.adapter !== undefined && markup`<div class="quiet">adapter ${sourceView({ from: [c.adapter], campaign: campaign.name })}</div>`}`,
    ended(c),
    c.validation === undefined ? '–' : c.validation.helps ? 'yes' : 'no',
    c.rounds === undefined ? '–' : String(c.rounds.length),
    c.selfTest === undefined ? '–' : c.selfTest.passed ? 'passed' : markup`<span class="bad">failed</span>`,
    view(c.validation?.target.before),
    view(c.validation?.target.after),
    view(c.validation?.target.difference),
    [c.reason, ...(c.selfTest?.findings ?? [])].filter((t) => t !== undefined).join('; '),
  ]),
})}
${
  bands !== undefined &&
  calibrated &&
  markup`<h2>Calibration</h2>${plotFigure({
    body: calibrationPlot({ capabilities, bands, campaign: campaign.name }),
    caption:
      'Base model on each synthesized environment. Shaded: accepted; small open dots: earlier rounds; filled: the round that was kept (red: outside).',
    campaign: campaign.name,
  })}${calibrationTable({ capabilities, campaign: campaign.name })}`
}`;
};

const calibrationTable = ({
  capabilities,
  campaign,
}: {
  capabilities: readonly ReportedCapability[];
  campaign: string;
}): Markup =>
  table({
    head: ['capability', 'round', 'verdict', 'mean reward', 'success', 'informative', 'pass@k', 'reasons'],
    rows: capabilities.flatMap(({ name, calibration: kept }) =>
      kept === undefined
        ? []
        : [
            [
              name,
              String(kept.round),
              kept.verdict.replaceAll('_', ' '),
              figureView({ figure: kept.meanReward, campaign }),
              figureView({ figure: kept.successRate, campaign }),
              figureView({ figure: kept.informative, campaign }),
              markup`${Object.entries(kept.passAt).map(([k, figure]) => markup`<div>@${k} ${figureView({ figure, campaign })}</div>`)}`,
              kept.reasons.join('; '),
            ],
          ],
    ),
  });

export const trainingSection = ({ capabilities = [], arms = [], campaign }: Report): Markup | undefined => {
  const runs = [...capabilities, ...arms].flatMap(({ name, training, ...row }) =>
    training === undefined ? [] : [{ name, training, validation: 'validation' in row ? row.validation : undefined }],
  );
  if (runs.length === 0) return undefined;
  const maxStep = Math.max(1, ...runs.map((run) => run.training.steps));
  const view = (figure: Figure): Markup => figureView({ figure, campaign: campaign.name });
  return markup`<h2>Training</h2>
<p class="small quiet">Line: mean reward of the training rollouts by step. Dots: held-out reward at the checkpoints, with its interval; the
filled one is the best and was kept. All plots share their scales; rewards of different environments do not compare.</p>
<div class="runs">${runs.map(
    ({ name, training, validation }) => markup`<div><h3>${name}</h3>
${rewardCurve({ name, training, maxStep, campaign: campaign.name })}
<div class="small">training rollouts ${view(training.rollouts)}</div>
${validation !== undefined && markup`<div class="small">held-out seeds, before ${view(validation.synthesized.before)}</div><div class="small">after ${view(validation.synthesized.after)}</div>`}
<div class="small quiet">metrics ${sourceView({ from: training.rewardCurve.from, campaign: campaign.name })}</div></div>`,
  )}</div>`;
};

export const routerSection = ({ router, campaign }: Report): Markup | undefined => {
  if (router === undefined) return undefined;
  const { crossValidation, choices, errors } = router;
  const view = (figure: Figure): Markup => figureView({ figure, campaign: campaign.name });
  return markup`<h2>Router</h2><p>Kind: ${router.kind}. In cross-validation on the train split it ${router.helps ? 'helps' : 'does not help'}.</p>
${table({
  head: ['policy', 'cross-validated success'],
  rows: [
    ['routed', view(crossValidation.routed)],
    [`best single: ${crossValidation.bestSingle.option}`, view(crossValidation.bestSingle.successRate)],
    ['base', view(crossValidation.base)],
    ['union ceiling', view(crossValidation.unionCeiling)],
  ],
})}
${choices !== undefined && markup`<h3>Choices on the test split</h3>${plotFigure({ body: routerPlot({ choices, campaign: campaign.name }), caption: '', campaign: campaign.name })}`}
${errors !== undefined && markup`<div>Conversations that could not be routed: ${view(errors)}</div>`}`;
};

export const runSection = ({ rollouts, leakage, cost, campaign }: Report): Markup | undefined => {
  if (rollouts === undefined && leakage === undefined && cost === undefined) return undefined;
  const view = (figure: Figure): Markup => figureView({ figure, campaign: campaign.name });
  return markup`<h2>The run</h2>
${
  rollouts !== undefined &&
  table({
    head: ['rollouts', 'scored', 'broken', 'prompt tokens', 'completion tokens'],
    rows: [
      ...rollouts.byPurpose.map((p) => [
        p.purpose,
        view(p.scored),
        view(p.broken),
        p.promptTokens && view(p.promptTokens),
        p.completionTokens && view(p.completionTokens),
      ]),
      [
        'all',
        view(rollouts.scored),
        view(rollouts.broken),
        cost && view(cost.promptTokens),
        cost && view(cost.completionTokens),
      ],
      ...rollouts.brokenByError.map((e) => [
        markup`<span class="quiet">broken by ${e.errorType}</span>`,
        '',
        view(e.rollouts),
      ]),
    ],
  })
}
${
  leakage !== undefined &&
  markup`<p${!leakage.passed && markup` class="bad"`}>Leakage check: ${leakage.passed ? 'passed' : 'failed'}, ${leakage.textsChecked} texts
against ${leakage.testTasks} test tasks. ${sourceView({ from: leakage.from, campaign: campaign.name })}</p>${leakage.hits.map(
    (hit) => markup`<p class="bad">${hit.where} contains the text of ${hit.task}</p>`,
  )}`
}
${
  cost !== undefined &&
  table({
    head: ['cost', ''],
    rows: [
      ...cost.wallSeconds.map(({ stage, seconds }) => [`wall time, ${stage}`, duration(seconds)]),
      ['wall time, sum of the stages', duration(cost.wallSeconds.reduce((sum, w) => sum + w.seconds, 0))],
      ['rollouts', view(cost.rollouts)],
    ],
  })
}`;
};
