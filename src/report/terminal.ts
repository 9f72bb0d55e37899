/**
 * Sections on a terminal. Invariants: no line is longer than the terminal is wide; nothing that a model or a module wrote moves the cursor; what is
 * left out of a conversation or a table is said.
 */
import { cut, pad, width as widthOf, wrap as wrapLine } from '../terminal';
import type { ReportedMessage } from './capability-model';
import {
  beginningOf,
  measuredText,
  messageRoles,
  shortName,
  shortPercent,
  shortId,
  spreadText,
  valueText,
  visible,
  wholeNumber,
} from './format';
import {
  type Block,
  type Blocks,
  type Line,
  type Piece,
  piecesOf,
  type Quote,
  shownBlocks,
  type Table,
} from './blocks';

/** Where a terminal does not say how wide it is. */
const WIDTH = 99;
/** Narrower ones break the lines themselves. */
const NARROWEST = 40;

/** Text without a last newline, in so many columns. */
export function terminalText(blocks: Blocks, columns: number = WIDTH): string {
  const width = Math.max(NARROWEST, Math.min(columns, WIDTH));
  return linesOf(blocks, width).join('\n').trimStart();
}

const linesOf = (blocks: Blocks, width: number): string[] =>
  shownBlocks(blocks, false).flatMap((block) => blockLines(block, width));

const INDENT = '  ';

function blockLines(block: Block, width: number): string[] {
  switch (block.kind) {
    case 'heading':
      return ['', ...wrap(block.text, width)];
    case 'paragraph':
      return wrap(lineText(block.text), width);
    case 'list':
      return block.items.flatMap((item) => wrap(lineText(item), width));
    case 'facts':
      return block.facts.flatMap(({ name, value, note }) =>
        wrap([`${name}: ${lineText(value)}`, lineText(note)].filter(Boolean).join(', '), width),
      );
    case 'table':
      return tableLines(block, width);
    case 'quote':
      return quoteLines(block, width);
    case 'fold': {
      const inner = linesOf(block.blocks, width - INDENT.length);
      return [...wrap(lineText(block.summary), width), ...inner.map((line) => INDENT + line)];
    }
    case 'source':
    case 'plot':
    case 'decision':
      return [];
  }
}

const lineText = (line: Line): string => piecesOf(line).map(pieceText).filter(Boolean).join(' ');

function pieceText(piece: Piece): string {
  if (typeof piece === 'string') return piece;
  if ('tone' in piece) return piece.text;
  if ('code' in piece) return piece.code;
  if ('link' in piece) return piece.link;
  if ('rollout' in piece) return shortId(piece.rollout);
  if ('lineage' in piece) return '';
  return measuredText(piece);
}

const oneLine = (text: string): string => visible(text.replace(/\s*[\n\r\t]\s*/g, ' '));
/** Further lines are indented; a word that is too long is cut. */
const wrap = (text: string, width: number): string[] => wrapLine(oneLine(text), width, { indent: 2, cutsWords: true });

interface TextColumn {
  head: string;
  cells: string[];
  spare: number;
  /** Of a figure; its value is the column before. */
  isSpread?: boolean;
}

/** When intervals are left out, the last one first. */
const INTERVALS = 3;
/** Of a column; of the first one where spare columns could be left out, and where others would have to. */
const [WIDEST, LEAST_NAME, SHORTEST_NAME] = [38, 16, 10];
const GAP = '  ';
const NUMBER = /^(–|[-+]?[\d,.]+(%| pt| ms)?)$/;

/** Figures are two columns: values and intervals. */
function textColumns({ columns, rows }: Table): TextColumn[] {
  return columns.flatMap(({ head, spare = Infinity }, n) => {
    const cells = rows.map((row) => cellPieces(row[n]));
    const figures = cells.map((pieces) => pieces.find((piece) => typeof piece !== 'string' && 'value' in piece));
    const values = cells.map((pieces, row) => (figures[row] ? valueText(figures[row]) : lineText(pieces)));
    const spreads = figures.map((figure) => (figure && spreadText(figure)) ?? '');
    const level = figures.find((figure) => figure?.interval)?.interval?.level;
    const spread = level === undefined ? 'spread' : `${shortPercent(level)} interval`;
    return [
      { head, cells: values, spare },
      { head: spread, cells: spreads, spare: Math.min(spare, INTERVALS), isSpread: true },
    ].filter(({ isSpread, cells: texts }) => !isSpread || texts.some(Boolean));
  });
}

function cellPieces(cell: Line): Piece[] {
  const pieces = piecesOf(cell);
  const end = pieces.indexOf('\n');
  return end < 0 ? pieces : pieces.slice(0, end);
}

/** Of a table. */
const ROWS = 30;

/** Columns as wide as their widest cell. Where they are too wide, first the names give way, then columns are left out. */
function tableLines({ rows, ...table }: Table, width: number): string[] {
  const columns = textColumns({ ...table, rows: rows.slice(0, ROWS) }).map(({ head, cells, ...column }) => {
    const texts = [head, ...cells].map((cell) => oneLine(cell).replace(/\s+/g, ' '));
    return { ...column, head, texts, width: Math.min(WIDEST, Math.max(...texts.map(widthOf))) };
  });
  const [names, ...others] = columns as [(typeof columns)[number], ...typeof columns];
  const shown = new Set(others);
  const room = () => [...shown].reduce((left, column) => left - GAP.length - column.width, width);
  for (const column of [...others].reverse().sort((a, b) => a.spare - b.spare))
    if (room() < Math.min(names.width, column.spare < Infinity ? LEAST_NAME : SHORTEST_NAME)) {
      shown.delete(column);
      // A figure that can be spared says nothing without its interval.
      if (column.isSpread && column.spare < INTERVALS) shown.delete(others[others.indexOf(column) - 1]!);
    }
  const first = Math.min(names.width, room());
  const lines = names.texts.map((name, row) => {
    const cells = [...shown].map(({ texts, width: wide }) => {
      const cell = cut(texts[row]!, wide);
      const isNumbers = texts.slice(1).every((text) => text === '' || NUMBER.test(text));
      return isNumbers ? ' '.repeat(wide - widthOf(cell)) + cell : pad(cell, wide);
    });
    return [pad(shortName(name, first), first), ...cells].join(GAP).trimEnd();
  });
  const leftOut = others.filter((column) => !shown.has(column) && !column.isSpread).map(({ head }) => head);
  if (rows.length > ROWS) lines.push(`and ${rows.length - ROWS} more: see the page`);
  return leftOut.length === 0 ? lines : [...lines, ...wrap(`left out here: ${leftOut.join(', ')}`, width)];
}

/** The characters of a message that a terminal shows. */
const CHARACTERS = 400;
const ROLE = 8;

const quoteLines = ({ messages, cited }: Quote, width: number): string[] =>
  messages.flatMap((message) => messageLines(shortMessage(message), width, message.message === cited ? '> ' : INDENT));

function shortMessage({ text, missing = 0, ...message }: ReportedMessage): ReportedMessage {
  const seen = visible(text);
  const more = Math.max(0, seen.length - CHARACTERS) + missing;
  return { ...message, text: beginningOf(seen, CHARACTERS), ...(more > 0 && { missing: more }) };
}

function messageLines({ role, text, missing = 0 }: ReportedMessage, width: number, mark: string): string[] {
  const whole = missing > 0 ? `${text} … ${wholeNumber(missing)} more characters` : text;
  const room = width - ROLE - 4;
  // What has no spaces, such as the arguments of a call, goes on in the next line.
  const lines = wrap(whole.replaceAll(new RegExp(`\\S{${room - 2}}`, 'g'), '$& '), room);
  return lines.map((line, n) =>
    `${n === 0 ? mark + messageRoles[role].padEnd(ROLE) : INDENT + ' '.repeat(ROLE)}${line}`.trimEnd(),
  );
}
