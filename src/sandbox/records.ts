/**
 * Comparing texts with what a module's schemas say they hold. Invariant: the work is limited by the text's length times the number of
 * parts, and by MATCH_STEPS: no regular expression is made of what a module wrote.
 */
import type { JsonSchema } from '../domain/messages';
import { MATCH_STEPS } from './limits';
import { vocabularyOf } from './vocabulary';

/** Texts of which one stands here, by length; `any`: any text of a character or more. */
type Part = 'any' | ReadonlyMap<number, ReadonlySet<string>>;

function partOf(options: readonly string[]): Part {
  const byLength = new Map<number, Set<string>>();
  for (const option of options) byLength.set(option.length, (byLength.get(option.length) ?? new Set()).add(option));
  return byLength;
}

const SPACE = partOf([' ']);
const NEXT = ' ; ';

/** Records of the schema's values separated by spaces, " ; " between records; what has no vocabulary may be any text. */
export function recordShape({ properties = {} }: JsonSchema): Part[] {
  return Object.values(properties).flatMap((schema, n) => {
    const parts = vocabularyOf(schema)?.parts.map(partOf) ?? ['any' as const];
    return n > 0 ? [SPACE, ...parts] : parts;
  });
}

/** Whether a text is one record of the shape or more; `unknown` if that takes too many steps to tell. */
export function hasShape(shape: readonly Part[], text: string): boolean | 'unknown' {
  const seen = new Set<number>();
  const open: [part: number, at: number][] = [[0, 0]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [n, at] = next;
    const state = n * (text.length + 1) + at;
    if (seen.has(state)) continue;
    seen.add(state);
    if (seen.size > MATCH_STEPS) return 'unknown';
    const part = shape[n];
    if (part === undefined) {
      if (at === text.length) return true;
      if (text.startsWith(NEXT, at)) open.push([0, at + NEXT.length]);
    } else if (part === 'any') {
      if (at < text.length) open.push([n, at + 1], [n + 1, at + 1]);
    } else {
      for (const end of ends(part, text, at)) open.push([n + 1, end]);
    }
  }
  return false;
}

function ends(part: Exclude<Part, 'any'>, text: string, at: number): number[] {
  return [...part].flatMap(([length, options]) =>
    at + length <= text.length && options.has(text.slice(at, at + length)) ? [at + length] : [],
  );
}

/** Values of a schema with a vocabulary among a text's words, in order: all of a word, or several words. */
export function valuesIn(schema: JsonSchema, text: string): string[] {
  const parts = vocabularyOf(schema)?.parts.map(partOf) ?? [];
  if (parts.length === 0) return [];
  const isEdge = (at: number): boolean => !/\w/.test(text[at] ?? ' ');
  return [...text.matchAll(/\w+/g)].flatMap(({ index }) => {
    let reached = [index];
    for (const part of parts)
      reached = [...new Set(reached.flatMap((at) => (part === 'any' ? [] : ends(part, text, at))))];
    const end = Math.max(...reached.filter((at) => isEdge(at)), 0);
    return end > index ? [text.slice(index, end)] : [];
  });
}
