/** Whether a call's arguments are as its tool's schema asks. Invariant: the part of JSON Schema that tool arguments use, no more. */
/** @typedef {import('../../../domain/messages').JsonSchema} JsonSchema */
/** @typedef {import('../../../domain/messages').ToolSchema} ToolSchema */

/** @type {(schema: JsonSchema, given: unknown) => boolean} */
export function matches(schema, given) {
  if (schema.enum && !schema.enum.includes(/** @type {string | number} */ (given))) return false;
  if (schema.type === 'integer' || schema.type === 'number') {
    return (
      typeof given === 'number' &&
      Number.isFinite(given) &&
      (schema.type === 'number' || Number.isInteger(given)) &&
      given >= (schema.minimum ?? -Infinity) &&
      given <= (schema.maximum ?? Infinity) &&
      (schema.multipleOf === undefined || given % schema.multipleOf === 0)
    );
  }
  return typeof given === 'string' && (schema.pattern === undefined || new RegExp(schema.pattern).test(given));
}

/**
 * All arguments of the tool and no others.
 * @type {(tool: ToolSchema, given: Record<string, unknown>) => boolean}
 */
export function fits(tool, given) {
  const properties = Object.entries(tool.parameters.properties ?? {});
  return (
    properties.length === Object.keys(given).length &&
    properties.every(([name, schema]) => name in given && matches(schema, given[name]))
  );
}
