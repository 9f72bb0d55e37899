/**
 * Checks JSON schemas of an environment's tools, checks values against them, and makes example values. Nothing here throws; unknown keywords are ignored.
 */
import { z } from 'zod';
import type { JsonSchema } from '../domain/messages';
import { vocabularyOf } from '../sandbox/vocabulary';

const types = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'] as const;
const typeError = { error: `must be one of ${types.join(', ')}, or a list of these` };

/** Finds what is wrong with a schema; its output is no schema. The protocol bounds the depth. */
export const jsonSchema: z.ZodType = z.lazy(() =>
  z.preprocess((given) => (typeof given === 'boolean' ? {} : given), keywords),
);

const schemas = z.array(jsonSchema, { error: 'must be a list of schemas' });
const byName = z.record(z.string(), jsonSchema, { error: 'must hold schemas by name' });
const keywords = z.looseObject(
  {
    type: z.union([z.enum(types), z.array(z.enum(types)).min(1)], typeError).optional(),
    description: z.string().optional(),
    properties: byName.optional(),
    required: z.array(z.string(), { error: 'must be a list of names' }).optional(),
    enum: z.array(z.unknown(), { error: 'must be a list of values' }).min(1).optional(),
    pattern: z.string().refine(isPattern, 'must be a regular expression of ECMAScript').optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    multipleOf: z.number().positive().optional(),
    anyOf: schemas.min(1).optional(),
    oneOf: schemas.min(1).optional(),
    allOf: schemas.min(1).optional(),
    prefixItems: schemas.optional(),
    items: z.preprocess((given) => (Array.isArray(given) ? { prefixItems: given } : given), jsonSchema.optional()),
    additionalProperties: jsonSchema.optional(),
    $defs: byName.optional(),
    definitions: byName.optional(),
  },
  { error: 'must be a JSON schema: an object' },
);

function isPattern(pattern: string): boolean {
  try {
    new RegExp(pattern);
    return true;
  } catch {
    return false;
  }
}

const compiled = new WeakMap<JsonSchema, z.ZodType>();

/** Returns what is wrong with arguments or a record, as `field: ...`; undefined if nothing is, or if the schema can't be checked. */
export function valueProblem(schema: JsonSchema, value: unknown): string | undefined {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const known = schema.properties ?? {};
    const open = Object.keys(known).length === 0 || 'additionalProperties' in schema || 'patternProperties' in schema;
    const stranger = open ? undefined : Object.keys(value).find((name) => !Object.hasOwn(known, name));
    if (stranger !== undefined) return `${stranger}: is not among the properties`;
    const missing = schema.required?.find((name) => !Object.hasOwn(value, name));
    if (missing !== undefined) return `${missing}: is required and missing`;
  }
  try {
    const validator = compiled.get(schema) ?? z.fromJSONSchema(schema as never);
    compiled.set(schema, validator);
    const [issue] = validator.safeParse(value).error?.issues ?? [];
    return issue && `${issue.path.join('.') || '(all of it)'}: ${issue.message}`;
  } catch {
    return undefined;
  }
}

/** Keywords beyond those that the project's own schemas have. */
interface Keywords extends Omit<JsonSchema, 'type'> {
  type?: string | string[];
  $ref?: string;
  const?: unknown;
  default?: unknown;
  anyOf?: JsonSchema[];
  oneOf?: JsonSchema[];
  allOf?: JsonSchema[];
}

const DEEPEST = 5;

/** Makes a value that fits most schemas; patterns beyond groups and classes are ignored. `known`: values that the environment uses, by field. */
export function exampleOf(root: JsonSchema, known: ReadonlyMap<string, unknown> = new Map()): unknown {
  function valueOf(given: JsonSchema, name: string, depth: number): unknown {
    const schema = resolved(given, root);
    if (depth > DEEPEST) return null;
    if (known.has(name)) return known.get(name);
    const [usual] = [schema.const, schema.default, schema.enum?.[0]].filter((value) => value !== undefined);
    if (usual !== undefined) return usual;
    const [option] = schema.anyOf ?? schema.oneOf ?? schema.allOf ?? [];
    if (option) return valueOf(option, name, depth + 1);
    const type = [schema.type].flat().find((each) => each !== 'null');
    const drawn = vocabularyOf(schema as JsonSchema);
    if (drawn && !drawn.number) return drawn.parts.map(([first]) => first).join('');
    if (type === 'integer' || type === 'number') return leastNumber(schema);
    if (type === 'boolean') return true;
    if (type === 'array') return schema.items ? [valueOf(schema.items, '', depth + 1)] : [];
    if (type === 'object' || schema.properties) {
      const { properties = {}, required = Object.keys(properties) } = schema;
      return Object.fromEntries(required.map((field) => [field, valueOf(properties[field] ?? {}, field, depth + 1)]));
    }
    return schema.type === 'null' ? null : 'example';
  }
  return valueOf(root, '', 0);
}

function leastNumber({ minimum, maximum, multipleOf: step = 1 }: Keywords): number {
  return minimum === undefined ? Math.min(step, maximum ?? step) : Math.ceil(minimum / step) * step;
}

/** Follows one reference within the schema: `#/$defs/x`. */
function resolved(schema: Keywords, root: JsonSchema): Keywords {
  if (typeof schema.$ref !== 'string' || !schema.$ref.startsWith('#/')) return schema;
  const steps = schema.$ref.slice(2).split('/');
  return (steps.reduce<unknown>((at, step) => (at as Record<string, unknown> | undefined)?.[step], root) ??
    {}) as Keywords;
}
