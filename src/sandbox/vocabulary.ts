/**
 * Schemas of a module's tools: finds their defects, the values that they allow, and these values in texts. The work is limited, and regular expressions
 * of a module are never run.
 */
import { z } from 'zod';
import type { JsonSchema, ToolSchema } from '../domain/messages';
import { MOST_PARTS, NAME_CHARS, quoted, SCHEMA } from './limits';

const listed = z.union(
  [z.string().max(NAME_CHARS), z.number(), z.boolean(), z.null()],
  `give texts of up to ${NAME_CHARS} characters, or numbers`,
);
/** The keywords of a schema from which the self-test draws values. Other keywords are ignored. */
const drawnSchema: z.ZodType = z.lazy(() =>
  z
    .looseObject({
      enum: z.array(listed).min(1).max(SCHEMA.options).optional(),
      pattern: z.string().max(SCHEMA.patternChars).refine(isExpression, 'no regular expression').optional(),
      minimum: z.number().optional(),
      maximum: z.number().optional(),
      multipleOf: z.number().positive().optional(),
      items: drawnSchema.optional(),
      properties: z.record(z.string().max(NAME_CHARS), drawnSchema).optional(),
    })
    .refine(({ minimum = -Infinity, maximum = Infinity }) => minimum <= maximum, 'minimum is above maximum'),
);
const toolsSchema = z.object({ parameters: drawnSchema, outputSchema: drawnSchema.optional() });

/** `describe: <tool>.parameters.properties.<name>.<keyword>: <what is wrong>`, for each place. */
export const schemaFindings = (tools: readonly ToolSchema[]): string[] =>
  tools.flatMap((tool) =>
    (toolsSchema.safeParse(tool).error?.issues ?? []).map(
      ({ path, message }) => `describe: ${quoted(`${[tool.name, ...path].join('.')}: ${message}`)}`,
    ),
  );

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

/** Returns the vocabulary of an enum, a range of whole numbers, or a pattern of literals, (a|b) groups and [a-z]{n} classes; undefined for other schemas. */
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

/** The texts that may stand at one place, by length. */
type Part = ReadonlyMap<number, ReadonlySet<string>>;

function partOf(options: readonly string[]): Part {
  const byLength = new Map<number, Set<string>>();
  for (const option of options) byLength.set(option.length, (byLength.get(option.length) ?? new Set()).add(option));
  return byLength;
}

/** Returns the positions at which a part ends if it begins at one of `starts`. */
function endsOf(part: Part, text: string, starts: ReadonlySet<number>): Set<number> {
  const ends = new Set<number>();
  for (const at of starts)
    for (const [length, options] of part)
      if (at + length <= text.length && options.has(text.slice(at, at + length))) ends.add(at + length);
  return ends;
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
