/**
 * What the tool schemas alone tell: which tools write, which arguments identify a record, which words describe one, and how an
 * observation splits into records. Invariant: nothing here knows a target; what the schemas leave open is reported as unknown.
 */
import type { JsonSchema, ToolSchema } from '../domain/messages';
import { isNumber, spell, words } from './text';

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

export interface ToolKnowledge {
  isWrite(tool: string): boolean;
  /** Names of a tool's arguments that identify records or accounts. */
  identifierArguments(tool: string): string[];
  /** The kind of an identifier argument: its pattern, else its name. */
  kindOf(tool: string, argument: string): string;
  /** Kinds of identifiers that can be looked up, starting from what `text` holds. */
  reachableKinds(text: string): ReadonlySet<string>;
  /** True if `text` holds an identifier of this kind, or if that can't be told from the schemas. */
  holdsKind(text: string, kind: string): boolean;
  records(tool: string, observation: string): ObservedRecord[];
}

const NO_FIELDS: Record<string, JsonSchema> = {};
const outputFields = (tool: ToolSchema) => (tool.outputSchema?.items ?? tool.outputSchema)?.properties ?? NO_FIELDS;
const parameters = (tool: ToolSchema) => tool.parameters.properties ?? NO_FIELDS;

const isNumeric = (schema: JsonSchema) => schema.type === 'integer' || schema.type === 'number';
/** Identifiers are codes: their pattern has digits, or their name says it. */
const isIdentifier = (name: string, schema: JsonSchema) =>
  !isNumeric(schema) && (schema.pattern !== undefined ? /\[0-9|\\d/.test(schema.pattern) : /(^|_)id$/.test(name));
const kind = (name: string, schema: JsonSchema) => schema.pattern ?? name;
const vocabulary = (schema: JsonSchema) => schema.pattern ?? (schema.enum && JSON.stringify(schema.enum));

/** True if `text` is a value that the schema allows. */
function fits(schema: JsonSchema, text: string): boolean {
  if (isNumeric(schema)) return isNumber(text);
  if (schema.enum) return schema.enum.some((value) => String(value) === text);
  return schema.pattern === undefined || new RegExp(schema.pattern).test(text);
}

/** Splits one rendered record into its fields; a value may have several words. Undefined if the text is no such record. */
function splitRecord(fields: [string, JsonSchema][], tokens: string[]): string[] | undefined {
  const [first, ...rest] = fields;
  if (first === undefined) return tokens.length === 0 ? [] : undefined;
  for (let length = 1; length <= tokens.length - rest.length; length++) {
    const value = tokens.slice(0, length).join(' ');
    const others = fits(first[1], value) ? splitRecord(rest, tokens.slice(length)) : undefined;
    if (others) return [value, ...others];
  }
  return undefined;
}

/** Objects with plain values, at any depth of a JSON observation. */
function jsonObjects(value: unknown): [string, string][][] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.values(value).flatMap(jsonObjects);
  if (Array.isArray(value)) return inner;
  const own = Object.entries(value).filter(([, field]) => typeof field === 'string' || typeof field === 'number');
  return own.length > 0 ? [own.map(([name, field]): [string, string] => [name, spell(field)]), ...inner] : inner;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function toolKnowledge(tools: readonly ToolSchema[]): ToolKnowledge {
  const byName = new Map(tools.map((tool) => [tool.name, tool]));
  const arguments_ = tools.flatMap((tool) => Object.entries(parameters(tool)));
  const argumentNames = new Set(arguments_.map(([name]) => name));
  const vocabularies = new Set(arguments_.map(([, schema]) => vocabulary(schema)).filter((v) => v !== undefined));
  const patterns = new Map(
    arguments_.flatMap(([name, schema]) =>
      isIdentifier(name, schema) && schema.pattern !== undefined ? [[schema.pattern, new RegExp(schema.pattern)]] : [],
    ),
  );

  /** A field describes its record if a tool takes it, or words of its vocabulary, as an argument. */
  const describes = (name: string, schema: JsonSchema) => {
    const own = vocabulary(schema);
    const taken = own === undefined ? argumentNames.has(name) : vocabularies.has(own);
    return taken && !isNumeric(schema) && !isIdentifier(name, schema);
  };

  const toRecord = (tool: string, values: [string, JsonSchema, string][]): ObservedRecord => ({
    tool,
    values: values.map(([, , value]) => value),
    identifiers: values.flatMap(([name, schema, value]) => (isIdentifier(name, schema) ? [value] : [])),
    description: values.flatMap(([name, schema, value]) => (describes(name, schema) ? [value] : [])).join(' '),
  });

  const identifierArguments = (name: string) => {
    const tool = byName.get(name);
    return tool
      ? Object.entries(parameters(tool)).flatMap(([argument, schema]) =>
          isIdentifier(argument, schema) ? [argument] : [],
        )
      : [];
  };
  const kindOf = (tool: string, argument: string) => {
    const schema = parameters(byName.get(tool) ?? { name: tool, description: '', parameters: {} })[argument];
    return schema ? kind(argument, schema) : argument;
  };
  const holdsKind = (text: string, wanted: string) => {
    const pattern = patterns.get(wanted);
    return (
      pattern === undefined || text.split(/[\s,;:!?"'()]+/).some((token) => pattern.test(token.replace(/\.$/, '')))
    );
  };

  const reachableKinds = (text: string) => {
    const needs = new Map(
      tools.map((tool) => [tool, identifierArguments(tool.name).map((argument) => kindOf(tool.name, argument))]),
    );
    const all = new Set([...needs.values()].flat());
    const reached = new Set([...all].filter((wanted) => holdsKind(text, wanted)));
    for (let before = -1; before !== reached.size;) {
      before = reached.size;
      for (const [tool, needed] of needs) {
        if (!tool.annotations?.readOnlyHint || !needed.every((one) => reached.has(one))) continue;
        // Without an outputSchema a look-up may show anything.
        const shown = tool.outputSchema
          ? Object.entries(outputFields(tool)).map(([name, schema]) => kind(name, schema))
          : [...all];
        for (const one of shown) if (all.has(one)) reached.add(one);
      }
    }
    return reached;
  };

  const records = (name: string, observation: string) => {
    const json = parseJson(observation);
    if (typeof json === 'object') {
      return jsonObjects(json).map((fields) =>
        toRecord(
          name,
          fields.map(([field, value]) => [field, {}, value]),
        ),
      );
    }
    const fields = Object.entries(outputFields(byName.get(name) ?? { name, description: '', parameters: {} }));
    if (fields.length === 0) return [];
    return observation.split(' ; ').flatMap((text) => {
      const values = splitRecord(fields, text.trim().split(/\s+/));
      return values
        ? [
            toRecord(
              name,
              fields.map(([field, schema], i) => [field, schema, values[i] ?? '']),
            ),
          ]
        : [];
    });
  };

  const isWrite = (name: string) => byName.has(name) && !byName.get(name)?.annotations?.readOnlyHint;
  return { isWrite, identifierArguments, kindOf, reachableKinds, holdsKind, records };
}

/** Two records of one tool that can be taken for each other: their descriptions share a word. */
export function confusable(a: ObservedRecord, b: ObservedRecord): boolean {
  if (a.tool !== b.tool || a.identifiers.join(' ') === b.identifiers.join(' ')) return false;
  const own = new Set(words(a.description));
  return words(b.description).some((word) => own.has(word));
}
