/**
 * JSON schemas of an environment's tools: are they schemas, what fits them, and one value that does. Nothing here
 * throws; unknown keywords are left alone.
 */
import { z } from 'zod';
import type { JsonSchema, ToolSchema } from '../domain/messages';
import { vocabularyOf } from '../sandbox/vocabulary';

const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'] as const;
const typeError = { error: `must be one of ${types.join(', ')}, or a list of these` };
const names = z.array(z.string(), { error: 'must be a list of names' });
const schemas = z.array(z.unknown(), { error: 'must be a list of schemas' }).min(1);
const byName = z.record(z.string(), z.unknown(), { error: 'must hold schemas by name' });

const keywords = z.looseObject(
  {
    type: z.union([z.enum(types), z.array(z.enum(types)).min(1)], typeError).optional(),
    description: z.string().optional(),
    properties: byName.optional(),
    required: names.optional(),
    enum: z.array(z.unknown(), { error: 'must be a list of values' }).min(1).optional(),
    pattern: z.string().refine(isPattern, 'must be a regular expression of ECMAScript').optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    multipleOf: z.number().positive().optional(),
    anyOf: schemas.optional(),
    oneOf: schemas.optional(),
    allOf: schemas.optional(),
    $defs: byName.optional(),
    definitions: byName.optional(),
  },
  { error: 'must be a JSON schema: an object' },
);

interface SchemaProblem {
  path: (string | number)[];
  message: string;
}

/** The first place where it is no JSON schema. Its depth is bounded by what may come over the protocol. */
export function schemaProblem(schema: unknown, path: (string | number)[] = []): SchemaProblem | undefined {
  if (typeof schema === 'boolean') return undefined;
  const { data, error } = keywords.safeParse(schema);
  const [issue] = error?.issues ?? [];
  if (!data) return { path: [...path, ...(issue?.path as string[])], message: issue?.message ?? 'no JSON schema' };
  const inner: [path: (string | number)[], schema: unknown][] = [];
  for (const key of ['properties', '$defs', 'definitions'] as const)
    for (const [name, each] of Object.entries(data[key] ?? {})) inner.push([[key, name], each]);
  for (const key of ['anyOf', 'oneOf', 'allOf'] as const) data[key]?.forEach((each, n) => inner.push([[key, n], each]));
  const { items, additionalProperties } = data;
  if (Array.isArray(items)) items.forEach((each: unknown, n) => inner.push([['items', n], each]));
  else if (items !== undefined) inner.push([['items'], items]);
  if (additionalProperties !== undefined) inner.push([['additionalProperties'], additionalProperties]);
  for (const [at, each] of inner) {
    const problem = schemaProblem(each, [...path, ...at]);
    if (problem) return problem;
  }
  return undefined;
}

export function toolsProblem(tools: readonly ToolSchema[]): SchemaProblem | undefined {
  for (const [n, tool] of tools.entries())
    for (const field of ['parameters', 'outputSchema'] as const) {
      const problem = tool[field] === undefined ? undefined : schemaProblem(tool[field], ['tools', n, field]);
      if (problem) return problem;
    }
  return undefined;
}

function isPattern(pattern: string): boolean {
  try {
    new RegExp(pattern);
    return true;
  } catch {
    return false;
  }
}

/** What is wrong with arguments or a record, `field: ...`; undefined where nothing is, and where the schema is beyond what can be checked. */
export function valueProblem(schema: JsonSchema, value: unknown): string | undefined {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const known = schema.properties ?? {};
    const open = Object.keys(known).length === 0 || 'additionalProperties' in schema || 'patternProperties' in schema;
    const stranger = open ? undefined : Object.keys(value).find((name) => !(name in known));
    if (stranger !== undefined) return `${stranger}: is not among the properties`;
    const missing = schema.required?.find((name) => !(name in value));
    if (missing !== undefined) return `${missing}: is required and missing`;
  }
  try {
    const [issue] = z.fromJSONSchema(schema as never).safeParse(value).error?.issues ?? [];
    return issue && `${issue.path.join('.') || '(all of it)'}: ${issue.message}`;
  } catch {
    return undefined;
  }
}

/** Fits most schemas; patterns beyond groups and classes are not kept. `known`: values that the environment itself uses, by field. */
export function exampleOf(o: {
  schema: JsonSchema;
  known?: ReadonlyMap<string, unknown>;
  name?: string;
  depth?: number;
  root?: JsonSchema;
}): unknown {
  const { known, name = '', depth = 0, root = o.schema } = o;
  const schema = resolved(o.schema, root);
  if (known?.has(name)) return known.get(name);
  for (const key of ['const', 'default']) if (schema[key] !== undefined) return schema[key];
  if (schema.enum) return schema.enum[0];
  const inner = (each: JsonSchema, field = '') =>
    depth > 5 ? null : exampleOf({ schema: each, ...(known && { known }), name: field, depth: depth + 1, root });
  for (const key of ['anyOf', 'oneOf', 'allOf']) {
    const options = schema[key] as JsonSchema[] | undefined;
    if (options?.[0]) return inner(options[0], name);
  }
  const type = Array.isArray(schema.type) ? (schema.type as string[]).find((each) => each !== 'null') : schema.type;
  const drawn = vocabularyOf(schema);
  if (drawn && !drawn.number) return drawn.parts.map(([first]) => first).join('');
  if (type === 'integer' || type === 'number') {
    const step = schema.multipleOf ?? 1;
    return schema.minimum === undefined
      ? Math.min(step, schema.maximum ?? step)
      : Math.ceil(schema.minimum / step) * step;
  }
  if (type === 'boolean') return true;
  if (type === 'null') return null;
  if (type === 'array') return schema.items ? [inner(schema.items)] : [];
  if (type === 'object' || schema.properties) {
    const fields = schema.required ?? Object.keys(schema.properties ?? {});
    return Object.fromEntries(fields.map((field) => [field, inner(schema.properties?.[field] ?? {}, field)]));
  }
  return 'example';
}

/** Follows one reference within the schema: `#/$defs/x`. */
function resolved(schema: JsonSchema, root: JsonSchema): Record<string, unknown> & JsonSchema {
  const { $ref } = schema as { $ref?: unknown };
  if (typeof $ref !== 'string' || !$ref.startsWith('#/')) return schema as Record<string, unknown>;
  const steps = $ref.slice(2).split('/');
  const target = steps.reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], root);
  return (target ?? {}) as Record<string, unknown>;
}
