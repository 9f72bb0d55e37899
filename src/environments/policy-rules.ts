/** The known machine-readable policy rules: what an environment may describe itself with, and what parts that work by rules read. */
import { z } from 'zod';
import type { EnvironmentDescription } from '../domain/environment';

/** Machine-readable form of the written policy's rules, for synthesizers that work by rules. */
const policyRuleSchema = z.discriminatedUnion('kind', [
  /** `tool` may be used on a record only if its `field` has `value`; otherwise the agent says `denial`. */
  z.object({
    kind: z.literal('precondition'),
    tool: z.string(),
    field: z.string(),
    value: z.string(),
    denial: z.string(),
  }),
  /** `tool`'s `argument` is the record's `field`, plus `offset` when the user's request carries `marker`. */
  z.object({
    kind: z.literal('value'),
    tool: z.string(),
    argument: z.string(),
    field: z.string(),
    marker: z.string(),
    offset: z.number(),
  }),
  /** When the request carries `question`, the agent tells the user the record's `field` (for `value` tools: the computed argument). */
  z.object({ kind: z.literal('tell'), question: z.string(), field: z.string() }),
  /** When `argument` is not in the request, the agent says `question` and the user answers with `answer` ("%" stands for the value). */
  z.object({ kind: z.literal('ask'), argument: z.string(), question: z.string(), answer: z.string() }),
]);
export type PolicyRule = z.infer<typeof policyRuleSchema>;

/** The rules of a description. Throws if one has a known kind and a wrong form; kinds that nobody knows are left out. */
export function policyRulesOf({ rules = [] }: Pick<EnvironmentDescription, 'rules'>): PolicyRule[] {
  const known = new Set(policyRuleSchema.options.map((option) => option.shape.kind.value as string));
  return rules.filter(({ kind }) => known.has(kind)).map((rule) => policyRuleSchema.parse(rule));
}
