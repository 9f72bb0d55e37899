/** What a field of a tool's arguments or observations is, told from its JSON schema alone. Invariant: nothing here knows a target. */
import type { JsonSchema, ToolSchema } from '../../domain/messages';
import { isNumber } from './text';

/** Name and schema, in rendered order. */
export type Field = [name: string, schema: JsonSchema];

export const argumentFields = (tool: ToolSchema): Field[] => Object.entries(tool.parameters.properties ?? {});
/** The fields of one record of the observation; empty if the tool has no output schema. */
export const outputFields = (tool: ToolSchema): Field[] =>
  Object.entries((tool.outputSchema?.items ?? tool.outputSchema)?.properties ?? {});

export const isNumeric = (schema: JsonSchema) => schema.type === 'integer' || schema.type === 'number';

/** Identifiers are codes: their pattern has digits, or, without a pattern, their name says it. */
export const isIdentifier = ([name, schema]: Field) =>
  !isNumeric(schema) && (schema.pattern !== undefined ? /\[0-9|\\d/.test(schema.pattern) : /(^|_)id$/.test(name));

/** What an identifier identifies: fields of one kind name the same records. */
export const kindOf = ([name, schema]: Field): string => schema.pattern ?? name;

/** The words that a text field takes; undefined if the schema leaves them open. */
export const vocabulary = (schema: JsonSchema): string | undefined =>
  schema.pattern ?? (schema.enum && JSON.stringify(schema.enum));

/** True if `text` is a value that the schema allows. */
export function fits(schema: JsonSchema, text: string): boolean {
  if (isNumeric(schema)) return isNumber(text);
  if (schema.enum) return schema.enum.some((value) => String(value) === text);
  return schema.pattern === undefined || new RegExp(schema.pattern).test(text);
}
