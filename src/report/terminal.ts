/**
 * The end of a run on a terminal: arms and capabilities as aligned tables. Invariants: no line is longer than the terminal is wide; nothing
 * that a model or a module wrote moves the cursor.
 */
import type { Report } from './model';
import { foldSums, MISSING, shortPercent, spreadText, valueText, wholeNumber } from './format';
import { comparisonNotes } from './recommendation';
import { baseLines } from './terminal-base';
import { align, clip, wrap } from './terminal-columns';
import { groupNotes, groupRows } from './terminal-groups';
import { capabilityNotes, costNotes, foldedNotes, routerNotes, selectionNotes } from './terminal-notes';
import { adapterVerdict, brokenText, evaluatedAt, votesText } from './words';

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
