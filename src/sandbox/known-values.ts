/**
 * Tools with the values that the reference solutions use: where a schema lists none and there are few (rooms, reasons, days), policies that copy
 * look for these. Invariant: schemas are added to, never changed; identifiers, which differ from instance to instance, are no such values.
 */
import type { JsonSchema, ToolSchema } from '../domain/messages';
import { callsIn } from './audit-policy';
import type { ScriptedEpisode } from './play';
import { vocabularyOf } from './vocabulary';

const MOST_VALUES = 30;
/** Of the calls: more different values than that are identifiers. */
const SHARE = 1 / 3;

export function withKnownValues(tools: readonly ToolSchema[], solved: readonly ScriptedEpisode[]): ToolSchema[] {
  const calls = solved.flatMap(({ messages }) => callsIn(messages));
  return tools.map((tool) => {
    const own = calls.filter(({ name }) => name === tool.name);
    const known = Object.entries(tool.parameters.properties ?? {}).map(([field, schema]): [string, JsonSchema] => {
      if (vocabularyOf(schema) || (schema.type ?? 'string') !== 'string') return [field, schema];
      const given = own.flatMap(({ arguments: values }) => (typeof values[field] === 'string' ? [values[field]] : []));
      const values = [...new Set(given)].filter((value) => value !== '').sort();
      const few = values.length > 0 && values.length <= Math.min(MOST_VALUES, SHARE * given.length);
      return [field, few ? { ...schema, enum: values } : schema];
    });
    return { ...tool, parameters: { ...tool.parameters, properties: Object.fromEntries(known) } };
  });
}
