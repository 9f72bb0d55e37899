/**
 * Sections on a terminal. Invariants: no line is longer than the terminal is wide; nothing that a model or a module wrote moves the cursor; what is
 * left out of a conversation or a table is said.
 */
import { cut, wrap as wrapLine } from '../terminal';
import { messageRoles, type ReportedMessage } from './capability-model';
import { MISSING, shortName, shortPercent, shortStart, spreadText, valueText, visible, wholeNumber } from './format';
import { type Block, type Column, type Line, type Piece, piecesOf, type Section, sectionsOn, shownOn } from './section';

/** Where a terminal does not say how wide it is. */
const WIDTH = 99;
/** Narrower ones break the lines themselves. */
const NARROWEST = 40;

/** Text without a last newline, in so many columns. */
export function terminalText(sections: readonly Section[], columns: number = WIDTH): string {
  const width = Math.max(NARROWEST, Math.min(columns, WIDTH));
  return sectionsOn('terminal', sections)
    .map(({ title, blocks }) => [
      ...(title === undefined ? [] : wrap(title, width)),
      ...blocks.flatMap((block) => blockLines(block, width)),
    ])
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

/** Lines of a diff. */
const DIFF = 60;
const INDENT = '  ';

function blockLines(block: Block, width: number): string[] {
  switch (block.kind) {
    case 'paragraph':
      return wrap(lineText(block.text), width);
    case 'facts':
      return block.rows.flatMap(([name, ...values]) =>
        wrap(`${name}: ${values.map(lineText).filter(Boolean).join('; ')}`, width),
      );
    case 'table':
      return tableLines(block, width);
    case 'list':
      return block.items.flatMap((item) => wrap(lineText(item), width));
    case 'quote':
      return quoteLines(block, width);
    case 'diff': {
      const more = block.lines.length - DIFF + (block.missing ?? 0);
      return [...block.lines.slice(0, DIFF), ...(more > 0 ? [`… ${more} more lines`] : [])].map((one) =>
        clip(one, width),
      );
    }
    case 'fold':
      return [
        ...wrap(lineText(block.summary), width),
        ...shownOn('terminal', block.blocks).flatMap((inner) =>
          blockLines(inner, width - INDENT.length).map((one) => INDENT + one),
        ),
      ];
    case 'plot':
      return [];
  }
}

const lineText = (line: Line): string => piecesOf(line).map(pieceText).join(' ');

/** A cell is one line: what comes after a break is for the page. */
function cellPieces(cell: Line): Piece[] {
  const pieces = piecesOf(cell);
  const end = pieces.indexOf('\n');
  return end < 0 ? pieces : pieces.slice(0, end);
}

function pieceText(piece: Piece): string {
  if (typeof piece === 'string') return piece;
  if ('tone' in piece) return piece.text;
  if ('code' in piece) return piece.code;
  if ('link' in piece) return piece.link;
  if ('id' in piece) {
    const spread = spreadText(piece);
    return valueText(piece) + (spread === undefined ? '' : ` (${spread})`);
  }
  return piece.lineage.map(shortStart).join(' ');
}

const oneLine = (text: string): string => visible(text.replace(/\s*[\n\r\t]\s*/g, ' '));
const clip = (text: string, width: number): string => cut(oneLine(text), width);
/** Further lines are indented; a word that is too long is cut. */
const wrap = (text: string, width: number): string[] => wrapLine(oneLine(text), width, { indent: 2, cutsWords: true });

interface TextColumn {
  cells: string[];
  spare: number;
  right: boolean;
  isInterval?: boolean;
}

/** When intervals give way, the last one first. */
const INTERVALS = 3;

const NUMBER = /^(–|[-+]?[\d,.]+(%| pt| ms)?)$/;
/** Of a column, and of the first one where room is short. */
const [WIDEST, LEAST_NAME] = [38, 16];

/** Figures are two columns: values and intervals. */
function columnsOf(column: string | Column, cells: readonly Line[]): TextColumn[] {
  const { head, spare = Infinity, on } = typeof column === 'string' ? { head: column } : { on: undefined, ...column };
  if (on === 'page') return [];
  const figures = cells.map((cell) => cellPieces(cell).find((piece) => typeof piece !== 'string' && 'id' in piece));
  if (figures.every((figure) => figure === undefined)) {
    const texts = cells.map((cell) => cellPieces(cell).map(pieceText).join(' '));
    return [{ cells: [head, ...texts], spare, right: texts.every((text) => text === '' || NUMBER.test(text)) }];
  }
  const values = cells.map((cell, n) => (figures[n] ? valueText(figures[n]) : lineText(cell) || MISSING));
  const spreads = figures.map((figure) => (figure ? (spreadText(figure) ?? '') : ''));
  const level = figures.find((figure) => figure?.interval)?.interval?.level;
  const interval = level === undefined ? 'spread' : `${shortPercent(level)} interval`;
  return [
    { cells: [head, ...values], spare, right: true },
    { cells: [interval, ...spreads], spare: Math.min(spare, INTERVALS), right: false, isInterval: true },
  ].filter(({ cells: [, ...texts] }) => texts.some((text) => text !== ''));
}

/** Columns as wide as their widest cell. Where they are too wide, first the spare ones give way, then the first column. */
function tableLines({ columns, rows }: Extract<Block, { kind: 'table' }>, width: number): string[] {
  let shown = columns
    .flatMap((column, n) =>
      columnsOf(
        column,
        rows.map((row) => row[n]),
      ),
    )
    .map((column) => ({ ...column, cells: column.cells.map((cell) => oneLine(cell).replace(/\s+/g, ' ')) }))
    .map((column) => ({ ...column, width: Math.min(WIDEST, Math.max(...column.cells.map(({ length }) => length))) }));
  const over = (): number => shown.reduce((sum, column) => sum + column.width + 2, -2) - width;
  const first = shown[0]!;
  const give = Math.max(0, first.width - LEAST_NAME);
  const leftOut: string[] = [];
  for (const spare of [...shown].reverse().sort((a, b) => a.spare - b.spare))
    if (over() > give && spare !== first && spare.spare < Infinity) {
      shown = shown.filter((one) => one !== spare);
      if (!spare.isInterval) leftOut.push(spare.cells[0] ?? '');
    }
  first.width -= Math.max(0, Math.min(give, over()));
  const lines = first.cells.map((_, row) => {
    const cells = shown.map(({ cells: own, right, width: wide }, n) => {
      const cell = own[row] ?? '';
      if (n === 0) return shortName(cell, wide).padEnd(wide);
      return right ? cut(cell, wide).padStart(wide) : cut(cell, wide).padEnd(wide);
    });
    return cut(cells.join('  ').trimEnd(), width);
  });
  return leftOut.length === 0 ? lines : [...lines, ...wrap(`left out here: ${leftOut.join(', ')}`, width)];
}

/** Messages of a conversation at its beginning and its end, and characters of one. */
const [FIRST, LAST] = [7, 3];
const CHARACTERS = 400;
const ROLE = 8;

interface Quote {
  messages: readonly ReportedMessage[];
  missing?: number | undefined;
}

/** As much of a conversation as is read in passing: its `missing` messages are those that stand between two or after the last. */
export function shortEpisode<Episode extends Quote>({ messages, missing = 0, ...one }: Episode) {
  const isLong = messages.length > FIRST + LAST + 1;
  const kept = isLong ? [...messages.slice(0, FIRST), ...messages.slice(-LAST)] : messages;
  const more = messages.length - kept.length + missing;
  return { ...one, messages: kept.map(shortMessage), ...(more > 0 && { missing: more }) };
}

function shortMessage({ text, missing = 0, ...message }: ReportedMessage): ReportedMessage {
  const seen = visible(text);
  const more = Math.max(0, seen.length - CHARACTERS) + missing;
  // Never half of a character.
  const kept = seen.slice(0, CHARACTERS).replace(/[\uD800-\uDBFF]$/, '');
  return { ...message, text: kept, ...(more > 0 && { missing: more }) };
}

function quoteLines(quote: Quote & { cited?: number | undefined }, width: number): string[] {
  const { messages, missing = 0 } = shortEpisode(quote);
  // The first of an excerpt is where it begins.
  let next = quote.cited === undefined ? 0 : (messages[0]?.message ?? 0);
  const leftOut = (count: number): string[] =>
    count > 0 ? [clip(`  … ${wholeNumber(count)} messages are left out here …`, width)] : [];
  const shown = messages.flatMap((message) => {
    const gap = leftOut(message.message - next);
    next = message.message + 1;
    return [...gap, ...messageLines(message, width, message.message === quote.cited ? '> ' : INDENT)];
  });
  return [...shown, ...leftOut(messages.length + missing - next)];
}

function messageLines({ role, text, missing = 0 }: ReportedMessage, width: number, mark: string): string[] {
  const whole = missing > 0 ? `${text} … ${wholeNumber(missing)} more characters` : text;
  const room = width - ROLE - 4;
  // What has no spaces, such as the arguments of a call, goes on in the next line.
  const lines = wrap(whole.replaceAll(new RegExp(`\\S{${room - 2}}`, 'g'), '$& '), room);
  return lines.map((one, n) =>
    `${n === 0 ? mark : INDENT}${(n === 0 ? messageRoles[role] : '').padEnd(ROLE)}${one.trimEnd()}`.trimEnd(),
  );
}
