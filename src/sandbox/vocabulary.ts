/**
 * The values that a JSON schema allows, as parts to draw from: a value is one option of each part, in order. Invariant: whatever is
 * drawn matches the schema; a schema that describes no list of values has no vocabulary.
 */
import type { JsonSchema } from '../domain/messages';

export interface Vocabulary {
  number: boolean;
  parts: string[][];
  /** Parts that a user names by a word (others are literals, digits, characters of an identifier). */
  words: boolean[];
}

const vocabulary = (number: boolean, parts: string[][]): Vocabulary => ({ number, parts, words: parts.map(isWords) });
const isWords = (options: string[]): boolean => options.length > 1 && options.every((o) => /^[a-z]{2,}$/i.test(o));

const LARGEST_RANGE = 1_000;

/** Of enums, ranges of whole numbers, and patterns made of literals, (a|b) groups and [a-z]{n} classes; of no other schema. */
export function vocabularyOf(schema: JsonSchema): Vocabulary | undefined {
  const number = schema.type === 'integer' || schema.type === 'number';
  if (schema.enum) return vocabulary(number, [schema.enum.map(String)]);
  if (number && schema.minimum !== undefined && schema.maximum !== undefined) {
    const step = schema.multipleOf ?? 1;
    const first = Math.ceil(schema.minimum / step);
    const count = Math.floor(schema.maximum / step) - first + 1;
    if (count >= 1 && count <= LARGEST_RANGE)
      return vocabulary(number, [Array.from({ length: count }, (_, i) => String((first + i) * step))]);
  }
  const parts = schema.pattern === undefined ? undefined : patternParts(schema.pattern);
  return parts && vocabulary(number, parts);
}

/** One part for each literal, group or class of an anchored pattern; undefined for any other pattern. */
function patternParts(pattern: string): string[][] | undefined {
  const body = /^\^(.*)\$$/.exec(pattern)?.[1];
  if (body === undefined) return undefined;
  const parts: string[][] = [];
  const piece = /\(((?:[\w -]+\|)*[\w -]+)\)|\[([\w-]+)\](?:\{(\d+)\})?|([\w -])/y;
  while (piece.lastIndex < body.length) {
    const found = piece.exec(body);
    if (!found) return undefined;
    const [, group, characters, times, literal] = found;
    if (group !== undefined) parts.push(group.split('|'));
    else if (characters !== undefined)
      for (let n = Number(times ?? 1); n > 0; n -= 1) parts.push(classCharacters(characters));
    else parts.push([literal ?? '']);
  }
  return parts;
}

/** `0-9a-f` -> ['0', ..., 'f'] */
function classCharacters(text: string): string[] {
  return [...text.matchAll(/(\w)-(\w)|([\w-])/g)].flatMap(([, from, to, single]) => {
    if (from === undefined || to === undefined) return [single ?? ''];
    const start = from.charCodeAt(0);
    return Array.from({ length: to.charCodeAt(0) - start + 1 }, (_, i) => String.fromCharCode(start + i));
  });
}

/** A regular expression's source that matches the vocabulary's values. */
export function expressionOf({ parts }: Pick<Vocabulary, 'parts'>): string {
  const escaped = (option: string): string => option.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return parts.map((options) => `(?:${options.map(escaped).join('|')})`).join('');
}
