/**
 * A report on a terminal: arms and capabilities as aligned tables, notes under them, and the base model's conversations where a campaign stopped after
 * its rollouts. Invariants: no line is longer than the terminal is wide; nothing that a model or a module wrote moves the cursor; what is left out
 * of a conversation is said.
 */
import type { Arm, Report } from '../model';
import {
  foldSums,
  MISSING,
  percent,
  shortName,
  shortPercent,
  shortSha,
  spreadText,
  valueText,
  visible,
  wholeNumber,
} from '../format';
import { comparisonNotes } from '../recommendation';
import {
  adapterVerdict,
  brokenText,
  compositeText,
  evaluatedAt,
  failedPassesText,
  faultsText,
  groupsTable,
  type Measure,
  spentText,
  votesText,
} from '../words';
import type { ReportedCapability, ReportedEpisode, ReportedMessage, ReportedSelection } from '../capability-model';
import { roles } from './blocks';
import { hintsText, noSumsText } from '../adapters';
import { cut, wrap as wrapLine } from '../../terminal';

/** Where a terminal does not say how wide it is. */
const WIDTH = 99;
/** Narrower ones break the lines themselves. */
const NARROWEST = 40;

const ROLLOUTS = 'rollouts: train, spent on training; all, whatever it took to come to the arm, without test';

const armRows = (arms: NonNullable<Report['arms']>): string[][] => {
  const level = arms.find((arm) => arm.successRate?.interval !== undefined)?.successRate?.interval?.level;
  return [
    [
      'arm',
      'train',
      'all',
      'n',
      'success',
      level === undefined ? 'interval' : `${shortPercent(level)} interval`,
      'to base',
      'interval',
    ],
    ...arms.map(({ name, status, trainingRollouts, allRollouts, successRate: rate, differenceToBase: difference }) =>
      status === 'failed' || rate === undefined
        ? [name, valueText(trainingRollouts), valueText(allRollouts), MISSING, 'failed', '', '', '']
        : [
            name,
            valueText(trainingRollouts),
            valueText(allRollouts),
            wholeNumber(rate.n),
            valueText(rate),
            spreadText(rate) ?? MISSING,
            difference === undefined ? MISSING : valueText(difference),
            difference === undefined ? '' : (spreadText(difference) ?? ''),
          ],
    ),
  ];
};

const capabilityRows = (capabilities: NonNullable<Report['capabilities']>): string[][] => [
  [
    'capability',
    'votes',
    'Cov',
    'Delta',
    capabilities.some(({ agreement }) => agreement) ? 'alpha' : '',
    'status',
    'on the target',
    'verdict',
  ],
  ...capabilities.map(({ name, coverage, delta, agreement, status, onTarget, statement, ...of }) => [
    name,
    votesText(of, '/'),
    valueText(coverage),
    valueText(delta),
    agreement === undefined ? '' : valueText(agreement),
    (status ?? 'not finished').replace('_', ' '),
    onTarget?.all === undefined ? MISSING : valueText(onTarget.all),
    adapterVerdict({ statement }),
  ]),
];

/** Text without a last newline, in so many columns. What the campaign has not come to is left out. */
export const terminalTable = (report: Report, columns: number = WIDTH): string => {
  const width = Math.max(NARROWEST, Math.min(columns, WIDTH));
  const { campaign, baseCheck, arms, capabilities, selection } = report;
  const { shown, folded } = foldSums(arms ?? []);
  const line = (text: string): string => clip(text, width);
  const lines = [line(`${campaign.name}  ${campaign.status.replaceAll('_', ' ')}, stage ${campaign.stage}`)];
  if (report.recommendation) lines.push('', ...wrap(report.recommendation.text, width));
  lines.push(...(baseCheck?.findings.map((finding) => line(`base model: ${finding}`)) ?? []));
  lines.push(...baseLines(report, width));
  if (arms !== undefined && arms.length > 0)
    lines.push(
      '',
      ...align(
        {
          rows: armRows(shown),
          widths: [30, 9, 9, 6, 8, 12, 8, 14],
          right: [1, 2, 3, 4, 6],
          spare: [2, 7, 5, 1, 3],
        },
        width,
      ),
      ...foldedNotes(folded).map(line),
      line(ROLLOUTS),
    );
  for (const arm of arms ?? []) {
    const at = evaluatedAt(arm);
    if (at !== undefined) lines.push(line(`${arm.name}: ${at}`));
  }
  lines.push(...[...comparisonNotes(report), ...routerNotes(report)].flatMap((note) => wrap(note, width)));
  if (report.groups !== undefined) {
    for (const measure of ['successRate', 'meanReward'] as const) {
      const rows = groupRows(report, measure, width);
      lines.push('', ...align({ rows, widths: [30, 15, 15, 15, 15], right: [1, 2, 3, 4], spare: [] }, width));
    }
    lines.push(...groupNotes(report, width).map(line));
  }
  for (const { name, status, reason } of arms ?? [])
    if (status === 'failed') lines.push(line(`${name} failed: ${reason}`));
  if (capabilities !== undefined)
    lines.push(
      '',
      ...(capabilities.length === 0
        ? [line(['no capability was selected', selection?.reason].filter(Boolean).join(': '))]
        : align(
            {
              rows: capabilityRows(capabilities),
              widths: [38, 5, 6, 8, 5, 15, 13, 14],
              right: [1, 2, 3, 4],
              spare: [4, 2, 3, 1, 6],
            },
            width,
          )),
    );
  if (selection !== undefined) lines.push(...selectionNotes(selection).flatMap((note) => wrap(note, width)));
  lines.push(...(capabilities ?? []).flatMap(capabilityNotes).flatMap((note) => wrap(note, width)));
  lines.push(...[brokenText(report) ?? []].flat().flatMap((note) => wrap(note, width)));
  lines.push(...costNotes(report).flatMap((note) => wrap(note, width)));
  return lines.join('\n');
};

type Base = NonNullable<Report['base']>;

/** Messages of a conversation at its beginning and its end, and characters of one. */
const [FIRST, LAST] = [7, 3];
const CHARACTERS = 400;

/** Conversations first: what counts is seen without scrolling. */
const baseLines = ({ base, campaign }: Report, width: number): string[] =>
  base === undefined || campaign.stage !== 'rollouts'
    ? []
    : [...base.conversations.flatMap((one) => ['', ...conversationLines(one, width)]), '', ...figureLines(base, width)];

function figureLines({ successRate, meanReward, groups = [] }: Base, width: number): string[] {
  const level = successRate.interval?.level;
  const rows = groups.map(({ group, tasks, arms: [one] }) => [
    group,
    wholeNumber(tasks),
    ...[one?.successRate, one?.meanReward].map((figure) => (figure ? valueText(figure) : MISSING)),
  ]);
  return [
    ...align(
      {
        rows: [
          ['base model, train tasks', 'n', 'value', level === undefined ? '' : `${shortPercent(level)} interval`],
          ...(
            [
              ['solved', successRate],
              ['mean reward', meanReward],
            ] as const
          ).map(([name, figure]) => [name, wholeNumber(figure.n), valueText(figure), spreadText(figure) ?? MISSING]),
        ],
        widths: [30, 9, 8, 14],
        right: [1, 2],
        spare: [],
      },
      width,
    ),
    ...(rows.length === 0
      ? []
      : align(
          {
            rows: [['group', 'tasks', 'solved', 'mean reward'], ...rows],
            widths: [30, 9, 8, 11],
            right: [1, 2, 3],
            spare: [],
          },
          width,
        )),
  ];
}

/** As much of a conversation as is read in passing: its `missing` messages are those that stand between two or after the last. */
export function shortEpisode({ messages, missing = 0, ...one }: ReportedEpisode): ReportedEpisode {
  const isLong = messages.length > FIRST + LAST + 1;
  const kept = isLong ? [...messages.slice(0, FIRST), ...messages.slice(-LAST)] : messages;
  const left = messages.length - kept.length + missing;
  return { ...one, messages: kept.map(shortMessage), ...(left > 0 && { missing: left }) };
}

function shortMessage({ text, missing = 0, ...message }: ReportedMessage): ReportedMessage {
  const seen = visible(text);
  const more = Math.max(0, seen.length - CHARACTERS) + missing;
  // Never half of a character.
  const kept = seen.slice(0, CHARACTERS).replace(/[\uD800-\uDBFF]$/, '');
  return { ...message, text: kept, ...(more > 0 && { missing: more }) };
}

function conversationLines(episode: ReportedEpisode, width: number): string[] {
  const { rollout, task, outcome, reward, stopReason, messages, missing = 0 } = shortEpisode(episode);
  const name = outcome === 'passed' ? 'a success' : 'a failure';
  const head = `${name}: task ${task}, reward ${reward.toFixed(2)}, ended by ${stopReason.replaceAll('_', ' ')} (rollout ${shortSha(rollout)})`;
  let next = 0;
  const leftOut = (count: number): string[] =>
    count > 0 ? [clip(`  … ${wholeNumber(count)} messages are left out here …`, width)] : [];
  const shown = messages.flatMap((message) => {
    const gap = leftOut(message.message - next);
    next = message.message + 1;
    return [...gap, ...messageLines(message, width)];
  });
  return [...wrap(head, width), ...shown, ...leftOut(messages.length + missing - next)];
}

const ROLE = 8;

function messageLines({ role, text, missing = 0 }: ReportedMessage, width: number): string[] {
  const said = missing > 0 ? `${text} … ${wholeNumber(missing)} more characters` : text;
  const room = width - ROLE - 4;
  // What has no spaces, such as the arguments of a call, goes on in the next line.
  const lines = wrap(said.replaceAll(new RegExp(`\\S{${room - 2}}`, 'g'), '$& '), room);
  return lines.map((line, n) => `  ${(n === 0 ? roles[role] : '').padEnd(ROLE)}${line.trimEnd()}`.trimEnd());
}

const selectionNotes = (selection: ReportedSelection): string[] => {
  const { decision, noComposite } = selection;
  return [
    ...failedPassesText(selection),
    ...(decision === undefined ? [] : [`the selected ones were ${decision}`]),
    ...[faultsText(selection) ?? []].flat(),
    ...(noComposite === undefined ? [] : [`no composite: ${noComposite}`]),
  ];
};

/** `router: ridge, cross-validated 80.5% against 78.0% of a+b alone; regret on test +2.5 pt (+0.5 to +5.0); 0.21 ms a conversation`. */
const routerNotes = ({ router, capabilities }: Report): string[] => {
  if (router === undefined) return [];
  const { crossValidation, helps, constant, regret, latency } = router;
  const noSums = noSumsText(router, capabilities);
  const { routed, bestSingle, forms } = crossValidation;
  const kept = forms?.find((one) => one.kept)?.form ?? router.kind;
  const scored = `cross-validated ${valueText(routed)}`;
  const parts = [
    helps
      ? `${kept}, ${scored} against ${valueText(bestSingle.successRate)} of ${bestSingle.option} alone`
      : `everything to ${constant ?? bestSingle.option}, ${scored}`,
    ...(regret ? [`regret on test ${valueText(regret)} (${spreadText(regret) ?? MISSING})`] : []),
    ...(latency ? [`${valueText(latency)} a conversation`] : []),
  ];
  return [`router: ${parts.join('; ')}`, ...(noSums === undefined ? [] : [`no sums of adapters: ${noSums}`])];
};

/** Sums that have no line in the table. */
const foldedNotes = (folded: readonly Arm[]): string[] => {
  const rates = folded.flatMap(({ successRate }) => successRate?.value ?? []);
  if (folded.length === 0) return [];
  const between = [Math.min(...rates), Math.max(...rates)].map(percent).join(' to ');
  return [`${folded.length} more sums of adapters${rates.length > 0 ? `, ${between}` : ''}: all of them in the page`];
};

const capabilityNotes = (capability: ReportedCapability): string[] => {
  const { name, status, reason, statement, calibration } = capability;
  const composite = compositeText(capability);
  const hints = calibration?.accepted ? hintsText(calibration) : undefined;
  return [
    ...(composite === undefined ? [] : [`${name}: ${composite}`]),
    ...(status !== 'trained' && reason !== undefined ? [`${name}: ${reason}`] : []),
    ...(hints === undefined ? [] : [`${name}: accepted ${hints}`]),
    ...(statement === undefined ? [] : [statement.text]),
  ];
};

const costNotes = ({ cost }: Report): string[] =>
  cost?.languageModel === undefined ? [] : [`language models: ${spentText(cost.languageModel)}`];

/** Of the first column. */
const LEAST_NAME = 18;

const oneLine = (text: string): string => visible(text.replace(/\s*[\n\r\t]\s*/g, ' '));

export const clip = (text: string, width: number): string => cut(oneLine(text), width);

/** Further lines are indented; a word that is too long is cut. */
export const wrap = (text: string, width: number): string[] =>
  wrapLine(oneLine(text), width, { indent: 2, cutsWords: true });

export interface Columns {
  rows: string[][];
  /** At most so wide. */
  widths: number[];
  /** Aligned to the right. */
  right: number[];
  /** Left out where there is no room, the first of them first. */
  spare: number[];
}

/**
 * Columns as wide as their widest cell; an empty one is left out. Where they are too wide for the terminal, first the spare ones give way, then
 * the first column.
 */
export function align(plan: Columns, width: number): string[] {
  const rows = plan.rows.map((row) => row.map((cell) => oneLine(cell).replace(/\s+/g, ' ')));
  const widths = plan.widths.map((most, i) => Math.min(most, Math.max(...rows.map((row) => row[i]?.length ?? 0))));
  const [first = 0] = widths;
  const least = Math.min(LEAST_NAME, first);
  let shown = widths.flatMap((own, i) => (own > 0 ? [i] : []));
  const over = (): number => shown.reduce((sum, i) => sum + (widths[i] ?? 0) + 2, -2) - width;
  for (const spare of plan.spare) if (over() > first - least) shown = shown.filter((i) => i !== spare);
  if (over() > 0) widths[0] = Math.max(least, first - over());
  return rows.map((row) => {
    const cells = shown.map((i) => {
      const [cell, own] = [row[i] ?? '', widths[i] ?? 0];
      if (i === 0) return shortName(cell, own).padEnd(own);
      return plan.right.includes(i) ? cut(cell, own).padStart(own) : cut(cell, own).padEnd(own);
    });
    return cut(cells.join('  ').trimEnd(), width);
  });
}

const MOST = 4;
/** Columns of one group, and of the arm's name. */
const [GROUP, NAME] = [17, 14];
const shownIn = (width: number): number => Math.max(1, Math.min(MOST, Math.floor((width - NAME) / GROUP)));

/** Rows of cells for one measure; the first row is the head. */
function groupRows(report: Report, measure: Measure, width: number): string[][] {
  const { head, ours, published } = groupsTable(report, measure);
  const rows = [
    [measure === 'successRate' ? 'solved' : 'mean reward', ...head],
    ...ours.map(({ arm, cells }) => [arm, ...cells.map((figure) => (figure ? valueText(figure) : MISSING))]),
    ...published.map(({ arm, cells }) => [`${arm}, published`, ...cells.map((text) => text ?? MISSING)]),
  ];
  return rows.map((cells) => cells.slice(0, 1 + shownIn(width)));
}

/** What has to be said under the tables. */
const groupNotes = ({ groups = [], published, campaign }: Report, width: number): string[] => [
  `scored by ${campaign.target.name} ${campaign.target.version}`,
  ...(campaign.target.notes ?? []).map((note) => `of the target: ${note}`),
  ...(groups.length > shownIn(width)
    ? [`groups left out here, all of them in the page: ${groups.length - shownIn(width)}`]
    : []),
  ...(published ? [`published: ${published.source}, other run, over as many tasks as it says`] : []),
];
