/** The sections of a report: what came out, then how. What the campaign has not come to has no section. */
import { dollarsText, duration, figureTitle, percent, spreadText, TEST, testText, valueText } from '../format';
import { LAST_STAGE } from '../../domain/work';
import { pageHtml } from '../html';
import type { Arm, Report, TaskGroup } from '../model';
import { type Mark, type Plot, ROOM, shareEnd } from '../plots';
import { samePolicy } from '../recommendation';
import {
  type Block,
  type Blocks,
  details,
  fold,
  grid,
  heading,
  type Line,
  list,
  note,
  paragraph,
  type Piece,
  plot,
  table,
  type View,
} from '../blocks';
import { capabilityBlocks } from './capabilities';
import { routerBlocks } from './router';
import { runBlocks, trainingBlocks } from './run';
import { selectionBlocks } from './selection';

export const reportHtml = (report: Report): string =>
  pageHtml({ title: report.campaign.name, campaign: report.campaign.name, views: viewsOf(report) });

export const viewsOf = (report: Report): View[] => [
  { id: 'summary', name: 'Summary', blocks: summaryBlocks(report) },
  { id: 'arms', name: 'Arms', blocks: [...armsBlocks(report), ...groupsBlocks(report)] },
  { id: 'selection', name: 'Analysis', blocks: [...selectionBlocks(report), ...baseBlocks(report)] },
  { id: 'capabilities', name: 'Capabilities', blocks: capabilityBlocks(report) },
  { id: 'training', name: 'Training', blocks: trainingBlocks(report) },
  { id: 'router', name: 'Router', blocks: routerBlocks(report) },
  { id: 'run', name: 'Run', blocks: [...factsBlocks(report), ...runBlocks(report)] },
];

function summaryBlocks(report: Report): Blocks {
  const { campaign, baseCheck, recommendation, verdict, arms = [], cost } = report;
  const doubts = verdict.slice(recommendation ? 1 : 0);
  const { name, target, seed, trainingSeed, status, stage } = campaign;
  const seeds = trainingSeed === undefined ? `seed ${seed}` : `seed ${seed}, training seed ${trainingSeed}`;
  const seconds = cost?.wallSeconds.reduce((sum, one) => sum + one.seconds, 0);
  const dollars = cost?.languageModel?.total.dollars;
  const shipped = arms.find((arm) => arm.name === recommendation?.arm);
  const base = arms.find(({ role }) => role === 'base');
  const stands = stage === LAST_STAGE ? status : `${status}, stopped after stage ${stage}`;
  return [
    recommendation && paragraph([recommendation.text, { lineage: recommendation.behind }], 'answer'),
    paragraph(`${name}: ${stands}; on ${target.name} ${target.version}, ${seeds}`),
    {
      kind: 'facts',
      detail: true,
      facts: [
        ...(shipped && shipped !== base ? [{ name: `${shipped.name}, success`, value: shipped.successRate }] : []),
        ...(base ? [{ name: 'base, success', value: base.successRate }] : []),
        ...(cost ? [{ name: 'rollouts', value: cost.rollouts }] : []),
        ...(seconds === undefined ? [] : [{ name: 'elapsed', value: duration(seconds) }]),
        ...(dollars === undefined ? [] : [{ name: 'language models', value: dollarsText(dollars) }]),
      ],
    },
    ...(baseCheck?.findings ?? []).map((finding) => paragraph(`base model: ${finding}`, 'bad')),
    heading('What is doubtful'),
    list(
      doubts.map(({ text, behind }) => [text, { lineage: behind }]),
      'bad',
    ),
    ...details(
      heading('Success against rollouts spent'),
      arms.length > 1 &&
        plot(spentPlot(arms), 'On test tasks, with intervals, against all rollouts that were made to come to it.'),
    ),
    recommendation &&
      note(
        'What to ship is computed from the figures by fixed rules. p: sign-flip permutation test over the tasks. A candidate is better only if its p, corrected for all candidates by Holm’s method, is below 1 minus the level.',
      ),
  ];
}

/** Base, the routed policy and the baselines: what can be shipped, and what it is held against. */
function spentPlot(arms: readonly Arm[]): Plot {
  const shown = arms.filter(({ role }) => role === 'base' || role === 'routed' || role === 'baseline');
  const lineOf = { routed: 1, baseline: 2, base: 3 } as Record<string, number>;
  const marks = shown.flatMap(({ name, role, successRate: rate, allRollouts }): Mark[] =>
    !rate || rate.value === null
      ? []
      : [
          {
            ...{ x: role === 'base' ? 0 : (allRollouts.value ?? 0), y: rate.value, line: lineOf[role] ?? 0, name },
            ...{ low: rate.interval?.low, high: rate.interval?.high, title: figureTitle(name, rate) },
          },
        ],
  );
  return {
    ...{ kind: 'lines', label: 'Success of the arms against all rollouts spent', width: 760, height: 320, lines: [] },
    x: { label: 'rollouts', high: ROOM * Math.max(1, ...marks.map(({ x }) => x)) },
    y: { high: shareEnd(marks.map(({ y, high }) => high ?? y)), percent: true },
    marks,
  };
}

function factsBlocks({ campaign, baseCheck }: Report): Blocks {
  const facts: [string, Piece | undefined][] = [
    ['Base model', campaign.baseModel],
    ['Config', { code: campaign.configSha256 }],
    ['Started', campaign.startedAt],
    ['Finished', campaign.finishedAt],
    ['Workflow', campaign.workflowId],
    ['Base rollouts', baseCheck && { lineage: baseCheck.from }],
  ];
  return [
    ...details(
      heading('The campaign'),
      list(facts.flatMap(([what, value]) => (value === undefined ? [] : [[`${what}:`, value]]))),
    ),
    ...(campaign.target.notes ?? []).map((text) => paragraph(`Of the target: ${text}`)),
  ];
}

const ROLLOUTS =
  'Training: rollouts spent to choose what is evaluated from, for a baseline within what the adapters spent together. All rollouts: whatever was rolled out to come to it, without test rollouts.';
const TRIALS = 'Tasks: test tasks × trials of each.';
const HELD_OUT =
  'Held out: train tasks of the target that nothing trained on; of a baseline they chose the iteration. All rollouts of the routed policy hold base rollouts and the router’s outcome matrix as well.';
const BOUND = 'The open mark of a bound is no policy: tasks that any of the router’s options alone solves.';

function armsBlocks({ arms, budget, comparisons = [] }: Report): Blocks {
  if (arms === undefined) return [];
  const { shown, folded } = foldSums(arms);
  const bound = arms.some(({ role }) => role === 'bound') ? BOUND : undefined;
  const rates = folded.flatMap(({ successRate }) => successRate?.value ?? []);
  const range = rates.length > 0 ? `, ${percent(Math.min(...rates))} to ${percent(Math.max(...rates))}` : '';
  const ended = arms.filter(({ stopReasons = [] }) => stopReasons.length > 0);
  const named = (of: string) => arms.find(({ name }) => name === of);
  const reasons = [...new Set(ended.flatMap(({ stopReasons = [] }) => stopReasons.map(({ reason }) => reason)))];
  return [
    heading('Arms on test tasks'),
    plot(armsPlot(shown), ['Share of test tasks solved, with its interval.', bound]),
    armsTable(shown),
    folded.length > 0 && fold(`${folded.length} more sums of adapters${range}`, details(armsTable(folded))),
    paragraph(ROLLOUTS, 'quiet'),
    note([TRIALS, HELD_OUT]),
    ...details(budget && paragraph(['Training rollouts that baselines are held to, those of all adapters:', budget])),
    heading('Paired differences between arms', 3),
    table(comparisons, [
      ['arms', ({ arm, against }) => `${arm} to ${against}`],
      ['difference', ({ difference }) => difference],
      [
        'on single tasks',
        ({ arm, against, difference }) =>
          samePolicy(named(arm), named(against)) ? 'one policy, sampled twice' : testText(difference),
        { spare: 1 },
      ],
    ]),
    comparisons.length > 0 && paragraph(`p: ${TEST}. Of one training each: other trainings may differ.`, 'quiet'),
    ...details(
      heading('Why test rollouts ended', 3),
      grid(
        ['arm', ...reasons.map((reason) => reason.replaceAll('_', ' '))],
        ended.map(({ name, stopReasons = [] }) => [
          name,
          ...reasons.map((reason) => stopReasons.find((one) => one.reason === reason)?.rollouts),
        ]),
      ),
    ),
  ];
}

/** So many sums stand among the other arms; of more the best, so many. */
const [MOST_SUMS, BEST_SUMS] = [4, 3];

/** Splits off the merged adapters beyond the best ones, if there are many. */
function foldSums(arms: readonly Arm[]): { shown: Arm[]; folded: Arm[] } {
  const sums = arms.filter(({ role }) => role === 'sum');
  const rate = ({ successRate }: Arm): number => successRate?.value ?? -1;
  const best = [...sums].sort((a, b) => rate(b) - rate(a)).slice(0, BEST_SUMS);
  const isFolded = (arm: Arm): boolean => sums.length > MOST_SUMS && sums.includes(arm) && !best.includes(arm);
  return { shown: arms.filter((arm) => !isFolded(arm)), folded: arms.filter(isFolded) };
}

const armsTable = (arms: readonly Arm[]): Block =>
  table(arms, [
    ['arm', ({ name }) => name],
    ['what', whatIs, { detail: true }],
    ['training', trainingLine, { spare: 4 }],
    ['all rollouts', ({ allRollouts }) => allRollouts, { spare: 1 }],
    ['tasks', ({ tasks, trials }) => `${tasks} × ${trials}`, { spare: 2 }],
    ['held out', ({ heldOut }) => heldOut, { detail: true }],
    ['success', ({ successRate }) => successRate ?? 'failed'],
    ['to base', ({ differenceToBase }) => differenceToBase],
    [
      'status',
      ({ status, reason }) => (status === 'failed' ? { tone: 'bad', text: `failed: ${reason}` } : status),
      { detail: true },
    ],
  ]);

const whatIs = ({ role, kind, sameAs, builtOn = [] }: Arm): string =>
  [
    role === 'baseline' ? `baseline ${kind}` : role,
    builtOn.length > 0 && `of ${builtOn.join(', ')}`,
    sameAs !== undefined && `the same policy as ${sameAs}`,
  ]
    .filter(Boolean)
    .join(', ');

const trainingLine = ({ trainingRollouts, evaluatedRollouts, trainedTo, step }: Arm): Line => [
  trainingRollouts,
  ...(evaluatedRollouts ? ['\n', `evaluated at step ${step}:`, evaluatedRollouts] : []),
  ...(trainedTo ? ['\n', 'trained on to', trainedTo] : []),
];

function armsPlot(arms: readonly Arm[]): Plot {
  const base = arms.find(({ role }) => role === 'base')?.successRate?.value;
  return {
    kind: 'intervals',
    label: 'Success rate of each arm on test tasks',
    reference: typeof base === 'number' ? { value: base, name: 'base' } : undefined,
    rows: arms.map(({ name, role, status, successRate: rate }) => {
      if (!rate || rate.value === null)
        return { name, role, title: name, text: status === 'failed' ? 'failed' : 'no scored rollout' };
      const text = [valueText(rate), spreadText(rate), `n ${rate.n}`].filter(Boolean).join('  ');
      return { name, role, measured: { ...rate.interval, value: rate.value }, text, title: figureTitle(name, rate) };
    }),
  };
}

/** More groups than this are not seen at once: then `overall` stands first instead of last. */
const SEEN_AT_ONCE = 4;

function groupsBlocks({ groups = [], campaign }: Report): Blocks {
  const { name, version } = campaign.target;
  const inOrder = groups.length > SEEN_AT_ONCE ? [...groups.slice(-1), ...groups.slice(0, -1)] : groups;
  return groups.length === 0
    ? []
    : [
        heading('Test tasks by group'),
        paragraph(`Scored by ${name} ${version}.`, 'quiet'),
        groupsTable(inOrder, 'successRate'),
        heading('Mean reward by group', 3),
        groupsTable(inOrder, 'meanReward'),
      ];
}

type Measure = 'successRate' | 'meanReward';

/** Returns a table with a row for each arm and a column for each group. */
const groupsTable = (groups: readonly TaskGroup[], measure: Measure): Block =>
  grid(
    [measure === 'successRate' ? 'solved' : 'mean reward', ...groups.map(({ group, tasks }) => `${group} (${tasks})`)],
    (groups[0]?.arms ?? []).map(({ arm }) => [
      arm,
      ...groups.map(({ arms }) => arms.find((one) => one.arm === arm)?.[measure]),
    ]),
  );

/** A terminal shows the base model only where the report holds nothing else. */
function baseBlocks({ base, campaign }: Report): Blocks {
  if (!base) return [];
  const { successRate, meanReward, groups = [] } = base;
  const all = { group: 'all', tasks: successRate.n, successRate, meanReward };
  const blocks = [
    heading('Base model'),
    table(
      [all, ...groups.flatMap(({ group, tasks, arms: [arm] }) => (arm ? [{ ...arm, group, tasks }] : []))],
      [
        ['train tasks', ({ group }) => group],
        ['n', ({ tasks }) => `${tasks}`],
        ['solved', (one) => one.successRate],
        ['mean reward', (one) => one.meanReward],
      ],
    ),
  ];
  return campaign.stage === 'rollouts' ? blocks : details(...blocks);
}
