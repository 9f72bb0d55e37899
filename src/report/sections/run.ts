/** The sections on training, routing, the run itself and what language models cost. */
import type { Cost as Sum } from '../../domain/endpoints';
import { BEST_BY } from '../../domain/results';
import { purposeNames } from '../../domain/rollout';
import { CHOSE } from '../adapters';
import type { ReportedTraining } from '../capability-model';
import { dollarsText, duration, figureTitle, percent, wholeNumber } from '../format';
import type { Report } from '../model';
import type { Mark, Plot } from '../plots';
import { type Block, type Blocks, details, grid, heading, type Line, note, paragraph, plot, table } from '../blocks';

const CURVES =
  'Lines: mean reward of the training rollouts by step, and the same by branch of the instances, where there are branches. Marks: held-out mean reward of the iterations, with its interval; the large filled one is the best and was kept. ' +
  `What picks it: ${BEST_BY}; of a baseline, among those within its budget. Held out are seeds of a capability’s own environment, and train tasks of the target for a baseline. Rewards of different environments do not compare.`;

const IN_PIECES =
  'training rows a rollout, where one is enough: the chat template renders earlier turns otherwise than they were sampled, and each row computes all before it again. A vLLM that is started with --enable-scale-out continues them as they were sampled.';

export function trainingBlocks({ capabilities = [], arms = [] }: Report): Blocks {
  const runs = [...capabilities, ...arms].flatMap(({ name, training, ...row }) =>
    training ? [{ name, training, seeds: 'validation' in row ? row.validation : undefined }] : [],
  );
  const high = Math.max(1, ...runs.map((run) => run.training.steps));
  const iterations = runs.flatMap(({ name, training: { iterations: own, bestStep } }) =>
    own.map((one) => ({ ...one, name, best: one.step === bestStep })),
  );
  return details(
    heading('Training'),
    runs.length > 0 && note(CURVES),
    ...runs.flatMap(({ name, training, seeds }) => [
      heading(name, 3),
      plot(rewardPlot({ name, curve: training.rewardCurve, marks: iterationMarks(training), high }), {
        lineage: training.rewardCurve?.from ?? [],
      }),
      paragraph(['trained to', training.rollouts, 'rollouts']),
      training.rowsPerRollout && paragraph([training.rowsPerRollout, IN_PIECES], 'bad'),
      seeds &&
        paragraph([
          ...['held-out seeds, before', seeds.synthesized.before, 'after', seeds.synthesized.after],
          seeds.chose && CHOSE,
        ]),
    ]),
    heading('Iterations', 3),
    table(iterations, [
      ['training', ({ name }) => name],
      ['step', ({ step }) => `${step}`],
      ['training rollouts', ({ rollouts }) => rollouts],
      ['held-out success', ({ successRate }) => successRate],
      ['held-out mean reward', ({ meanReward }) => meanReward],
      ['by branch', ({ branches = [] }) => branches.flatMap((one) => ['\n', one.branch, one.successRate])],
      ['best', ({ best }) => (best ? 'best' : '')],
    ]),
  );
}

type RewardCurve = Pick<NonNullable<ReportedTraining['rewardCurve']>, 'points' | 'branches'>;

/** Of a training that has ended or runs. All are drawn on the same scales: rewards 0 to 1, steps 0 to `high`. */
export function rewardPlot(o: { name: string; curve: RewardCurve | undefined; marks: Mark[]; high: number }): Plot {
  const { name, curve, marks, high } = o;
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
      { name: curve ? 'training rollouts' : 'no trainer ran', points: pointsOf(curve?.points) },
      ...(curve?.branches ?? []).map(({ branch, points }) => ({ name: branch, points: pointsOf(points) })),
    ],
    marks,
  };
}

const iterationMarks = ({ iterations, bestStep }: ReportedTraining): Mark[] =>
  iterations.flatMap(({ step, meanReward }): Mark[] => {
    const { value, interval } = meanReward;
    const title = figureTitle(`held-out mean reward at step ${step}`, meanReward);
    const style = step === bestStep ? ({ size: 'large' } as const) : { open: true };
    return value === null
      ? []
      : [{ x: step, y: value, low: interval?.low, high: interval?.high, line: 0, title, ...style }];
  });

export function runBlocks({ rollouts, leakage, cost }: Report): Blocks {
  const spent = cost?.languageModel;
  return [
    ...details(
      heading('The run'),
      rollouts && rolloutsTable(rollouts, cost),
      ...(leakage ? leakageBlocks(leakage) : []),
      cost && costTable(cost),
    ),
    heading('Language models', 3),
    ...(spent ? languageModelBlocks(spent) : []),
    spent &&
      note(
        'What analyst, synthesizer and arms asked, and what the users and judges of rollouts said, as the endpoints count it; a reply or a rollout that was kept is paid for once. These numbers have no lineage.',
      ),
  ];
}

type Cost = NonNullable<Report['cost']>;

function rolloutsTable(rollouts: NonNullable<Report['rollouts']>, cost: Cost | undefined): Block {
  const { scored, broken, byPurpose, brokenByError } = rollouts;
  return grid(
    ['rollouts', 'scored', 'broken', 'prompt tokens', 'completion tokens'],
    [
      ...byPurpose.map((of) => [purposeNames[of.purpose], of.scored, of.broken, of.promptTokens, of.completionTokens]),
      ['all', scored, broken, cost?.promptTokens, cost?.completionTokens],
      ...brokenByError.map((of) => [
        `broken by ${of.errorType}, as at task ${of.task}: ${of.message}`,
        '',
        of.rollouts,
        '',
        '',
      ]),
    ],
  );
}

function leakageBlocks(leakage: NonNullable<Report['leakage']>): Block[] {
  const { passed, textsChecked, testTasks, seedsLeftOut, hits, from } = leakage;
  const checked = `Leakage check: ${passed ? 'passed' : 'failed'}, ${textsChecked} texts against ${testTasks} test tasks`;
  const unused = `; ${seedsLeftOut} seeds were not used, since one of a pair says a test task’s text`;
  return [
    paragraph([checked, seedsLeftOut > 0 ? unused : undefined, { lineage: from }], passed ? undefined : 'bad'),
    ...hits.map((hit) => paragraph(`${hit.where} contains the text of ${hit.task}`, 'bad')),
  ];
}

const secondsText = (seconds: number | undefined) =>
  seconds === undefined ? undefined : `${seconds.toPrecision(2)} s`;

function costTable({ wallSeconds, secondsPerRollout = {}, rollouts }: Cost): Block {
  const { rollout, training } = secondsPerRollout;
  const all = wallSeconds.reduce((sum, { seconds }) => sum + seconds, 0);
  const rows: Line[][] = [
    ...wallSeconds.map(({ stage, seconds }) => [`elapsed, ${stage}`, duration(seconds)]),
    ['elapsed in this run, with outages', duration(all)],
    ['seconds a base rollout, while played', secondsText(rollout)],
    ['seconds a training rollout and its update', secondsText(training)],
    ['rollouts', rollouts],
  ];
  return grid(
    ['cost', 'came to'],
    rows.filter(([, value]) => value),
  );
}

type LanguageModelCost = NonNullable<Cost['languageModel']>;

/** What was spent in all; the steps of each role, with their sum where there are several. `who` asked whom, for what. */
export function languageModelBlocks(spent: LanguageModelCost, who?: string): Blocks {
  const { roles, steps, total } = spent;
  const trained = roles.some(({ role }) => role === 'trainer');
  const ofRole = (role: string | undefined) =>
    steps.filter((one) => one.role === role).map((one) => ({ ...one, who: role ?? '' }));
  const rows: (Sum & { who: string; step: string })[] = [
    ...ofRole(undefined),
    ...roles.flatMap(({ role, ...sum }) => {
      const own = ofRole(role);
      return own.length > 1 ? [...own, { ...sum, who: role, step: 'all' }] : own;
    }),
    { ...total, who: 'all', step: '' },
  ];
  return [
    paragraph(`${who ?? `language models${trained ? ' and Tinker server' : ''}`}: ${spentText(spent)}`),
    ...details(
      table(rows, [
        ['who', (row) => row.who],
        ['step', ({ step }) => step],
        ['requests', ({ requests }) => wholeNumber(requests)],
        ['prompt tokens', ({ promptTokens }) => wholeNumber(promptTokens)],
        ['of them cached', ({ cachedTokens }) => wholeNumber(cachedTokens)],
        ['completion tokens', ({ completionTokens }) => wholeNumber(completionTokens)],
        ['dollars', (sum) => [dollarsText(sum.dollars), ...unpricedText(sum)].join(', ')],
      ]),
    ),
  ];
}

const unpricedText = ({ unpriced = 0, requests }: Sum): string[] =>
  unpriced === 0 ? [] : [`${wholeNumber(unpriced)} of ${wholeNumber(requests)} requests without a price`];

/** `132 requests, 1,204,000 tokens of 5,000,000 (24.1%), $1.23 of $10.00 (12.3%): analyst $1.00, user $0.23`. */
function spentText({ roles, total, budget }: LanguageModelCost): string {
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
