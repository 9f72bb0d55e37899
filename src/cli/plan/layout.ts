/** How the plan writes numbers and tables. */
import { wholeNumber } from '../../report/format';
import type { Range } from './counts';

export const between = (range: Range, text: (value: number) => string): string => {
  const [low, high] = [text(range.low), text(range.high)];
  return low === high ? low : `${low} - ${high}`;
};
export const short = (value: number): string => {
  for (const [size, unit] of [
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const)
    if (value >= size) return `${(value / size).toPrecision(3)} ${unit}`;
  return wholeNumber(value);
};
export const rounded = (value: number): string => String(Number(value.toPrecision(2)));

export const aligned = (rows: string[][]): string[] => {
  const widths = rows[0]?.map((_, i) => Math.max(...rows.map((cells) => cells[i]?.length ?? 0))) ?? [];
  return rows.map((cells) =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
};
