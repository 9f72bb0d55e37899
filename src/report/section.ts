/**
 * What a page and a terminal show, as data: sections of a few kinds of blocks, which html.ts and terminal.ts write. Texts are plain here, and
 * made harmless there.
 */
import type { ArtifactRef } from '../domain/artifacts';
import type { Figure } from '../domain/figure';
import type { ReportedMessage } from './capability-model';
import { MISSING } from './format';
import type { Plot } from './plots';

/** A part of a line. `\n` breaks it; in a table on a terminal it ends the cell. */
export type Piece =
  | string
  | Figure
  | Measured
  | { tone: Tone; text: string }
  /** A command, a hash, a key. */
  | { code: string }
  /** Artifacts, or whatever else `campaign lineage` takes; only pages show them. */
  | { lineage: readonly (ArtifactRef | string)[] }
  /** To a place of the same page. */
  | { link: string; to: string };

/** What is measured, but no figure of a report: it leads nowhere. */
export type Measured = Pick<Figure, 'value' | 'unit' | 'interval' | 'std'>;

type Tone = 'quiet' | 'bad' | 'strong';

/** Pieces stand beside each other with a space between them; absent ones vanish. */
export type Line = Piece | undefined | readonly (Piece | undefined)[];

/** A detail is only for a page; all else is for a terminal as well. */
interface Shown {
  detail?: boolean;
}

interface ColumnOptions extends Shown {
  /** On a terminal that is too narrow the column with the lowest number is left out first, one without a number last. */
  spare?: number;
}

export interface Table {
  kind: 'table';
  columns: readonly ({ head: string } & ColumnOptions)[];
  rows: readonly (readonly Line[])[];
  /** So many rows at most, but for a page. */
  most?: number | undefined;
}

/** Messages of a conversation; `missing` of them are left out at its end. */
export interface Quote {
  kind: 'quote';
  messages: readonly ReportedMessage[];
  cited?: number | undefined;
  missing?: number | undefined;
}

export type Block = Shown &
  (
    | { kind: 'paragraph'; text: Line; tone?: Tone | undefined }
    | { kind: 'list'; items: readonly Line[] }
    | Table
    | Quote
    /** As of `diff -u`; `missing` lines are left out. */
    | { kind: 'diff'; lines: readonly string[]; missing?: number | undefined }
    | { kind: 'plot'; plot: Plot; caption?: string; from?: readonly ArtifactRef[] | undefined }
    | { kind: 'fold'; summary: Line; blocks: Blocks; open?: boolean; id?: string }
  );

/** Absent blocks vanish, as do tables without rows, lists without items and sections without blocks. */
export type Blocks = readonly (Block | undefined | false)[];

export interface Section extends Shown {
  /** The place that links lead to. */
  id?: string;
  title?: string;
  /** Of the heading: 3 for a part of the section before. */
  level?: 2 | 3;
  blocks: Blocks;
}

export interface Page {
  title: string;
  /** Whose figures and artifacts it shows, for the commands that lead back from them. */
  campaign?: string;
  sections: readonly Section[];
}

export const detail = (block: Block): Block => ({ ...block, detail: true });
export const paragraph = (text: Line, tone?: Tone): Block => ({ kind: 'paragraph', text, tone });
export const note = (text: Line): Block => detail(paragraph(text, 'quiet'));
export const list = (items: readonly Line[]): Block => ({ kind: 'list', items });
export const fold = (summary: Line, blocks: Blocks, more: { open?: boolean; id?: string } = {}): Block => ({
  kind: 'fold',
  summary,
  blocks,
  ...more,
});

export type Column<Row> = readonly [head: string, cell: (row: Row) => Line, options?: ColumnOptions];

/** A cell that is undefined is shown as missing. */
export function table<Row>(
  rows: readonly Row[],
  columns: readonly (Column<Row> | false)[],
  { most }: { most?: number } = {},
): Block {
  const kept = columns.filter((column) => column !== false);
  return {
    kind: 'table',
    columns: kept.map(([head, , options]) => ({ head, ...options })),
    rows: rows.map((row) => kept.map(([, cell]) => cell(row) ?? MISSING)),
    most,
  };
}

export const piecesOf = (line: Line): Piece[] =>
  (Array.isArray(line) ? (line as readonly (Piece | undefined)[]) : [line as Piece | undefined]).filter(
    (piece) => piece !== undefined && piece !== '',
  ) as Piece[];

/** What there is to show, with or without details. */
export const shownSections = (sections: readonly Section[], details: boolean) =>
  sections.flatMap((section) => {
    const blocks = section.detail && !details ? [] : shownBlocks(section.blocks, details);
    return blocks.length > 0 ? [{ ...section, blocks }] : [];
  });

const shownBlocks = (blocks: Blocks, details: boolean): Block[] =>
  blocks.flatMap((block) => {
    if (!block || (block.detail && !details)) return [];
    switch (block.kind) {
      case 'table':
        return shownTable(block, details);
      case 'fold':
        return [{ ...block, blocks: shownBlocks(block.blocks, details) }];
      case 'list':
        return block.items.length > 0 ? [block] : [];
      case 'paragraph':
        return piecesOf(block.text).length > 0 ? [block] : [];
      case 'plot':
        return details ? [block] : [];
      default:
        return [block];
    }
  });

function shownTable(whole: Table, details: boolean): Block[] {
  if (details || whole.rows.length === 0) return whole.rows.length > 0 ? [whole] : [];
  const { columns, rows, most = Infinity } = whole;
  const isShown = (_: unknown, n: number) => !columns[n]?.detail;
  const short = {
    ...whole,
    columns: columns.filter(isShown),
    rows: rows.slice(0, most).map((row) => row.filter(isShown)),
  };
  return rows.length > most ? [short, paragraph(`and ${rows.length - most} more: see the page`)] : [short];
}
