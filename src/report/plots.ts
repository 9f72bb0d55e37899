/** The two charts of the pages, as data: intervals by row, and lines with marks. web/src/plots.tsx draws them. */

/** Ends of its interval, where it has one. */
interface Ends {
  low?: number | undefined;
  high?: number | undefined;
}

interface IntervalRow {
  name: string;
  /** Style of its mark. */
  role: string;
  /** `others` are the runs that it is the mean of. */
  measured?: Ends & { value: number; others?: readonly number[] };
  /** What stands beside it. */
  text: string;
  /** What a pointer shows. */
  title: string;
}

interface Point {
  x: number;
  y: number;
}

export interface Mark extends Point, Ends {
  /** The line whose style it has. */
  line: number;
  size?: 'small' | 'large';
  /** Filled with the paper's colour. */
  open?: boolean;
  /** Stands beside it. */
  name?: string;
  title: string;
}

export interface Intervals {
  kind: 'intervals';
  label: string;
  rows: readonly IntervalRow[];
  reference?: { value: number; name: string } | undefined;
}

export interface Lines {
  kind: 'lines';
  label: string;
  width: number;
  height: number;
  x: { label: string; high: number };
  y: { high: number; percent?: boolean };
  lines: readonly { name: string; points: readonly Point[] }[];
  marks: readonly Mark[];
}

export type Plot = Intervals | Lines;

/** An axis is so much longer than its last mark, whose name stands beside it. */
export const ROOM = 1.3;

/** The end of an axis of shares: a tenth above the largest, at most 1. */
export const shareEnd = (values: readonly number[]): number =>
  Math.min(1, Math.ceil(Math.max(0.1, ...values) * 10) / 10);
