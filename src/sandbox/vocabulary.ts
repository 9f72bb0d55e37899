/**
 * Schemas of a module's tools: what is wrong with them, the values that they allow, and texts compared with them. The
 * work is limited, and no regular expression is run that a module wrote.
 */
import type { JsonSchema, ToolSchema } from '../domain/messages';
import { MOST_PARTS, NAME_CHARS, quoted, SCHEMA } from './limits';

/** Places in a text that are looked at while it is compared with a schema. */
const MATCH_STEPS = 500_000;

/** `describe: <tool>.parameters.properties.<name>: <what is wrong>: <how to mend it>`, for each place. */
export const schemaFindings = (tools: readonly ToolSchema[]): string[] =>
  tools.flatMap(({ name, parameters, outputSchema = {} }) =>
    Object.entries({ parameters, outputSchema }).flatMap(([field, schema]) =>
      [...problemsOf(schema, { path: `${name}.${field}`, depth: 0 })].map((wrong) => `describe: ${quoted(wrong)}`),
    ),
  );

function* problemsOf(schema: unknown, { path, depth }: { path: string; depth: number }): Generator<string> {
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    return yield `${path}: no schema: give an object`;
  if (depth > SCHEMA.depth) return yield `${path}: nested more than ${SCHEMA.depth} deep: give fewer levels`;
  const { properties, items, ...own } = schema as Record<string, unknown>;
  for (const [keyword, problem] of Object.entries(PROBLEMS)) {
    const wrong = own[keyword] === undefined ? undefined : problem(own[keyword]);
    if (wrong) yield `${path}.${keyword}: ${wrong}`;
  }
  if (Number(own.minimum) > Number(own.maximum)) yield `${path}: minimum is above maximum`;
  if (items !== undefined) yield* problemsOf(items, { path: `${path}.items`, depth: depth + 1 });
  if (properties === undefined) return;
  if (typeof properties !== 'object' || properties === null || Array.isArray(properties))
    return yield `${path}.properties: no object: give a schema under each name`;
  const entries = Object.entries(properties);
  if (entries.length > SCHEMA.properties)
    return yield `${path}.properties: ${entries.length}, more than ${SCHEMA.properties}`;
  for (const [name, property] of entries)
    yield* problemsOf(property, { path: `${path}.properties.${quoted(name, 50)}`, depth: depth + 1 });
}

const PROBLEMS: Record<string, (value: unknown) => string | undefined> = {
  enum: (value) => {
    if (!Array.isArray(value) || value.length === 0) return 'no list of values: give one or more';
    if (value.length > SCHEMA.options)
      return `${value.length} values, more than ${SCHEMA.options}: give a pattern or fewer`;
    return value.every(isValue) ? undefined : `give texts of up to ${NAME_CHARS} characters, or numbers`;
  },
  pattern: (value) => {
    if (typeof value !== 'string') return 'no text: give a regular expression';
    if (value.length > SCHEMA.patternChars)
      return `${value.length} characters, more than ${SCHEMA.patternChars}: give a shorter one`;
    if (
      [...value.matchAll(/\{(\d+)(?:,(\d*))?\}/g)].some(([, ...counts]) =>
        counts.some((n) => Number(n ?? 0) > SCHEMA.repeat),
      )
    )
      return `it repeats more than ${SCHEMA.repeat} times: repeat less`;
    return isExpression(value) ? undefined : 'no regular expression: mend it';
  },
  minimum: (value) => (Number.isFinite(value) ? undefined : 'no number: give one'),
  maximum: (value) => (Number.isFinite(value) ? undefined : 'no number: give one'),
  multipleOf: (value) => (Number.isFinite(value) && Number(value) > 0 ? undefined : 'give a number above 0'),
};

const isValue = (value: unknown): boolean =>
  typeof value === 'string'
    ? value.length <= NAME_CHARS
    : value === null || ['number', 'boolean'].includes(typeof value);

/** It is read, never run. */
function isExpression(pattern: string): boolean {
  try {
    return new RegExp(pattern) instanceof RegExp;
  } catch {
    return false;
  }
}

export interface Vocabulary {
  number: boolean;
  parts: string[][];
  /** Parts that a user names by a word (others are literals, digits, characters of an identifier). */
  words: boolean[];
}

const vocabulary = (number: boolean, parts: string[][]): Vocabulary => ({ number, parts, words: parts.map(isWords) });
const isWords = (options: string[]): boolean => options.length > 1 && options.every((o) => /^[a-z]{2,}$/i.test(o));

/** Of enums, ranges of whole numbers, and patterns made of literals, (a|b) groups and [a-z]{n} classes; of no other schema. */
export function vocabularyOf(schema: JsonSchema): Vocabulary | undefined {
  const number = schema.type === 'integer' || schema.type === 'number';
  if (schema.enum) return vocabulary(number, [schema.enum.map(String)]);
  if (number && schema.minimum !== undefined && schema.maximum !== undefined) {
    const step = schema.multipleOf ?? 1;
    const first = Math.ceil(schema.minimum / step);
    const count = Math.floor(schema.maximum / step) - first + 1;
    if (count >= 1 && count <= SCHEMA.options)
      return vocabulary(number, [Array.from({ length: count }, (_, i) => String((first + i) * step))]);
  }
  const parts = schema.pattern === undefined ? undefined : patternParts(schema.pattern);
  return parts && vocabulary(number, parts);
}

/** One part for each literal, group or class of an anchored pattern; undefined for any other pattern. */
function patternParts(pattern: string): string[][] | undefined {
  if (pattern.length > SCHEMA.patternChars || !pattern.startsWith('^') || !pattern.endsWith('$')) return undefined;
  const body = pattern.slice(1, -1);
  const parts: string[][] = [];
  const piece = /\(([\w -]+(?:\|[\w -]+)*)\)|\[([\w-]+)\](?:\{(\d+)\})?|([\w -])/y;
  while (piece.lastIndex < body.length) {
    const found = piece.exec(body);
    if (!found) return undefined;
    const [, group, characters, times, literal] = found;
    const options = group?.split('|') ?? (characters === undefined ? [literal ?? ''] : classCharacters(characters));
    const count = Number(times ?? 1);
    if (options.length === 0 || parts.length + count > MOST_PARTS) return undefined;
    for (let n = 0; n < count; n += 1) parts.push(options);
  }
  return parts;
}

/** `0-9a-f` -> ['0', ..., 'f']; none for a range that runs backwards. */
function classCharacters(text: string): string[] {
  const ranges = [...text.matchAll(/(\w)-(\w)|([\w-])/g)].map(([, from, to, single]) => {
    if (from === undefined || to === undefined) return [single ?? ''];
    const start = from.charCodeAt(0);
    return Array.from({ length: Math.max(0, to.charCodeAt(0) - start + 1) }, (_, i) => String.fromCharCode(start + i));
  });
  return ranges.every((range) => range.length > 0) ? ranges.flat() : [];
}

/** A regular expression's source that matches the text as it is. */
export const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** One that matches the vocabulary's values. For a target's own schemas: a module's are compared by hasShape(). */
export const expressionOf = ({ parts }: Pick<Vocabulary, 'parts'>): string =>
  parts.map((options) => `(?:${options.map(escaped).join('|')})`).join('');

/** Texts of which one stands at a place, by length; `any`: any text of a character or more. */
type Part = 'any' | ReadonlyMap<number, ReadonlySet<string>>;

function partOf(options: readonly string[]): Part {
  const byLength = new Map<number, Set<string>>();
  for (const option of options) byLength.set(option.length, (byLength.get(option.length) ?? new Set()).add(option));
  return byLength;
}

/** Where a part may end that begins at one of these places. */
function endsOf(part: Part, text: string, starts: ReadonlySet<number>): Set<number> {
  const ends = new Set<number>();
  if (part === 'any') {
    const first = [...starts].reduce((least, at) => Math.min(least, at), text.length);
    for (let at = first + 1; at <= text.length; at += 1) ends.add(at);
    return ends;
  }
  for (const at of starts)
    for (const [length, options] of part)
      if (at + length <= text.length && options.has(text.slice(at, at + length))) ends.add(at + length);
  return ends;
}

const SPACE = partOf([' ']);
const NEXT = ' ; ';

/** Records of the schema's values separated by spaces, " ; " between records; what has no vocabulary may be any text. */
export function recordShape({ properties = {} }: JsonSchema): Part[] {
  return Object.values(properties).flatMap((property, n) => {
    const parts = vocabularyOf(property)?.parts.map(partOf) ?? ['any' as const];
    return n > 0 ? [SPACE, ...parts] : parts;
  });
}

/** Whether a text is one record of the shape or more; `unknown` if that takes too many steps to tell. */
export function hasShape(shape: readonly Part[], text: string): boolean | 'unknown' {
  const records = new Set<number>();
  let steps = 0;
  for (let starts = new Set([0]); starts.size > 0;) {
    let ends = starts;
    for (const part of shape) {
      ends = endsOf(part, text, ends);
      steps += ends.size;
      if (steps > MATCH_STEPS) return 'unknown';
    }
    if (ends.has(text.length)) return true;
    const next = [...ends].filter((at) => text.startsWith(NEXT, at)).map((at) => at + NEXT.length);
    starts = new Set(next.filter((at) => !records.has(at)));
    for (const at of starts) records.add(at);
  }
  return false;
}

/** Values of a schema with a vocabulary among a text's words, in order: all of a word, or several words. */
export function valuesIn(schema: JsonSchema, text: string): string[] {
  const parts = vocabularyOf(schema)?.parts.map(partOf) ?? [];
  if (parts.length === 0) return [];
  return [...text.matchAll(/\w+/g)].flatMap(({ index }) => {
    const ends = parts.reduce((reached, part) => endsOf(part, text, reached), new Set([index]));
    const end = Math.max(...[...ends].filter((at) => !/\w/.test(text[at] ?? ' ')), 0);
    return end > index ? [text.slice(index, end)] : [];
  });
}
