/** The end of a run on a terminal: arms and capabilities as aligned tables. Invariant: no line is longer than 99 columns. */
import type { Report } from '../domain/report';
import { groupNotes, groupRows } from './terminal-groups';
import { MISSING, shortPercent, spreadText, valueText, wholeNumber } from './format';

const WIDTH = 99;
const clip = (text: string, width: number): string => (text.length <= width ? text : `${text.slice(0, width - 1)}…`);

/** Columns as wide as their widest cell, but at most `widths[i]`; `right` columns are aligned to the right. */
const align = (plan: { rows: string[][]; widths: number[]; right: number[] }): string[] => {
  const clipped = plan.rows.map((row) =>
    row.map((cell, i) => clip(cell.replace(/\s+/g, ' '), plan.widths[i] ?? WIDTH)),
  );
  const widths = plan.widths.map((_, i) => Math.max(...clipped.map((row) => row[i]?.length ?? 0)));
  return clipped.map((row) => {
    const cells = row.map((cell, i) =>
      plan.right.includes(i) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
    );
    return clip(cells.join('  ').trimEnd(), WIDTH);
  });
};

const armRows = (arms: NonNullable<Report['arms']>): string[][] => {
  const level = arms.find((arm) => arm.successRate?.interval !== undefined)?.successRate?.interval?.level;
  return [
    [
      'arm',
      'training',
      'n',
      'success',
      level === undefined ? 'interval' : `${shortPercent(level)} interval`,
      'to base',
      'interval',
    ],
    ...arms.map(({ name, status, trainingRollouts, successRate: rate, differenceToBase: difference }) =>
      status === 'failed' || rate === undefined
        ? [name, wholeNumber(trainingRollouts), MISSING, 'failed', '', '', '']
        : [
            name,
            wholeNumber(trainingRollouts),
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
  ['capability', 'votes', 'Cov', 'Delta', 'status', 'target before > after', 'helps'],
  ...capabilities.map(({ name, votes, passes, coverage, delta, status, validation }) => [
    name,
    `${votes}/${passes}`,
    valueText(coverage),
    valueText(delta),
    (status ?? 'not finished').replace('_', ' '),
    validation === undefined
      ? MISSING
      : `${valueText(validation.target.before)} > ${valueText(validation.target.after)}`,
    validation === undefined ? MISSING : validation.helps ? 'yes' : 'no',
  ]),
];

/** Text without a last newline. What the campaign has not come to is left out. */
export const terminalTable = (report: Report): string => {
  const { campaign, arms, capabilities } = report;
  const lines = [clip(`${campaign.name}  ${campaign.status.replaceAll('_', ' ')}, stage ${campaign.stage}`, WIDTH)];
  if (arms !== undefined && arms.length > 0)
    lines.push('', ...align({ rows: armRows(arms), widths: [32, 8, 6, 8, 12, 8, 14], right: [1, 2, 3, 5] }));
  if (report.groups !== undefined) {
    for (const measure of ['successRate', 'meanReward'] as const)
      lines.push('', ...align({ rows: groupRows(report, measure), widths: [30, 15, 15, 15, 15], right: [1, 2, 3, 4] }));
    lines.push(...groupNotes(report).map((note) => clip(note, WIDTH)));
  }
  for (const { name, status, reason } of arms ?? [])
    if (status === 'failed') lines.push(clip(`${name} failed: ${reason}`, WIDTH));
  if (capabilities !== undefined)
    lines.push(
      '',
      ...(capabilities.length === 0
        ? [clip(['no capability was selected', report.selection?.reason].filter(Boolean).join(': '), WIDTH)]
        : align({ rows: capabilityRows(capabilities), widths: [38, 5, 6, 8, 15, 21, 5], right: [1, 2, 3] })),
    );
  for (const { name, status, reason } of capabilities ?? [])
    if (status !== 'trained' && reason !== undefined) lines.push(clip(`${name}: ${reason}`, WIDTH));
  return lines.join('\n');
};
