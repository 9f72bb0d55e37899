/** The sections of a report, on its page and on a terminal: what came out, then how. What the campaign has not come to has no section. */
import type { Figure } from '../../domain/figure';
import { foldSums, MISSING, percent, shortPercent, spreadText, TEST, testText, valueText } from '../format';
import { pageHtml } from '../html';
import type { Arm, Report, TaskGroup } from '../model';
import { type IntervalRow, type Plot } from '../plots';
import { episodeBlock } from '../quoted';
import { type Block, type Column, fold, type Line, note, type Page, paragraph, type Section, table } from '../section';
import { terminalText } from '../terminal';
import { capabilitySections, selectionSections } from './capabilities';
import { routerSections, runSections, trainingSections } from './run';

export const reportPage = (report: Report): Page => ({
  title: report.campaign.name,
  campaign: report.campaign.name,
  sections: [
    ...headSections(report),
    ...armsSections(report),
    ...groupsSections(report),
    baseSection(report),
    matrixSection(report),
    ...selectionSections(report),
    ...capabilitySections(report),
    ...trainingSections(report),
    ...routerSections(report),
    ...runSections(report),
  ],
});

export const reportHtml = (report: Report): string => pageHtml(reportPage(report));
export const reportText = (report: Report, columns?: number): string =>
  terminalText(reportPage(report).sections, columns);

function headSections({ campaign, baseCheck, verdict }: Report): Section[] {
  const { target, seed, trainingSeed, status, stage, name } = campaign;
  const at = `${status.replaceAll('_', ' ')}, stage ${stage}`;
  const seeds = `seed ${seed}${trainingSeed === undefined ? '' : `, training seed ${trainingSeed}`}`;
  const facts: [string, Line | undefined][] = [
    ['Base model', campaign.baseModel],
    ['Config', { code: campaign.configSha256 }],
    ['Started', campaign.startedAt],
    ['Finished', campaign.finishedAt],
    ['Workflow', campaign.workflowId],
    ['Reason', campaign.reason],
    ['Base rollouts', baseCheck && { lineage: baseCheck.from }],
  ];
  return [
    {
      blocks: [
        { ...paragraph(`${name}  ${at}`), on: 'terminal' },
        note(`Campaign on ${target.name} ${target.version}, ${seeds}: ${at}`),
        ...(baseCheck?.findings ?? []).map((finding) => paragraph(`base model: ${finding}`, 'bad')),
        ...(target.notes ?? []).map((text) => paragraph(`Of the target: ${text}`)),
        { kind: 'facts', rows: facts.filter(([, value]) => value !== undefined), on: 'page' },
      ],
    },
    {
      title: 'Verdict',
      blocks: [
        note(
          'Computed from the figures below by fixed rules. A difference counts only if its interval excludes zero, which is where its p is below 1 minus the level: both are of one test.',
        ),
        { kind: 'list', items: verdict.map(({ text, behind }) => [text, { lineage: behind }]), on: 'page' },
        { kind: 'list', items: verdict.map(({ text }) => text), on: 'terminal' },
      ],
    },
  ];
}

const ROLLOUTS =
  'Training: rollouts spent to choose what is evaluated from, for a baseline within what the adapters spent together. All rollouts: whatever was rolled out to come to it, without test rollouts.';
const TRIALS = 'Tasks: test tasks × trials of each.';
const HELD_OUT =
  'Held out: train tasks of the target that nothing trained on. All rollouts of the routed policy hold base rollouts and the router’s outcome matrix as well.';

function armsSections({ arms, budget, comparisons = [] }: Report): Section[] {
  if (arms === undefined) return [];
  const { shown, folded } = foldSums(arms);
  const bound = arms.some(({ role }) => role === 'bound');
  const caption = `Share of test tasks solved, with its interval.${bound ? ' The open mark of a bound is no policy: tasks that any of the router’s options alone solves.' : ''}`;
  const rates = folded.flatMap(({ successRate }) => successRate?.value ?? []);
  const between =
    rates.length > 0
      ? `, ${percent(Math.min(...rates))} to ${percent(Math.max(...rates))}: all of them in the page`
      : '';
  const more = `${folded.length} more sums of adapters`;
  return [
    {
      title: 'Arms on test tasks',
      blocks: [
        { kind: 'plot', plot: armsPlot(shown), caption },
        armsTable(shown),
        folded.length > 0 && { ...fold(more, [armsTable(folded)]), on: 'page' },
        folded.length > 0 && { ...paragraph(more + between), on: 'terminal' },
        paragraph(ROLLOUTS, 'quiet'),
        note([TRIALS, HELD_OUT]),
        budget && {
          ...paragraph(['Training rollouts that baselines are held to, those of all adapters:', budget]),
          on: 'page',
        },
      ],
    },
    {
      title: 'Paired differences between arms',
      level: 3,
      blocks: [
        table(
          ['arm', 'minus', 'difference', 'on single tasks', 'over trainings too', 'standing'].map((head, n) =>
            n === 3 ? { head, spare: 2 } : head,
          ),
          comparisons.map(({ arm, against, difference, acrossTrainings, standing }) => [
            arm,
            against,
            difference,
            testText(difference),
            acrossTrainings,
            standing.replace('_', ' '),
          ]),
        ),
        comparisons.length > 0 && paragraph(`p: ${TEST}.`, 'quiet'),
      ],
    },
    endings(arms),
  ];
}

const armsColumns: (string | Column)[] = [
  'arm',
  { head: 'what', on: 'page' },
  { head: 'training', spare: 4 },
  { head: 'all rollouts', spare: 1 },
  { head: 'tasks', spare: 2 },
  { head: 'held out', on: 'page' },
  'success',
  'to base',
  { head: 'status', on: 'page' },
];

const armsTable = (arms: readonly Arm[]): Block =>
  table(
    armsColumns,
    arms.map((arm) => [
      arm.name,
      whatIs(arm),
      trainingLine(arm),
      arm.allRollouts,
      `${arm.tasks} × ${arm.trials}`,
      arm.heldOut ?? MISSING,
      arm.successRate ?? 'failed',
      arm.differenceToBase ?? MISSING,
      arm.status === 'failed' ? { tone: 'bad', text: `failed: ${arm.reason}` } : 'evaluated',
    ]),
  );

function whatIs({ role, kind, routable, conversations, sameAs, builtOn = [] }: Arm): Line {
  const parts = [
    role === 'baseline' ? `baseline ${kind}` : role,
    conversations === undefined ? undefined : `${conversations} conversations`,
    routable ? 'routable' : undefined,
    builtOn.length > 0 ? `of ${builtOn.join(', ')}` : undefined,
    sameAs === undefined ? undefined : `the same policy as ${sameAs}`,
  ];
  return parts.filter((part) => part !== undefined).join(', ');
}

const trainingLine = ({ trainingRollouts, evaluatedRollouts, trainedTo, step }: Arm): Line => [
  trainingRollouts,
  ...(evaluatedRollouts ? ['\n', `evaluated at step ${step}:`, evaluatedRollouts] : []),
  ...(trainedTo ? ['\n', 'trained on to', trainedTo] : []),
];

/** What a pointer shows of a mark. */
export const figureTitle = (label: string, figure: Figure): string =>
  [`${label}: ${valueText(figure)}`, spreadText(figure), `n ${figure.n}`, figure.id]
    .filter((part) => part !== undefined)
    .join(', ');

function armsPlot(arms: readonly Arm[]): Plot {
  const base = arms.find(({ role }) => role === 'base')?.successRate?.value;
  return {
    kind: 'intervals',
    label: 'Success rate of each arm on test tasks',
    ...(typeof base === 'number' && { reference: { value: base, name: 'base' } }),
    rows: arms.map(({ name, role, status, successRate: rate }): IntervalRow => {
      if (!rate || rate.value === null)
        return { name, role, title: name, text: status === 'failed' ? 'failed' : 'no scored rollout' };
      const { value, interval } = rate;
      const text = [valueText(rate), spreadText(rate), `n ${rate.n}`].filter(Boolean).join('  ');
      return { name, role, measured: { ...interval, value }, text, title: figureTitle(name, rate) };
    }),
  };
}

function endings(arms: readonly Arm[]): Section {
  const ended = arms.flatMap(({ name, stopReasons = [] }) => (stopReasons.length > 0 ? [{ name, stopReasons }] : []));
  const reasons = [...new Set(ended.flatMap(({ stopReasons }) => stopReasons.map(({ reason }) => reason)))];
  return {
    title: 'Why test rollouts ended',
    level: 3,
    on: 'page',
    blocks: [
      table(
        ['arm', ...reasons.map((reason) => reason.replaceAll('_', ' '))],
        ended.map(({ name, stopReasons }) => [
          name,
          ...reasons.map((reason) => stopReasons.find((one) => one.reason === reason)?.rollouts ?? MISSING),
        ]),
      ),
    ],
  };
}

/** More groups than this are not seen at once: then `overall` stands first instead of last. */
const SEEN_AT_ONCE = 4;

function groupsSections({ groups = [], published, campaign }: Report): Section[] {
  const { name, version } = campaign.target;
  const inOrder = groups.length > SEEN_AT_ONCE ? [...groups.slice(-1), ...groups.slice(0, -1)] : groups;
  const from =
    published &&
    `Rows marked as published are from ${published.source} (${published.setUp}), over as many tasks as they say; nothing of them was measured here.`;
  const [first] = inOrder;
  if (!first) return [];
  return [
    {
      title: 'Test tasks by group',
      blocks: [
        paragraph([`Scored by ${name} ${version}.`, from], 'quiet'),
        groupsTable(inOrder, published, 'successRate'),
      ],
    },
    { blocks: [groupsTable(inOrder, published, 'meanReward')] },
  ];
}

type Measure = 'successRate' | 'meanReward';
type Published = NonNullable<Report['published']>['arms'][number];

function groupsTable(groups: readonly TaskGroup[], published: Report['published'], measure: Measure): Block {
  const arms = groups[0]?.arms.map(({ arm }) => arm) ?? [];
  const theirs = (published?.arms ?? []).flatMap(({ arm, cells }) => {
    const texts = groups.map(({ group }) => publishedText(cells, group, measure));
    return texts.some((text) => text !== undefined)
      ? [[`${arm}, published`, ...texts.map((text) => text ?? MISSING)]]
      : [];
  });
  return table(
    [
      measure === 'successRate' ? 'solved' : 'mean reward',
      ...groups.map(({ group, tasks }, n) => ({ head: `${group} (${tasks})`, spare: 4 + groups.length - n })),
    ],
    [
      ...arms.map((arm) => [
        arm,
        ...groups.map((group) => group.arms.find((one) => one.arm === arm)?.[measure] ?? MISSING),
      ]),
      ...theirs,
    ],
  );
}

/** As its source gives it; undefined where the source has none. */
function publishedText(cells: Published['cells'], group: string, measure: Measure): string | undefined {
  const { tasks, solved, successRate = 0, meanReward } = cells.find((cell) => cell.group === group) ?? {};
  if (tasks === undefined) return undefined;
  if (measure === 'successRate') return `${solved ?? percent(successRate)} of ${tasks}`;
  return meanReward === undefined ? undefined : `${meanReward.toFixed(3)} of ${tasks}`;
}

/** On a terminal only where it is all that there is; the conversations first, so that what counts is seen without scrolling. */
function baseSection({ base, campaign }: Report): Section {
  const { successRate, meanReward, groups = [], conversations = [] } = base ?? {};
  const row = (name: string, tasks: number, figures: (Figure | undefined)[]): Line[] => [name, `${tasks}`, ...figures];
  return {
    title: 'Base model',
    ...(campaign.stage !== 'rollouts' && { on: 'page' }),
    blocks: [
      ...conversations.map(episodeBlock),
      successRate &&
        table(
          ['train tasks', 'n', 'solved', 'mean reward'],
          [
            row('all', successRate.n, [successRate, meanReward]),
            ...groups.map(({ group, tasks, arms: [one] }) => row(group, tasks, [one?.successRate, one?.meanReward])),
          ],
        ),
    ],
  };
}

/** How many tasks each option solves, and how many that no other does; the matrix itself is in report.json, or an artifact where it is large. */
function matrixSection({ solverMatrix }: Report): Section {
  const { inline, from, tasks = 0 } = solverMatrix ?? {};
  const solvedBy = (row: readonly (number | null)[], option: number): boolean => (row[option] ?? 0) > 0;
  const rows = (inline?.options ?? []).map((name, option): Line[] => {
    const solved = inline!.outcomes.filter((row) => solvedBy(row, option));
    const alone = solved.filter((row) => row.every((_, other) => other === option || !solvedBy(row, other)));
    const unscored = inline!.outcomes.filter((row) => row[option] === null).length;
    return [
      name,
      `${solved.length}`,
      shortPercent(solved.length / Math.max(1, tasks)),
      `${alone.length}`,
      `${unscored}`,
    ];
  });
  return {
    title: 'Who solves what',
    on: 'page',
    blocks: [
      table(
        ['option', 'tasks solved in some trial', 'share', 'that no other solves', 'without a scored rollout'],
        rows,
      ),
      from && note([`The outcomes of all ${tasks} tasks:`, { lineage: [from] }]),
    ],
  };
}
