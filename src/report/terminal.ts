/** The end of a run on a terminal: arms and capabilities as aligned tables. Invariant: no line is longer than 99 columns. */
import type { Report } from '../domain/report';
import { MISSING, shortPercent, spreadText, valueText, wholeNumber } from './format';
import { groupNotes, groupRows } from './terminal-groups';
import { adapterVerdict, evaluatedAt, failedPassesText, gamedText, votesText } from './words';

const WIDTH = 99;
const clip = (text: string, width: number): string => (text.length <= width ? text : `${text.slice(0, width - 1)}…`);

/** Columns as wide as their widest cell, but at most `widths[i]`; the first gives way to the others; `right` ones are aligned to the right. */
const align = (plan: { rows: string[][]; widths: number[]; right: number[] }): string[] => {
  const rows = plan.rows.map((row) => row.map((cell) => cell.replace(/\s+/g, ' ')));
  const widths = plan.widths.map((most, i) => Math.min(most, Math.max(...rows.map((row) => row[i]?.length ?? 0))));
  const over = widths.reduce((sum, width) => sum + width + 2, -2) - WIDTH;
  if (over > 0) widths[0] = Math.max(12, (widths[0] ?? 0) - over);
  return rows.map((row) => {
    const cells = row.map((cell, i) => {
      const width = widths[i] ?? WIDTH;
      return plan.right.includes(i) ? clip(cell, width).padStart(width) : clip(cell, width).padEnd(width);
    });
    return clip(cells.join('  ').trimEnd(), WIDTH);
  });
};

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
  ['capability', 'votes', 'Cov', 'Delta', 'status', 'target before > after', 'verdict'],
  ...capabilities.map(({ name, coverage, delta, status, validation, ...of }) => [
    name,
    votesText(of, '/'),
    valueText(coverage),
    valueText(delta),
    (status ?? 'not finished').replace('_', ' '),
    validation === undefined
      ? MISSING
      : `${valueText(validation.target.before)} > ${valueText(validation.target.after)}`,
    adapterVerdict({ validation }),
  ]),
];

/** Text without a last newline. What the campaign has not come to is left out. */
export const terminalTable = (report: Report): string => {
  const { campaign, baseCheck, arms, capabilities, selection } = report;
  const lines = [clip(`${campaign.name}  ${campaign.status.replaceAll('_', ' ')}, stage ${campaign.stage}`, WIDTH)];
  lines.push(...(baseCheck?.findings.map((finding) => clip(`base model: ${finding}`, WIDTH)) ?? []));
  if (arms !== undefined && arms.length > 0)
    lines.push(
      '',
      ...align({ rows: armRows(arms), widths: [30, 9, 9, 6, 8, 12, 8, 14], right: [1, 2, 3, 4, 6] }),
      ROLLOUTS,
    );
  for (const arm of arms ?? []) {
    const at = evaluatedAt(arm);
    if (at !== undefined) lines.push(clip(`${arm.name}: ${at}`, WIDTH));
  }
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
        ? [clip(['no capability was selected', selection?.reason].filter(Boolean).join(': '), WIDTH)]
        : align({ rows: capabilityRows(capabilities), widths: [38, 5, 6, 8, 15, 21, 7], right: [1, 2, 3] })),
    );
  if (selection !== undefined) lines.push(...failedPassesText(selection).map((text) => clip(text, WIDTH)));
  for (const { name, status, reason, validation } of capabilities ?? []) {
    if (status !== 'trained' && reason !== undefined) lines.push(clip(`${name}: ${reason}`, WIDTH));
    const how = gamedText({ validation });
    if (how !== undefined) lines.push(`${clip(name, WIDTH)} is gamed:`, clip(`  ${how}`, WIDTH));
  }
  return lines.join('\n');
};
