/** Measures the number of values in a JSON text and their nesting without parsing it: 15 MB of `{}` take more than a second to parse. */

export interface JsonBounds {
  values: number;
  levels: number;
}

/**
 * Bounds on a line that a process of an environment writes, so that reading it stops no worker: 100,000 tasks of a benchmark are some
 * 600,000 values, and no schema or argument of a tool is nested so deep.
 */
export const LINE: JsonBounds = { values: 1_000_000, levels: 100 };

interface JsonSize {
  values: number;
  exceeded?: keyof JsonBounds;
  /** The member of the outermost object in which it stopped. */
  field?: string;
}

const [QUOTE, COMMA, COLON] = [34, 44, 58];
const [OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [91, 93, 123, 125];

/** Measures a text up to the first bound that it exceeds. A text that is no JSON is measured as if it were. */
export function measureJson(text: string, most: JsonBounds): JsonSize {
  let values = 1;
  let levels = 0;
  let name: [start: number, end: number] = [0, 0];
  let field: string | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) {
      const start = at + 1;
      at = endOfString(text, start);
      if (levels === 1) name = [start, at];
    } else if (character === COMMA) values += 1;
    else if (character === COLON && levels === 1) field = text.slice(...name).slice(0, 100);
    else if (character === OPEN_LIST || character === OPEN_OBJECT) {
      levels += 1;
      const next = text.charCodeAt(at + 1);
      if (next !== CLOSE_LIST && next !== CLOSE_OBJECT) values += 1;
    } else if (character === CLOSE_LIST || character === CLOSE_OBJECT) levels -= 1;
    else continue;
    const exceeded = values > most.values ? 'values' : levels > most.levels ? 'levels' : undefined;
    if (exceeded) return { values, exceeded, ...(field !== undefined && { field }) };
  }
  return { values };
}

/** Returns the place of the quote that ends a string. */
export function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start); end >= 0; end = text.indexOf('"', end + 1)) {
    let before = end;
    while (before > start && text[before - 1] === '\\') before -= 1;
    if ((end - before) % 2 === 0) return end;
  }
  return text.length;
}
