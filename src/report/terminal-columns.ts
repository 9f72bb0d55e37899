/** Lines and columns on a terminal. Invariants: no line is longer than it is told; nothing in a text moves the cursor. */
import { cut, wrap as wrapLine } from '../terminal';
import { shortName, visible } from './format';

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
