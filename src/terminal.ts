/**
 * Text on a terminal, in one way for the whole program: without control characters, cut, wrapped and in columns, as wide as a terminal shows
 * it. Pages spell out control characters instead (`visible`), so that a reader sees what a model wrote.
 */
import width from 'string-width';
import { plainText } from './domain/plain-text';

export { width };

/** Control characters that JSON and texts may hold as they are. */
const RAW = /[\u007f-\u009f\u2028\u2029]|\p{Bidi_Control}/gu;

/** Spells those out, which leaves JSON as it was, and removes escape sequences: nothing that is printed moves the cursor or sets anything. */
export const printable = (text: string): string =>
  plainText(text.replace(RAW, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`));

/** Prints to stdout. Commands print by this and by `note` alone. */
export const print = (text: string): void => console.log(printable(text));

export const note = (text: string): void => void process.stderr.write(`${printable(text)}\n`);

/** Returns the width of a terminal; elsewhere that of COLUMNS, or undefined, with which lines stay whole. */
export const columnsOf = (out: NodeJS.WriteStream = process.stdout): number | undefined =>
  out.columns || Number(process.env['COLUMNS']) || undefined;

/** At most so many columns; what is cut ends with an ellipsis. */
export function cut(text: string, columns: number): string {
  if (width(text) <= columns) return text;
  let kept = '';
  let room = columns - 1;
  for (const character of text) {
    room -= width(character);
    if (room < 0) break;
    kept += character;
  }
  return `${kept}…`;
}

export const pad = (text: string, columns: number): string => text + ' '.repeat(Math.max(0, columns - width(text)));

interface WrapOptions {
  indent?: number;
  /** Cuts words that are too long. Leave it out for paths and commands, which are copied from a terminal. */
  cutsWords?: boolean;
}

/** Wraps a line between words. Where several spaces follow one another, they and what is around them stay together. */
export function wrap(line: string, columns = Infinity, { indent = 0, cutsWords = false }: WrapOptions = {}): string[] {
  const lines: string[] = [];
  for (const word of line.split(/(?<=\S) (?=\S)/)) {
    const last = lines.at(-1);
    if (last !== undefined && width(last) + 1 + width(word) <= columns) lines[lines.length - 1] = `${last} ${word}`;
    else {
      const next = last === undefined ? word : ' '.repeat(indent) + word;
      lines.push(cutsWords ? cut(next, columns) : next);
    }
  }
  return lines;
}

/** Indent of continuation lines. */
const INDENT = 2;

/** Every line wrapped but those of tables, which have columns of their own. */
export const wrapText = (text: string, columns: number | undefined): string =>
  text
    .split('\n')
    .flatMap((line) =>
      /\S {2,}\S/.test(line) ? [line] : wrap(line, columns, { indent: INDENT + line.search(/\S|$/) }),
    )
    .join('\n');

/** Rows in columns as wide as their widest cell; all but the first are aligned to the right where `numbers`. */
export function alignColumns(rows: readonly string[][], { numbers = false } = {}): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => width(row[column] ?? ''))));
  const aligned = (cell: string, column: number) => {
    const room = widths[column] ?? 0;
    return numbers && column > 0 ? ' '.repeat(room - width(cell)) + cell : pad(cell, room);
  };
  return rows.map((row) => row.map(aligned).join('  ').trimEnd());
}
