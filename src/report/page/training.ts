/** The page's sections on training, routing, the run itself and what language models cost. Absent parts give nothing. */
import type { Figure } from '../../domain/figure';
import { hintsText, noSumsText } from '../adapters';
import { purposeNames } from '../../domain/rollout';
import type { Report } from '../model';
import { BEST_BY } from '../../domain/results';
import { figureView, longText, markup, type Markup, sourceView, table } from './blocks';
import { duration } from '../format';
import { rewardCurve } from './plots';
import { languageModelRows, spentText } from '../words';

type Cost = NonNullable<Report['cost']>;

export const trainingSection = ({ capabilities = [], arms = [], campaign }: Report): Markup | undefined => {
  const runs = [...capabilities, ...arms].flatMap(({ name, training, ...row }) =>
    training === undefined ? [] : [{ name, training, validation: 'validation' in row ? row.validation : undefined }],
  );
  if (runs.length === 0) return undefined;
  const maxStep = Math.max(1, ...runs.map((run) => run.training.steps));
  const view = (figure: Figure): Markup => figureView({ figure, campaign: campaign.name });
  return markup`<h2>Training</h2>
<p class="small quiet">Line: mean reward of the training rollouts by step; thin lines: the same by branch of the instances, where there are
branches. ${runs.some(({ training }) => hintsText(training) !== undefined) && 'Where it was trained with hints, the lines count these rollouts, too, and lie above what the policy does alone; held-out rollouts are never hinted. '}Dots: held-out mean reward of the iterations, with its interval;
the filled one is the best and was kept. What picks it: ${BEST_BY}; of a baseline, among those within its budget. Held out are seeds of
a capability’s own environment, and train tasks of the target for a baseline or what trains on several environments mixed. All plots share their scales; rewards of different
environments do not compare.</p>
<div class="runs">${runs.map(
    ({ name, training, validation }) => markup`<div><h3>${[name, hintsText(training)].filter(Boolean).join(', ')}</h3>
${rewardCurve({ name, training, maxStep, campaign: campaign.name })}
<div class="small">trained to ${view(training.rollouts)} rollouts</div>
${validation !== undefined && markup`<div class="small">held-out seeds, before ${view(validation.synthesized.before)}</div><div class="small">after ${view(validation.synthesized.after)}</div>`}
${training.rewardCurve !== undefined && markup`<div class="small quiet">metrics ${sourceView({ from: training.rewardCurve.from, campaign: campaign.name })}</div>`}</div>`,
  )}</div>
<h3>Iterations</h3>${table({
    head: [
      'training',
      'step',
      'training rollouts',
      'held-out success',
      'held-out mean reward',
      'held-out success by branch',
      'best',
    ],
    rows: runs.flatMap(({ name, training }) =>
      training.iterations.map((one) => [
        name,
        String(one.step),
        view(one.rollouts),
        view(one.successRate),
        view(one.meanReward),
        markup`${one.branches?.map(({ branch, successRate }) => markup`<div>${branch} ${view(successRate)}</div>`)}`,
        one.step === training.bestStep ? 'best' : '',
      ]),
    ),
  })}`;
};

const FORMS =
  'All forms on the same folds of the train split. constant: the best single option, chosen within the folds. Another form is kept only if its gain over constant is more than that of the best form in each of 19 shuffles of the outcomes over the texts.';

export const routerSection = ({ router, capabilities, campaign }: Report): Markup | undefined => {
  if (router === undefined) return undefined;
  const { crossValidation, choices, errors, regret, latency } = router;
  const noSums = noSumsText(router, capabilities);
  const probable = choices?.some(({ probability }) => probability !== undefined);
  const view = (figure: Figure): Markup => figureView({ figure, campaign: campaign.name });
  return markup`<h2>Router</h2><p>Kind: ${router.kind}${router.constant !== undefined && `, gives every conversation to ${router.constant}`}. In cross-validation on the train split it ${router.helps ? 'helps' : 'does not help'}.</p>
${noSums !== undefined && markup`<p>No adapters were added up: ${noSums}.</p>`}
${table({
  head: ['policy', 'cross-validated success'],
  rows: [
    ...(crossValidation.forms?.map(({ form, successRate, kept }) => [
      `${form}${kept ? ', kept' : ''}`,
      view(successRate),
    ]) ?? [['routed', view(crossValidation.routed)]]),
    [`best single: ${crossValidation.bestSingle.option}`, view(crossValidation.bestSingle.successRate)],
    ['base', view(crossValidation.base)],
    ['union ceiling', view(crossValidation.unionCeiling)],
  ],
})}
${crossValidation.forms !== undefined && markup`<p class="small quiet">${FORMS}</p>`}
${
  choices !== undefined &&
  markup`<h3>Choices on the test split</h3>${table({
    head: ['option', 'share of conversations', 'success of these', ...(probable ? ['mean probability'] : [])],
    rows: choices.map(({ option, share, successRate, probability }) => [
      option,
      view(share),
      successRate && view(successRate),
      ...(probable ? [probability && view(probability)] : []),
    ]),
  })}`
}
${regret !== undefined && markup`<div>Regret: what the best option for every test task would have gained over the routed policy ${view(regret)}</div>`}
${latency !== undefined && markup`<div>Choosing takes, median of a conversation ${view(latency)}</div>`}
${errors !== undefined && markup`<div>Test rollouts that broke because the router could not choose: ${view(errors)}</div>`}`;
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
        purposeNames[p.purpose],
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
        markup`<span class="quiet">broken by ${e.errorType}, as at task ${e.task}: ${longText(e.message)}</span>`,
        '',
        view(e.rollouts),
      ]),
    ],
  })
}
${
  leakage !== undefined &&
  markup`<p${!leakage.passed && markup` class="bad"`}>Leakage check: ${leakage.passed ? 'passed' : 'failed'}, ${leakage.textsChecked} texts
against ${leakage.testTasks} test tasks${leakage.seedsLeftOut > 0 && `; ${leakage.seedsLeftOut} seeds were not used, since one of a pair says a test task’s text`}. ${sourceView({ from: leakage.from, campaign: campaign.name })}</p>${leakage.hits.map(
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
      ...perRolloutRows(cost.secondsPerRollout),
      ['rollouts', view(cost.rollouts)],
    ],
  })
}
${languageModelSection(cost)}`;
};

const perRolloutRows = ({ rollout, training }: NonNullable<Cost['secondsPerRollout']> = {}): string[][] =>
  [
    ['wall time of a rollout that was played', rollout] as const,
    ['wall time of a training rollout with its gradient', training] as const,
  ].flatMap(([what, seconds]) => (seconds === undefined ? [] : [[what, `${seconds.toPrecision(2)} s`]]));

const languageModelSection = (cost: Report['cost']): Markup | undefined => {
  const spent = cost?.languageModel;
  if (spent === undefined) return undefined;
  return markup`<h3>Language models</h3>
<p class="small">${spentText(spent)}</p>
${table(languageModelRows(spent))}
<p class="small quiet">What analyst, synthesizer and arms asked, and what the users and judges of rollouts said, as the endpoints count it; a reply
or a rollout that was kept is paid for once. These numbers have no lineage.</p>`;
};
