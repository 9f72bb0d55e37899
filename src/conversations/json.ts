/**
 * JSON as Python and other programs write it into logs: with NaN and infinities, with halves of surrogate pairs, and at any length. One reader for
 * lines, `.json` and entries of `.eval`.
 */
import { randomUUID } from 'node:crypto';
import { rewriteJson } from '../domain/json';
import { measureJson } from '../domain/json-size';
import { toWellFormed } from '../domain/plain-text';

/** No log of Inspect is nested so deep; whatever walks through a value goes down as deep. */
const MOST_LEVELS = 1_000;

/** Stands in the text for a number that JSON does not have. */
const MARK = randomUUID();
const NUMBERS: Record<string, number> = { NaN, Infinity, '-Infinity': -Infinity };
/** Not the name of a field. */
const NOT_JSON = /-?\b(?:NaN|Infinity)\b(?!\s*:)/g;
/** An escape that may be half of a pair. */
const SURROGATE = /\\u[dD][89a-fA-F]/;

/** Reads a JSON text; halves of surrogate pairs are U+FFFD, which is added to `warnings`. Throws where it is none. */
export function readJson(text: string, warnings: string[]): unknown {
  if (measureJson(text, { values: Infinity, levels: MOST_LEVELS }).exceeded)
    throw new Error(`it is nested deeper than ${MOST_LEVELS}`);
  const value = parseNumbers(text);
  if (!SURROGATE.test(text)) return value;
  let count = 0;
  const repaired = (one: string) => {
    const whole = toWellFormed(one);
    if (whole !== one) count += 1;
    return whole;
  };
  const whole = mapLeaves(value, (leaf) => (typeof leaf === 'string' ? repaired(leaf) : leaf), repaired);
  if (count === 0) return value;
  warnings.push('half a character (a lone surrogate) is read as U+FFFD');
  return whole;
}

function parseNumbers(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    let found = false;
    const marked = rewriteJson(text, {
      outside: (part) => part.replace(NOT_JSON, (number) => ((found = true), `"${MARK}${number}"`)),
    });
    if (!found) throw error;
    return JSON.parse(marked, (_, one: unknown) =>
      typeof one === 'string' && one.startsWith(MARK) ? NUMBERS[one.slice(MARK.length)] : one,
    );
  }
}

/** Changes every value in a JSON value that holds no others, and the fields' names. */
export function mapLeaves(
  value: unknown,
  change: (leaf: unknown) => unknown,
  rename: (field: string) => string = (field) => field,
): unknown {
  if (Array.isArray(value)) return value.map((one) => mapLeaves(one, change, rename));
  if (typeof value !== 'object' || value === null) return change(value);
  return Object.fromEntries(
    Object.entries(value).map(([field, one]) => [rename(field), mapLeaves(one, change, rename)]),
  );
}
