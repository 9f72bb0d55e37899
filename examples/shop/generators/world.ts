/**
 * The target as the generators see it, read off the schemas and rules of describe(): one look-up tool whose records the
 * writes act on. Tools with an argument that neither record, request nor account can fill are left out.
 */
import {
  cannotSynthesize,
  type EnvironmentDescription,
  type JsonSchema,
  type ToolSchema,
  type Vocabulary,
  vocabularyOf,
} from 'campaign/plugin';
import { policyRulesOf, policyRulesProblem, type PolicyRule } from '../policy-rules';

type Argument = { name: string } & (
  | { from: 'record' }
  | { from: 'key' }
  | { from: 'said'; vocabulary: Vocabulary }
  /** The record's `field`, plus `offset` when the request carries `marker`. */
  | { from: 'computed'; field: string; marker: string; offset: number }
);

export interface Write {
  tool: string;
  /** The request in the user's words, with arguments in braces: the tool's description. */
  request: string;
  arguments: Argument[];
  /** Acts on one record (others change the account). */
  onRecord: boolean;
  precondition?: { field: string; value: string; denial: string };
}

export interface World {
  lookup: { tool: string; key: string; keyVocabulary: Vocabulary; fields: { name: string; vocabulary: Vocabulary }[] };
  writes: Write[];
  tell?: { question: string; field: string };
  ask?: { question: string; answer: string };
}

type Rule<K extends PolicyRule['kind']> = Extract<PolicyRule, { kind: K }>;

export const slotsOf = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '');

function drawable(name: string, schema: JsonSchema): Vocabulary {
  const vocabulary = vocabularyOf(schema);
  if (vocabulary) return vocabulary;
  throw cannotSynthesize(
    `cannot draw values of "${name}" from ${JSON.stringify(schema)}: give an enum, a range, or a pattern of groups and classes`,
  );
}

/** Throws `CannotSynthesize` if no look-up tool has records that a describable write acts on, or a rule has a wrong form. */
export function worldOf(description: EnvironmentDescription): World {
  const wrong = policyRulesProblem(description);
  if (wrong !== undefined) throw cannotSynthesize(wrong);
  const worlds = description.tools
    .filter((tool) => tool.annotations?.readOnlyHint && tool.outputSchema)
    .flatMap((tool) => around(tool, description))
    .sort((a, b) => b.writes.length - a.writes.length);
  const [world] = worlds;
  if (!world?.writes.some((write) => write.onRecord)) {
    throw cannotSynthesize(
      `no read-only tool of "${description.name}" returns records that a write acts on: give one an outputSchema with the write's ` +
        'arguments, and each write a description that says the request with its arguments in braces',
    );
  }
  return world;
}

function around(lookup: ToolSchema, description: EnvironmentDescription): World[] {
  const keys = Object.entries(lookup.parameters.properties ?? {});
  const [key] = keys;
  if (!key || keys.length !== 1) return [];
  const fields = Object.entries(lookup.outputSchema?.properties ?? {}).map(([name, schema]) => ({
    name,
    vocabulary: drawable(name, schema),
  }));
  const rules = policyRulesOf(description);
  const names = new Set(fields.map((field) => field.name));
  const ofKind = <K extends PolicyRule['kind']>(kind: K) => rules.filter((rule): rule is Rule<K> => rule.kind === kind);
  const writes = description.tools.flatMap((tool) => {
    if (tool.annotations?.readOnlyHint) return [];
    const write = bind(tool, { names, key: key[0], values: ofKind('value') });
    const rule = ofKind('precondition').find((r) => r.tool === tool.name && names.has(r.field));
    return write ? [{ ...write, ...(rule && { precondition: pick(rule) }) }] : [];
  });
  const tell = ofKind('tell').find((rule) => names.has(rule.field));
  const ask = ofKind('ask').find((rule) => rule.argument === key[0]);
  return [
    {
      lookup: { tool: lookup.name, key: key[0], keyVocabulary: drawable(key[0], key[1]), fields },
      writes,
      ...(tell && { tell: { question: tell.question, field: tell.field } }),
      ...(ask && { ask: { question: ask.question, answer: ask.answer } }),
    },
  ];
}

const pick = ({ field, value, denial }: Rule<'precondition'>) => ({ field, value, denial });

/** Where each argument of a write comes from; undefined if one of them cannot be had, or the request cannot be put in words. */
function bind(
  tool: ToolSchema,
  world: { names: ReadonlySet<string>; key: string; values: Rule<'value'>[] },
): Write | undefined {
  const slots = slotsOf(tool.description);
  const bound: Argument[] = [];
  for (const [name, schema] of Object.entries(tool.parameters.properties ?? {})) {
    const rule = world.values.find((r) => r.tool === tool.name && r.argument === name && world.names.has(r.field));
    if (rule) bound.push({ name, from: 'computed', field: rule.field, marker: rule.marker, offset: rule.offset });
    else if (world.names.has(name)) bound.push({ name, from: 'record' });
    else if (name === world.key) bound.push({ name, from: 'key' });
    else if (slots.includes(name)) bound.push({ name, from: 'said', vocabulary: drawable(name, schema) });
    else return undefined;
  }
  const said = new Set(bound.flatMap((a) => (a.from === 'said' ? [a.name] : [])));
  if (slots.length === 0 || !slots.every((slot) => world.names.has(slot) || said.has(slot))) return undefined;
  const onRecord = bound.some((a) => a.from === 'record');
  if (onRecord !== slots.some((slot) => world.names.has(slot))) return undefined;
  return { tool: tool.name, request: tool.description, arguments: bound, onRecord };
}
