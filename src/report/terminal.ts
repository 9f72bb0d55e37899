/** A report as short text on a terminal. Invariants: at most 20 lines, of which only the page's path may be wider than the terminal; nothing that a model wrote moves the cursor. */
import { alignColumns, cut, wrap } from '../terminal';
import { MISSING, percent, policiesOf, shortName, valueText, visible } from './format';
import type { Arm, Report, Role } from './model';
import { verdictOf } from './recommendation';

/** The widest text, and the width where stdout has none. */
const WIDTH = 99;
const NARROWEST = 40;
const MOST_LINES = 20;
const MOST_VERDICT = 5;
const MOST_POLICIES = 6;
/** Narrower terminals show no intervals. */
const INTERVALS_FROM = 56;

/** Returns the columns to use of a terminal. */
export const fittingWidth = (columns = WIDTH): number => Math.max(NARROWEST, Math.min(columns, WIDTH));

/** Wraps text to at most so many lines. */
export function clip(text: string, width: number, most = Infinity): string[] {
  const lines = wrap(visible(text).replace(/\s+/g, ' '), width, { indent: 2, cutsWords: true });
  return lines.length <= most ? lines : [...lines.slice(0, most - 1), cut(`${lines[most - 1]} …`, width)];
}

/** Rows under a head; the names in the first column get the room that the others leave. */
export function tableLines(head: readonly string[], rows: readonly string[][], width: number): string[] {
  if (rows.length === 0) return [];
  const cells = [head, ...rows].map((row) => row.map((cell) => visible(cell).replace(/\s+/g, ' ')));
  const others = head.slice(1).map((_, n) => 2 + Math.max(...cells.map((row) => row[n + 1]!.length)));
  const room = Math.max(
    8,
    others.reduce((left, one) => left - one, width),
  );
  return alignColumns(
    cells.map(([name = '', ...rest]) => [shortName(name, room), ...rest]),
    { numbers: true },
  ).map((line) => cut(line, width));
}

/** Formats the verdict, the table of policies and the doubts; `page` is the path of the report's page. */
export function reportText(
  report: Report,
  { columns, page }: { columns?: number | undefined; page?: string } = {},
): string {
  const width = fittingWidth(columns);
  const { campaign, recommendation, baseCheck } = report;
  const { name, target, seed, trainingSeed, status, stage } = campaign;
  const seeds = `seed ${seed}${trainingSeed === undefined ? '' : `, training seed ${trainingSeed}`}`;
  const head = [
    ...clip(`${name}: ${status} after stage ${stage}; ${target.name} ${target.version}, ${seeds}`, width, 1),
    ...(recommendation ? clip(verdictOf(report), width, MOST_VERDICT) : []),
    ...(report.arms ? policyLines(report.arms, width) : foundLines(report, width)),
  ];
  const where = [
    ...(page === undefined ? [] : [`page: ${page}`]),
    ...clip(`conversations behind every number: \`campaign view ${name}\``, width, 1),
  ];
  const doubts = [
    ...(baseCheck?.findings ?? []).map((finding) => `base model: ${finding}`),
    ...report.doubts.map(({ text }) => text),
  ];
  return [...head, ...doubtLines(doubts, width, MOST_LINES - head.length - where.length), ...where].join('\n');
}

function doubtLines(doubts: readonly string[], width: number, room: number): string[] {
  const shown = doubts.slice(0, doubts.length > room ? room - 1 : room);
  const each = Math.max(1, Math.min(3, Math.floor(room / Math.max(1, shown.length))));
  const lines = shown.flatMap((text) => clip(`doubtful: ${text}`, width, each));
  const more = doubts.length - shown.length;
  return more > 0 ? [...lines, `doubtful: ${more} more, on the page`] : lines;
}

const ORDER: readonly Role[] = ['base', 'routed', 'baseline', 'merged', 'adapter'];

/** Merged adapters count as one row, that of the best. */
function policyLines(arms: readonly Arm[], width: number): string[] {
  const rate = ({ successRate }: Arm): number => successRate?.value ?? -1;
  const ranked = policiesOf(arms)
    .filter(({ arm }) => arm.role !== 'oracle')
    .sort((a, b) => ORDER.indexOf(a.arm.role) - ORDER.indexOf(b.arm.role) || rate(b.arm) - rate(a.arm));
  const bestMerged = ranked.find(({ arm }) => arm.role === 'merged');
  const listed = ranked.filter((row) => row.arm.role !== 'merged' || row === bestMerged);
  const withIntervals = width >= INTERVALS_FROM;
  const rows = listed.slice(0, MOST_POLICIES).map(({ arm, same: [same] }) => {
    const { name, successRate, differenceToBase, allRollouts } = arm;
    const interval = successRate?.interval;
    return [
      same === undefined ? name : `${name} (${policyText(same.name)})`,
      successRate ? valueText(successRate) : 'failed',
      ...(withIntervals ? [interval ? `${percent(interval.low)} to ${percent(interval.high)}` : ''] : []),
      differenceToBase ? valueText(differenceToBase) : MISSING,
      valueText(allRollouts),
    ];
  });
  const head = ['policy', 'success', ...(withIntervals ? ['interval'] : []), 'to base', 'rollouts'];
  const left = ranked.length - rows.length;
  const lines = tableLines(head, rows, width);
  return left > 0 ? [...lines, `${left} more on the page`] : lines;
}

const policyText = (name: string): string => {
  const { length } = name.split('+');
  return length > 1 ? `${length} merged adapters` : name;
};

/** Results of a campaign that stopped before it evaluated policies. */
function foundLines({ base, selection, capabilities }: Report, width: number): string[] {
  const selected = (selection?.candidates ?? []).filter((one) => one.selected).map(({ name }) => name);
  const found = [
    base && `base: success ${valueText(base.successRate)} on ${base.successRate.n} train tasks`,
    selection && `selected: ${selected.join(', ') || 'none'} (${selection.candidates.length} candidates)`,
    ...(capabilities ?? []).map(({ name, status, reason }) =>
      [name, status?.replace('_', ' '), reason].filter(Boolean).join(': '),
    ),
  ];
  return found
    .filter((line) => line !== undefined)
    .slice(0, MOST_POLICIES)
    .flatMap((line) => clip(line, width, 2));
}
