/** The sections on training, routing, the run itself and what language models cost. */
import type { Cost as Sum } from '../../domain/endpoints';
import { BEST_BY } from '../../domain/results';
import { purposeNames } from '../../domain/rollout';
import { hintsText, noSumsText } from '../adapters';
import type { ReportedTraining } from '../capability-model';
import { dollarsText, duration, MISSING, percent, wholeNumber } from '../format';
import type { Report } from '../model';
import type { Mark, Plot } from '../plots';
import { type Block, note, paragraph, type Section, table } from '../section';
import { figureTitle } from './report';

const CURVES =
  'Lines: mean reward of the training rollouts by step, and the same by branch of the instances, where there are branches. Marks: held-out mean reward of the iterations, with its interval; the large filled one is the best and was kept. ' +
  `What picks it: ${BEST_BY}; of a baseline, among those within its budget. Held out are seeds of a capability’s own environment, and train tasks of the target for a baseline or what trains on several environments mixed. Rewards of different environments do not compare.`;
const HINTED =
  'Where it was trained with hints, the lines count these rollouts, too, and lie above what the policy does alone; held-out rollouts are never hinted.';

export function trainingSections({ capabilities = [], arms = [] }: Report): Section[] {
  const runs = [...capabilities, ...arms].flatMap(({ name, training, ...row }) =>
    training ? [{ name, training, seeds: 'validation' in row ? row.validation?.synthesized : undefined }] : [],
  );
  const high = Math.max(1, ...runs.map((run) => run.training.steps));
  const hinted = runs.some(({ training }) => training.hints !== undefined);
  return [
    { title: 'Training', on: 'page', blocks: [runs.length > 0 && note([CURVES, hinted ? HINTED : undefined])] },
    ...runs.map(({ name, training, seeds }): Section => ({
      title: [name, hintsText(training)].filter(Boolean).join(', '),
      level: 3,
      on: 'page',
      blocks: [
        { kind: 'plot', plot: trainingPlot(name, training, high), from: training.rewardCurve?.from },
        paragraph(['trained to', training.rollouts, 'rollouts']),
        seeds && paragraph(['held-out seeds, before', seeds.before, 'after', seeds.after]),
      ],
    })),
    {
      title: 'Iterations',
      level: 3,
      on: 'page',
      blocks: [
        table(
          ['training', 'step', 'training rollouts', 'held-out success', 'held-out mean reward', 'by branch', 'best'],
          runs.flatMap(({ name, training: { iterations, bestStep } }) =>
            iterations.map(({ step, rollouts, successRate, meanReward, branches = [] }) => [
              name,
              `${step}`,
              rollouts,
              successRate,
              meanReward,
              branches.flatMap((one) => ['\n', one.branch, one.successRate]),
              step === bestStep ? 'best' : '',
            ]),
          ),
        ),
      ],
    },
  ];
}

/** All runs of a report are drawn on the same scales: rewards 0 to 1, steps 0 to `high`. */
export function trainingPlot(name: string, training: ReportedTraining, high: number): Plot {
  const { rewardCurve, iterations, bestStep } = training;
  const pointsOf = (points: readonly { step: number; reward: number }[] = []) =>
    points.map(({ step, reward }) => ({ x: step, y: reward }));
  return {
    kind: 'lines',
    label: `Reward by step of ${name}`,
    width: 380,
    height: 180,
    x: { label: 'step', high },
    y: { high: 1 },
    lines: [
      { name: rewardCurve ? 'training rollouts' : 'no trainer ran', points: pointsOf(rewardCurve?.points) },
      ...(rewardCurve?.branches ?? []).map(({ branch, points }) => ({ name: branch, points: pointsOf(points) })),
    ],
    marks: iterations.flatMap(({ step, meanReward }): Mark[] => {
      if (meanReward.value === null) return [];
      const { interval } = meanReward;
      const best = step === bestStep;
      const title = figureTitle(`held-out mean reward at step ${step}`, meanReward);
      const mark: Mark = { x: step, y: meanReward.value, low: interval?.low, high: interval?.high, line: 0, title };
      return [best ? { ...mark, size: 'large' } : { ...mark, open: true }];
    }),
  };
}

const FORMS =
  'All forms on the same folds of the train split. constant: the best single option, chosen within the folds. Another form is kept only if its gain over constant is more than that of the best form in each of 19 shuffles of the outcomes over the texts.';

export function routerSections({ router, capabilities }: Report): Section[] {
  if (router === undefined) return [];
  const { crossValidation: cv, choices = [], errors, regret, latency, constant } = router;
  const noSums = noSumsText(router, capabilities);
  const everything = constant === undefined ? '' : `, gives every conversation to ${constant}`;
  const forms = cv.forms?.map(({ form, successRate, kept }) => [`${form}${kept ? ', kept' : ''}`, successRate]);
  const probable = choices.some(({ probability }) => probability !== undefined);
  return [
    {
      title: 'Router',
      on: 'page',
      blocks: [
        paragraph(
          `Kind: ${router.kind}${everything}. In cross-validation on the train split it ${router.helps ? 'helps' : 'does not help'}.`,
        ),
        noSums !== undefined && paragraph(`No adapters were added up: ${noSums}.`),
        table(
          ['policy', 'cross-validated success'],
          [
            ...(forms ?? [['routed', cv.routed]]),
            [`best single: ${cv.bestSingle.option}`, cv.bestSingle.successRate],
            ['base', cv.base],
            ['union ceiling', cv.unionCeiling],
          ],
        ),
        forms && note(FORMS),
      ],
    },
    {
      title: 'Choices on the test split',
      level: 3,
      on: 'page',
      blocks: [
        table(
          ['option', 'share of conversations', 'success of these', ...(probable ? ['mean probability'] : [])],
          choices.map(({ option, share, successRate, probability }) => [
            option,
            share,
            successRate ?? MISSING,
            ...(probable ? [probability ?? MISSING] : []),
          ]),
        ),
        regret &&
          paragraph([
            'Regret: what the best option for every test task would have gained over the routed policy',
            regret,
          ]),
        latency && paragraph(['Choosing takes, median of a conversation', latency]),
        errors && paragraph(['Test rollouts that broke because the router could not choose:', errors]),
      ],
    },
  ];
}

export function runSections({ rollouts, leakage, cost }: Report): Section[] {
  const { rollout, training } = cost?.secondsPerRollout ?? {};
  const seconds = (name: string, value: number | undefined): string[][] =>
    value === undefined ? [] : [[name, `${value.toPrecision(2)} s`]];
  const spent = cost?.languageModel;
  return [
    {
      title: 'The run',
      on: 'page',
      blocks: [
        rollouts &&
          table(
            ['rollouts', 'scored', 'broken', 'prompt tokens', 'completion tokens'],
            [
              ...rollouts.byPurpose.map(({ purpose, scored, broken, promptTokens, completionTokens }) => [
                ...[purposeNames[purpose], scored, broken, promptTokens ?? MISSING, completionTokens ?? MISSING],
              ]),
              ['all', rollouts.scored, rollouts.broken, cost?.promptTokens, cost?.completionTokens],
              ...rollouts.brokenByError.map(({ errorType, task, message, rollouts: broken }) => [
                `broken by ${errorType}, as at task ${task}: ${message}`,
                '',
                broken,
              ]),
            ],
          ),
        ...(leakage ? leakageBlocks(leakage) : []),
        cost &&
          table(
            ['cost', ''],
            [
              ...cost.wallSeconds.map((one) => [`wall time, ${one.stage}`, duration(one.seconds)]),
              ['wall time, sum of the stages', duration(cost.wallSeconds.reduce((sum, one) => sum + one.seconds, 0))],
              ...seconds('wall time of a rollout that was played', rollout),
              ...seconds('wall time of a training rollout with its gradient', training),
              ['rollouts', cost.rollouts],
            ],
          ),
      ],
    },
    {
      title: 'Language models',
      level: 3,
      blocks: spent
        ? [
            paragraph(`language models: ${spentText(spent)}`),
            { ...languageModelTable(spent), on: 'page' },
            note(
              'What analyst, synthesizer and arms asked, and what the users and judges of rollouts said, as the endpoints count it; a reply or a rollout that was kept is paid for once. These numbers have no lineage.',
            ),
          ]
        : [],
    },
  ];
}

const leakageBlocks = ({
  passed,
  textsChecked,
  testTasks,
  seedsLeftOut,
  hits,
  from,
}: NonNullable<Report['leakage']>) => [
  paragraph(
    [
      `Leakage check: ${passed ? 'passed' : 'failed'}, ${textsChecked} texts against ${testTasks} test tasks`,
      seedsLeftOut > 0
        ? `; ${seedsLeftOut} seeds were not used, since one of a pair says a test task’s text`
        : undefined,
      { lineage: from },
    ],
    passed ? undefined : 'bad',
  ),
  ...hits.map((hit): Block => paragraph(`${hit.where} contains the text of ${hit.task}`, 'bad')),
];

type LanguageModelCost = NonNullable<NonNullable<Report['cost']>['languageModel']>;

/** The steps of each role, with their sum where there are several. */
export function languageModelTable({ roles, steps, total }: LanguageModelCost): Block {
  const row = (who: string, step: string, sum: Sum): string[] => [
    ...[who, step],
    ...[sum.requests, sum.promptTokens, sum.cachedTokens, sum.completionTokens].map(wholeNumber),
    [dollarsText(sum.dollars), ...unpricedText(sum)].join(', '),
  ];
  const rows = [undefined, ...roles].flatMap((sum) => {
    const own = steps.filter(({ role }) => role === sum?.role);
    const ofSteps = own.map(({ role = '', step, ...one }) => row(role, step, one));
    return sum && own.length > 1 ? [...ofSteps, row(sum.role, 'all', sum)] : ofSteps;
  });
  return table(
    ['who', 'step', 'requests', 'prompt tokens', 'of them cached', 'completion tokens', 'dollars'],
    [...rows, row('all', '', total)],
  );
}

const unpricedText = ({ unpriced = 0, requests }: Sum): string[] =>
  unpriced === 0 ? [] : [`${wholeNumber(unpriced)} of ${wholeNumber(requests)} requests without a price`];

/** `132 requests, 1,204,000 tokens of 5,000,000 (24.1%), $1.23 of $10.00 (12.3%): analyst $1.00, user $0.23`. */
export function spentText({ roles, total, budget }: LanguageModelCost): string {
  const tokensOf = ({ promptTokens, completionTokens }: Sum): number => promptTokens + completionTokens;
  const against = (spent: number | undefined, limit: number | undefined, text: (n: number) => string): string =>
    limit === undefined ? '' : ` of ${text(limit)}${spent === undefined ? '' : ` (${percent(spent / limit)})`}`;
  const ofRole = (sum: Sum): string =>
    sum.dollars === undefined ? `${wholeNumber(tokensOf(sum))} tokens` : dollarsText(sum.dollars);
  const priced = total.dollars !== undefined || budget.dollars !== undefined;
  const all = [
    `${wholeNumber(total.requests)} requests`,
    `${wholeNumber(tokensOf(total))} tokens${against(tokensOf(total), budget.tokens, wholeNumber)}`,
    ...(priced ? [dollarsText(total.dollars) + against(total.dollars, budget.dollars, dollarsText)] : []),
    ...unpricedText(total),
  ].join(', ');
  return roles.length > 1 ? `${all}: ${roles.map(({ role, ...sum }) => `${role} ${ofRole(sum)}`).join(', ')}` : all;
}
