/**
 * What a page and a terminal show, as data: a few kinds of blocks, which the page's application (web/) and terminal.ts show. Texts are plain here, and
 * made harmless there.
 */
import type { ArtifactRef, Figure } from '../domain/artifacts';
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
  /** A rollout by its key: a page that is served leads to its conversation, and to a message of it. */
  | { rollout: string; message?: number | undefined }
  /** To a place of the same page, or to an address. */
  | { link: string; to: string };

/** What is measured, but no figure of a report: it leads nowhere. */
export type Measured = Pick<Figure, 'value' | 'unit' | 'interval' | 'std'>;

/** `answer`: the sentence that a page is for. */
type Tone = 'quiet' | 'bad' | 'strong' | 'answer';

/** Pieces stand beside each other with a space between them; absent ones vanish. */
export type Line = Piece | undefined | readonly (Piece | undefined)[];

export interface Table {
  kind: 'table';
  columns: readonly ({ head: string } & ColumnOptions)[];
  rows: readonly (readonly Line[])[];
}

interface ColumnOptions {
  detail?: boolean;
  /** On a terminal that is too narrow the column with the lowest number is left out first, one without a number last. */
  spare?: number;
}

/** Messages of a conversation. */
export interface Quote {
  kind: 'quote';
  messages: readonly ReportedMessage[];
  cited?: number | undefined;
}

interface Fact {
  name: string;
  value: Line;
  note?: Line;
}

/** A detail is only for a page; all else is for a terminal as well. */
export type Block = { detail?: boolean } & (
  | { kind: 'heading'; text: string; level: 2 | 3; id?: string | undefined }
  | { kind: 'paragraph'; text: Line; tone?: Tone | undefined }
  | { kind: 'list'; items: readonly Line[]; tone?: Tone | undefined }
  /** The few numbers that come first. */
  | { kind: 'facts'; facts: readonly Fact[] }
  | Table
  | Quote
  | { kind: 'source'; text: string }
  | { kind: 'plot'; plot: Plot; caption: Line }
  /** Of what waits in workflow `of`; only a page that is served can send it. */
  | { kind: 'decision'; of: string; names: readonly string[] }
  | { kind: 'fold'; summary: Line; blocks: Blocks; open?: boolean; id?: string }
);

/** Absent blocks vanish, as do tables without rows, lists without items, lines without pieces and headings of nothing. */
export type Blocks = readonly (Block | undefined | false)[];

export interface Page {
  title: string;
  /** Whose figures and artifacts it shows, for the commands that lead back from them. */
  campaign?: string;
  views: readonly View[];
  /** Whether `campaign view` answers the page's questions: a file can't hold all conversations. */
  served?: boolean;
  /** It changes: the page asks again. */
  live?: boolean;
}

/** A part of a page that is shown alone. */
export interface View {
  id: string;
  name: string;
  blocks: Blocks;
}

/** `id`: the place that links lead to. */
export const heading = (text: string, level: 2 | 3 = 2, id?: string): Block => ({ kind: 'heading', text, level, id });
export const paragraph = (text: Line, tone?: Tone): Block => ({ kind: 'paragraph', text, tone });
export const list = (items: readonly Line[], tone?: Tone): Block => ({ kind: 'list', items, tone });
export const fold = (summary: Line, blocks: Blocks, more: { open?: boolean; id?: string } = {}): Block => ({
  kind: 'fold',
  summary,
  blocks,
  ...more,
});
export const plot = (drawn: Plot, caption: Line): Block => ({ kind: 'plot', plot: drawn, caption, detail: true });
export const details = (...blocks: Blocks): Blocks => blocks.map((block) => block && { ...block, detail: true });
export const note = (text: Line): Block => ({ ...paragraph(text, 'quiet'), detail: true });

export type Column<Row> = readonly [head: string, cell: (row: Row) => Line, options?: ColumnOptions];

/** A cell that is undefined is shown as missing. */
export function table<Row>(rows: readonly Row[], columns: readonly (Column<Row> | false)[]): Block {
  const kept = columns.filter((column) => column !== false);
  return {
    kind: 'table',
    columns: kept.map(([head, , options]) => ({ head, ...options })),
    rows: rows.map((row) => kept.map(([, cell]) => cell(row) ?? MISSING)),
  };
}

/** A table of rows that are cells already. */
export const grid = (heads: readonly string[], rows: readonly (readonly Line[])[]): Block =>
  table(
    rows,
    heads.map((head, n) => [head, (row) => row[n]]),
  );

/** Absent ones are null where they have been JSON. */
export const piecesOf = (line: Line): Piece[] =>
  [line].flat().filter((piece): piece is Piece => piece !== undefined && piece !== null && piece !== '');

/** What there is to show, with or without details. */
export const shownBlocks = (blocks: Blocks, withDetails: boolean): Block[] =>
  blocks.reduceRight<Block[]>((rest, block) => {
    const isShown = block && (withDetails || !block.detail) && hasContent(block, rest[0]);
    return isShown ? [withDetails ? block : withoutDetails(block), ...rest] : rest;
  }, []);

function hasContent(block: Block, next: Block | undefined): boolean {
  switch (block.kind) {
    case 'heading':
      return next !== undefined && (next.kind !== 'heading' || next.level > block.level);
    case 'table':
      return block.rows.length > 0;
    case 'list':
      return block.items.length > 0;
    case 'facts':
      return block.facts.length > 0;
    case 'paragraph':
      return piecesOf(block.text).length > 0;
    default:
      return true;
  }
}

function withoutDetails(block: Block): Block {
  if (block.kind !== 'table') return block;
  const isShown = (_: unknown, n: number) => !block.columns[n]?.detail;
  return { ...block, columns: block.columns.filter(isShown), rows: block.rows.map((row) => row.filter(isShown)) };
}
