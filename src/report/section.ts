/**
 * What a page and a terminal show, as data: sections of a handful of kinds of blocks. Whoever shows something makes a list of sections;
 * html.ts and terminal.ts render any of them. Texts are plain here, and made harmless there.
 */
import type { ArtifactRef } from '../domain/artifacts';
import type { Figure } from '../domain/figure';
import type { ReportedMessage } from './capability-model';
import type { Plot } from './plots';

export type Tone = 'quiet' | 'bad' | 'strong';

/** A part of a line; `\n` breaks it. */
export type Piece =
  | string
  | Figure
  | { tone: Tone; text: string }
  /** A command, a hash, a key. */
  | { code: string }
  /** Artifacts, or whatever else `campaign lineage` takes; shown in short. */
  | { lineage: readonly (ArtifactRef | string)[] }
  /** To a place of the same page. */
  | { link: string; to: string };

/** Parts stand beside each other with a space between them; absent ones vanish. */
export type Line = Piece | undefined | readonly (Piece | undefined)[];

/** Where it is shown; both, if it does not say so. */
interface Shown {
  on?: 'page' | 'terminal' | undefined;
}

export interface Column extends Shown {
  head: string;
  /** On a terminal that is too narrow the lowest is left out first; a column without it stays. */
  spare?: number;
}

export type Block = Shown &
  (
    | { kind: 'paragraph'; text: Line; tone?: Tone | undefined }
    /** What has a name: each once, or several under one. */
    | { kind: 'facts'; rows: readonly (readonly [name: string, ...values: Line[]])[] }
    | { kind: 'table'; columns: readonly (string | Column)[]; rows: readonly (readonly Line[])[] }
    | { kind: 'list'; items: readonly Line[] }
    /** Messages of a conversation; `missing` of them are left out at its end. */
    | { kind: 'quote'; messages: readonly ReportedMessage[]; cited?: number | undefined; missing?: number | undefined }
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

export const paragraph = (text: Line, tone?: Tone): Block => ({ kind: 'paragraph', text, tone });
export const note = (text: Line): Block => ({ kind: 'paragraph', text, tone: 'quiet', on: 'page' });
export const table = (columns: readonly (string | Column)[], rows: readonly (readonly Line[])[]): Block => ({
  kind: 'table',
  columns,
  rows,
});
export const fold = (summary: Line, blocks: Blocks, more: { open?: boolean; id?: string } = {}): Block => ({
  kind: 'fold',
  summary,
  blocks,
  ...more,
});

export const piecesOf = (line: Line): Piece[] =>
  (Array.isArray(line) ? (line as readonly (Piece | undefined)[]) : [line as Piece | undefined]).filter(
    (piece) => piece !== undefined && piece !== '',
  ) as Piece[];

/** The blocks of a section or fold that there is something to show of. */
export const shownOn = (where: 'page' | 'terminal', blocks: Blocks): Block[] =>
  blocks.filter((block): block is Block => {
    if (!block || (block.on !== undefined && block.on !== where)) return false;
    if (block.kind === 'table' || block.kind === 'facts') return block.rows.length > 0;
    if (block.kind === 'list') return block.items.length > 0;
    return block.kind !== 'paragraph' || piecesOf(block.text).length > 0;
  });

export const sectionsOn = (where: 'page' | 'terminal', sections: readonly Section[]) =>
  sections
    .filter(({ on }) => on === undefined || on === where)
    .map((section) => ({ ...section, blocks: shownOn(where, section.blocks) }))
    .filter(({ blocks }) => blocks.length > 0);
