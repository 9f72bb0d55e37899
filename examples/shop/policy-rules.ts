/**
 * The machine-readable policy rules that are known: an environment describes itself with them, and parts that work by
 * rules read them.
 */
import { type EnvironmentDescription, firstIssue, OutsideFailure, z } from 'campaign/plugin';

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

type Described = Pick<EnvironmentDescription, 'name' | 'rules'>;

const kinds = new Set(policyRuleSchema.options.map((option) => option.shape.kind.value as string));

/** What is wrong with the first rule of a known kind and a wrong form; undefined where there is none. */
export function policyRulesProblem({ name, rules = [] }: Described): string | undefined {
  for (const [n, rule] of rules.entries()) {
    const { error } = policyRuleSchema.safeParse(rule);
    if (!error || !kinds.has(rule.kind)) continue;
    return (
      `rules.${n} of "${name}" (kind: ${rule.kind}): ${firstIssue(error, rule)}; ` +
      'give the rule the fields of its kind (examples/shop/policy-rules.ts), or call the kind otherwise'
    );
  }
  return undefined;
}

/** The rules of a description; kinds that nobody knows are left out. Throws BadEnvironment with `policyRulesProblem`. */
export function policyRulesOf(description: Described): PolicyRule[] {
  const problem = policyRulesProblem(description);
  if (problem !== undefined) throw new OutsideFailure('BadEnvironment', problem);
  return (description.rules ?? []).filter(({ kind }) => kinds.has(kind)).map((rule) => policyRuleSchema.parse(rule));
}
