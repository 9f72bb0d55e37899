/**
 * Observations as records. Invariant: a text that does not fit its tool's output schema gives no record, rather than a wrong one.
 */
import type { ToolSchema } from '../../domain/messages';
import { argumentFields, fits, isIdentifier, isNumeric, outputFields, vocabulary, type Field } from './schemas';
import { spell, words } from './text';

/** One record of an observation. */
export interface ObservedRecord {
  /** The tool that showed it. */
  tool: string;
  /** All values as text. */
  values: string[];
  identifiers: string[];
  /** The values that a user would name it by, e.g. "red lamp"; empty if the schemas name no such field. */
  description: string;
}

export type ReadRecords = (tool: string, observation: string) => ObservedRecord[];

/** A reader of observations: JSON objects, or the rendered form that output schemas describe (" ; " between records). */
export function recordReader(tools: readonly ToolSchema[]): ReadRecords {
  const fieldsOf = new Map(tools.map((tool) => [tool.name, outputFields(tool)]));
  const describes = descriptiveFields(tools);

  const toRecord = (tool: string, values: { field: Field; value: string }[]): ObservedRecord => {
    const valuesOf = (chosen: (field: Field) => boolean) =>
      values.flatMap(({ field, value }) => (chosen(field) ? [value] : []));
    return {
      tool,
      values: valuesOf(() => true),
      identifiers: valuesOf(isIdentifier),
      description: valuesOf(describes).join(' '),
    };
  };

  return (tool, observation) => {
    const json = parseJson(observation);
    if (json !== undefined) return plainObjects(json).map((values) => toRecord(tool, values));
    const fields = fieldsOf.get(tool) ?? [];
    if (fields.length === 0) return [];
    return observation.split(' ; ').flatMap((text) => {
      const values = splitRecord(fields, text.trim().split(/\s+/));
      return values ? [toRecord(tool, values)] : [];
    });
  };
}

/** A field describes its record if a tool takes it, or words of its vocabulary, as an argument. */
function descriptiveFields(tools: readonly ToolSchema[]): (field: Field) => boolean {
  const taken = tools.flatMap(argumentFields);
  const names = new Set(taken.map(([name]) => name));
  const vocabularies = new Set(taken.map(([, schema]) => vocabulary(schema)));
  return ([name, schema]) => {
    const own = vocabulary(schema);
    const isTaken = own === undefined ? names.has(name) : vocabularies.has(own);
    return isTaken && !isNumeric(schema) && !isIdentifier([name, schema]);
  };
}

/** Splits one rendered record into its fields; a value may have several words. Undefined if the text is no such record. */
function splitRecord(fields: Field[], tokens: string[]): { field: Field; value: string }[] | undefined {
  const [field, ...rest] = fields;
  if (field === undefined) return tokens.length === 0 ? [] : undefined;
  for (let length = 1; length <= tokens.length - rest.length; length++) {
    const value = tokens.slice(0, length).join(' ');
    const others = fits(field[1], value) ? splitRecord(rest, tokens.slice(length)) : undefined;
    if (others) return [{ field, value }, ...others];
  }
  return undefined;
}

/** Parsed objects and lists only: a bare word or number is text. */
function parseJson(text: string): unknown {
  if (!/^\s*[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The text and number fields of every object in a JSON observation, at any depth. */
function plainObjects(value: unknown): { field: Field; value: string }[][] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.values(value).flatMap(plainObjects);
  if (Array.isArray(value)) return inner;
  const own = Object.entries(value)
    .filter(([, plain]) => typeof plain === 'string' || typeof plain === 'number')
    .map(([name, plain]) => ({ field: [name, { type: typeof plain }] satisfies Field, value: spell(plain) }));
  return own.length > 0 ? [own, ...inner] : inner;
}

/** Two records of one tool that can be taken for each other: their descriptions share a word. */
export function confusable(a: ObservedRecord, b: ObservedRecord): boolean {
  if (a.tool !== b.tool || a.identifiers.join(' ') === b.identifiers.join(' ')) return false;
  const own = new Set(words(a.description));
  return words(b.description).some((word) => own.has(word));
}
