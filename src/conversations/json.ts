/** Reads JSON as Python and other programs write it into logs: with NaN and infinities, and with halves of surrogate pairs. */
import { rewriteJson } from '../domain/json';
import { measureJson } from '../domain/json-size';
import { toWellFormed } from '../domain/plain-text';

/** Limit for nesting: no conversation is that deep, and later code recurses through values. */
const MOST_LEVELS = 200;
/** A number that JSON does not have, and not the name of a field. */
const NOT_JSON = /-?\b(?:NaN|Infinity)\b(?!\s*:)/g;
/** An escape that may be half of a pair. */
const SURROGATE = /\\u[dD][89a-fA-F]/;

const whole = (_: string, value: unknown): unknown => (typeof value === 'string' ? toWellFormed(value) : value);

/** Reads NaN and infinities as text ("NaN"), halves of surrogate pairs as U+FFFD. Throws where it is no JSON. */
export function readJson(text: string): unknown {
  if (measureJson(text, { values: Infinity, levels: MOST_LEVELS }).exceeded)
    throw new Error(`it is nested deeper than ${MOST_LEVELS}`);
  const reviver = SURROGATE.test(text) ? whole : undefined;
  try {
    return JSON.parse(text, reviver);
  } catch (error) {
    const marked = rewriteJson(text, { outside: (part) => part.replace(NOT_JSON, '"$&"') });
    if (marked === text) throw error;
    return JSON.parse(marked, reviver);
  }
}
