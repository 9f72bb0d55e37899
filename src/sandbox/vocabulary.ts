/**
 * The values that a JSON schema allows, as parts to draw from: a value is one option of each part, in order. Invariants: whatever is
 * drawn matches the schema; a schema that describes no list of values, or too long a one, has no vocabulary.
 */
import type { JsonSchema } from '../domain/messages';
import { MOST_PARTS, SCHEMA } from './limits';

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

/** A regular expression's source that matches the vocabulary's values. For a target's own schemas: a module's are compared by records.ts. */
export function expressionOf({ parts }: Pick<Vocabulary, 'parts'>): string {
  const escaped = (option: string): string => option.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return parts.map((options) => `(?:${options.map(escaped).join('|')})`).join('');
}
