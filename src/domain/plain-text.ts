/** Text from outside the program made safe to show. `plainLine` is for a name or message within a structure: a line of a prompt, a table, a heading. */

const ESCAPE_SEQUENCES = new RegExp(
  [
    // CSI: colours and cursor movements.
    '(?:\\u001b\\[|\\u009b)[0-?]*[ -/]*[@-~]',
    // OSC, DCS and the like: titles, links, clipboard. Without an end only the introducer goes, so that no text is hidden.
    '(?:\\u001b[\\]PX^_]|[\\u0090\\u0098\\u009d-\\u009f])[^\\u0007\\u001b\\u0080-\\u009f]*(?:\\u0007|\\u001b\\\\|\\u009c)',
    '\\u001b[ -/]*[0-OQ-WYZ\\\\`-~]',
  ].join('|'),
  'g',
);
/** Control characters except line feed, line and paragraph separators, and characters that change the direction of writing. */
const CONTROLS = /[^\P{Cc}\n]|\p{Bidi_Control}|[\u2028\u2029]|\p{Cs}/gu;

/** Removes escape sequences and control characters, so that nothing moves a cursor. Line feeds stay; a tab becomes a space. */
export const plainText = (text: string): string =>
  text.replace(ESCAPE_SEQUENCES, '').replaceAll('\t', ' ').replace(CONTROLS, '');

const LINE_BREAKS = /\r\n|[\n\v\f\r\u0085\u2028\u2029]/g;

/** Writes every character that some reader takes for a line break as `\n`. */
export const escapeLineBreaks = (text: string): string => text.replace(LINE_BREAKS, '\\n');

export const plainLine = (text: string): string => plainText(escapeLineBreaks(text));

const LONGEST_QUOTE = 500;

/** Returns the text as one short line for an error message. An endpoint may repeat the key that it was sent: it is taken out. */
export function quoteLine(text: string, key: string | undefined): string {
  const line = plainLine((key === undefined ? text : text.replaceAll(key, '(key)')).replace(/\s+/g, ' ')).trim();
  return line.length > LONGEST_QUOTE ? `${line.slice(0, LONGEST_QUOTE)} ...` : line;
}

/** Characters that begin or end something in Markdown, and what some renderers make a link of. Within a word `_` does neither. */
const MARKDOWN = /[\\`*{}[\]<>#|~&!$]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|:(?=\/\/)|(?<=(?:^|[^\p{L}\p{N}])www)\./giu;
const LINE_START = /^(\d{1,9}(?=[.)])|(?=[-+=]))/;

/** Returns the text as one line of Markdown that renders as these characters and nothing else. */
export const escapeMarkdown = (text: string): string =>
  plainLine(text).trim().replace(MARKDOWN, '\\$&').replace(LINE_START, '$1\\');

const HALF_CHARACTER = /\p{Cs}/gu;

/** Replaces halves of surrogate pairs, which no UTF-8 text can hold, by U+FFFD. */
export const toWellFormed = (text: string): string => text.replace(HALF_CHARACTER, '\uFFFD');

export const HALF_CHARACTER_PROBLEM =
  'holds half of a surrogate pair, which is not valid Unicode; cut texts between characters';

/** Returns where the first text that is not valid Unicode stands in a value; undefined if there is none. */
export function findHalfCharacter(value: unknown): (string | number)[] | undefined {
  if (typeof value === 'string') return /\p{Cs}/u.test(value) ? [] : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  for (const [key, inner] of Object.entries(value)) {
    const path = /\p{Cs}/u.test(key) ? [] : findHalfCharacter(inner);
    if (path) return [Array.isArray(value) ? Number(key) : toWellFormed(key), ...path];
  }
  return undefined;
}
