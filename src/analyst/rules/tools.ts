/**
 * What tool schemas tell, of any target: which tools write, which arguments identify records, which identifiers can be looked up, and what an
 * observation shows. Invariants: a text that does not fit its tool's output schema gives no record, rather than a wrong one; what the schemas
 * leave open counts as possible, so that no agent is blamed for it.
 */
import type { JsonSchema, ToolSchema } from '../../domain/messages';

/** Lower-case words and numbers; "i42", "35.5" and "user_id" are one word each. */
export const words = (text: string): string[] =>
  text.toLowerCase().match(/[\p{L}\p{N}]+(?:[.'_-][\p{L}\p{N}]+)*/gu) ?? [];

/** True if the words of `phrase` occur in `text`, next to each other and in this order. An empty phrase is nowhere. */
export function mentions(text: string, phrase: string): boolean {
  const needle = words(phrase);
  return needle.length > 0 && ` ${words(text).join(' ')} `.includes(` ${needle.join(' ')} `);
}

export const isNumber = (text: string): boolean => text.trim() !== '' && Number.isFinite(Number(text));

/** One spelling for an argument or a record's value, whether it came as a JSON number or as text. */
export const spell = (value: unknown): string => (typeof value === 'object' ? JSON.stringify(value) : String(value));

/** Name and schema, in rendered order. */
export type Field = [name: string, schema: JsonSchema];

const argumentFields = (tool: ToolSchema): Field[] => Object.entries(tool.parameters.properties ?? {});
/** The fields of one record of the observation; empty if the tool has no output schema. */
const outputFields = (tool: ToolSchema): Field[] =>
  Object.entries((tool.outputSchema?.items ?? tool.outputSchema)?.properties ?? {});

const isNumeric = (schema: JsonSchema) => schema.type === 'integer' || schema.type === 'number';

/** Identifiers are codes: their pattern has digits, or, without a pattern, their name says it. */
const isIdentifier = ([name, schema]: Field) =>
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

type ReadRecords = (tool: string, observation: string) => ObservedRecord[];

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

/** An argument that identifies a record or an account, and what kind of thing it identifies. */
interface IdentifierArgument {
  argument: string;
  kind: string;
  required: boolean;
}

export interface ToolKnowledge {
  isWrite(tool: string): boolean;
  identifierArguments(tool: string): readonly IdentifierArgument[];
  /** Kinds of identifiers that `text` holds or that look-ups give, starting from it. */
  reachableKinds(text: string): ReadonlySet<string>;
  /** True if `text` holds an identifier of this kind, or if the schemas don't tell what one looks like. */
  holdsKind(text: string, kind: string): boolean;
  records: ReadRecords;
}

export function toolKnowledge(tools: readonly ToolSchema[]): ToolKnowledge {
  const writes = new Set(tools.filter((tool) => !tool.annotations?.readOnlyHint).map((tool) => tool.name));
  const identifiers = new Map<string, IdentifierArgument[]>();
  const patterns = new Map<string, RegExp>();
  for (const tool of tools) {
    const fields = argumentFields(tool).filter(isIdentifier);
    identifiers.set(
      tool.name,
      fields.map((field) => ({
        argument: field[0],
        kind: kindOf(field),
        required: tool.parameters.required?.includes(field[0]) ?? false,
      })),
    );
    for (const [, { pattern }] of fields) if (pattern !== undefined) patterns.set(pattern, new RegExp(pattern));
  }
  const identifierArguments = (tool: string) => identifiers.get(tool) ?? [];
  const kinds = new Set([...identifiers.values()].flat().map(({ kind }) => kind));
  const lookUps = tools
    .filter((tool) => !writes.has(tool.name))
    .map((tool) => ({
      needs: identifierArguments(tool.name).flatMap(({ kind, required }) => (required ? [kind] : [])),
      // Without an output schema a look-up may show anything.
      shows: tool.outputSchema
        ? outputFields(tool)
            .map(kindOf)
            .filter((kind) => kinds.has(kind))
        : [...kinds],
    }));

  const holdsKind = (text: string, kind: string) => {
    const pattern = patterns.get(kind);
    const tokens = text.split(/[\s,;:!?"'()]+/).map((token) => token.replace(/\.$/, ''));
    return pattern === undefined || tokens.some((token) => pattern.test(token));
  };

  const reachableKinds = (text: string) => {
    const reached = new Set([...kinds].filter((kind) => holdsKind(text, kind)));
    for (let before = -1; before !== reached.size;) {
      before = reached.size;
      for (const { needs, shows } of lookUps) {
        if (needs.every((kind) => reached.has(kind))) for (const kind of shows) reached.add(kind);
      }
    }
    return reached;
  };

  return {
    isWrite: (tool) => writes.has(tool),
    identifierArguments,
    reachableKinds,
    holdsKind,
    records: recordReader(tools),
  };
}
