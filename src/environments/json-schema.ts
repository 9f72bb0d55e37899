/** Checks JSON schemas of an environment's tools, and values against them. Nothing here throws; unknown keywords are ignored. */
import { z } from 'zod';
import { getOrMake } from '../domain/maps';
import type { JsonSchema } from '../domain/messages';

/** Finds what is wrong with the parts of a schema that are read here and in prompts. */
export const jsonSchema: z.ZodType = z.lazy(() =>
  z.preprocess((given) => (typeof given === 'boolean' ? {} : given), keywords),
);

const types = z.enum(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);
const keywords = z.looseObject(
  {
    type: z.union([types, z.array(types)], 'must be the name of a JSON type').optional(),
    properties: z.record(z.string(), jsonSchema).optional(),
    required: z.array(z.string(), { error: 'must be a list of names' }).optional(),
    enum: z.array(z.unknown(), { error: 'must be a list of values' }).min(1).optional(),
  },
  { error: 'must be a JSON schema: an object' },
);

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
    const validator = getOrMake(compiled, schema, () => z.fromJSONSchema(schema as never));
    const [issue] = validator.safeParse(value).error?.issues ?? [];
    return issue && `${issue.path.join('.') || '(all of it)'}: ${issue.message}`;
  } catch {
    return undefined;
  }
}

const EXAMPLES: Record<string, unknown> = { number: 1, integer: 1, boolean: true, array: [], object: {} };

/** Returns arguments with the required properties, each of its type. */
export const exampleArguments = ({ properties = {}, required = [] }: JsonSchema): Record<string, unknown> =>
  Object.fromEntries(
    required.map((name) => {
      const { enum: values, type } = properties[name] ?? {};
      return [name, values?.[0] ?? EXAMPLES[String(type)] ?? 'example'];
    }),
  );
