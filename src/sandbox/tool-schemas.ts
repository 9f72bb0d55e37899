/**
 * What is wrong with the schemas of a module's tools. Invariant: of schemas without findings the self-test can take vocabularies and draw
 * values; keywords that it does not use may say anything.
 */
import type { ToolSchema } from '../domain/messages';
import { NAME_CHARS, SCHEMA } from './limits';
import { quoted } from './text';

/** `describe: <tool>.parameters.properties.<name>: <what is wrong>: <how to mend it>`, for each place. */
export function* schemaFindings(tools: readonly ToolSchema[]): Generator<string> {
  for (const { name, parameters, outputSchema } of tools) {
    const given: [string, unknown][] = [['parameters', parameters]];
    if (outputSchema) given.push(['outputSchema', outputSchema]);
    for (const [field, schema] of given)
      for (const wrong of problemsOf(schema, { path: `${name}.${field}`, depth: 0 }))
        yield `describe: ${quoted(wrong)}`;
  }
}

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
