/**
 * analysis.json: what was found in conversations from elsewhere (docs/conversations.md). Invariant: it is complete: page, table and comparison
 * with people's labels are made of it and the label files alone.
 */
import { z } from 'zod';
import { selectionRuleSchema } from '../../domain/campaign';
import { failureOriginSchema } from '../../domain/capability';
import { budgetSchema, spentSchema } from '../../domain/endpoints';
import { reportedCitationSchema } from '../../report/capability-model';

const count = z.number().int().nonnegative();
const meanStd = z.strictObject({ mean: z.number(), std: z.number() });

/** The message that is cited, and its neighbours; its number is the index in the conversation's messages, as in the file. */
const contextSchema = reportedCitationSchema.shape.context;

const citedSchema = z.strictObject({
  conversation: z.string(),
  outcome: z.enum(['failed', 'passed']),
  /** Index into its messages, as in the file. */
  message: count,
  says: z.string(),
  context: contextSchema,
});

const lackedSchema = z.strictObject({
  capability: z.string(),
  /** Passes that say LACKING, of those that looked at it. */
  votes: count,
  passes: count,
  /** The message that most of them name, of several the earliest. */
  message: count.optional(),
  reasons: z.array(z.strictObject({ pass: count, reason: z.string(), message: count.optional() })),
});
export type LackedCapability = z.infer<typeof lackedSchema>;

const failureSchema = z.strictObject({
  conversation: z.string(),
  task: z.string(),
  reward: z.number(),
  /** How many it has. */
  messages: count,
  /** Most votes first. */
  lacking: z.array(lackedSchema),
  /** Where the failure begins: the message that most passes name, of those that blame whom (`of`) most blame; of several the earliest. */
  begins: z
    .strictObject({
      message: count,
      /** Passes that name it. */
      votes: count,
      /** Of the first of them. */
      reason: z.string(),
      of: failureOriginSchema.shape.of,
      context: contextSchema,
    })
    .optional(),
});
export type AnalysedFailure = z.infer<typeof failureSchema>;

const analysedCapabilitySchema = z.strictObject({
  name: z.string(),
  definition: z.string(),
  selected: z.boolean(),
  votes: count,
  passes: count,
  coverage: meanStd,
  delta: meanStd,
  /** Krippendorff's alpha of the passes; absent where it is not defined (they all say the same of everything). */
  agreement: z.number().optional(),
  /** Failed conversations that most passes call LACKING. */
  lacking: z.array(z.string()),
  citations: z.array(citedSchema),
});
export type AnalysedCapability = z.infer<typeof analysedCapabilitySchema>;

export const analysisSchema = z.strictObject({
  name: z.string(),
  madeAt: z.string(),
  files: z.array(z.string()),
  analyst: z.strictObject({ kind: z.string(), version: z.string(), model: z.string() }),
  conversations: z.strictObject({ total: count, failed: count, passed: count, tokens: count }),
  /** What was left out of the files, or is not known of them. */
  notes: z.array(z.string()),
  rule: selectionRuleSchema,
  /** Passes that were made; those that failed are left out. */
  passes: count,
  failedPasses: z.array(z.strictObject({ pass: count, reason: z.string() })),
  /** Why nothing is selected, where nothing is. */
  reason: z.string().optional(),
  capabilities: z.array(analysedCapabilitySchema),
  failures: z.array(failureSchema),
  /** What failed for no fault of the agent's. */
  faults: z.array(
    z.strictObject({ of: z.enum(['environment', 'user']), what: z.string(), citations: z.array(citedSchema) }),
  ),
  budget: budgetSchema,
  /** On everything of this name, also by earlier runs. */
  spent: z.array(spentSchema),
});
export type Analysis = z.infer<typeof analysisSchema>;
export type Cited = z.infer<typeof citedSchema>;

export const NOT_EXPLAINED = 'not explained by a capability';
export const FAULT = { environment: 'fault of the environment', user: 'fault of the user' } as const;

/**
 * What explains each failure, by conversation: the selected capabilities that most passes call LACKING in it, a fault that is not the agent's, or
 * neither. What no pass looked at has nothing.
 */
export function explanationsOf({
  capabilities,
  failures,
}: Pick<Analysis, 'capabilities' | 'failures'>): (conversation: string) => string | undefined {
  const explanations = new Map(
    failures.flatMap(({ conversation, begins }) => {
      if (!begins) return [];
      if (begins.of !== 'agent') return [[conversation, FAULT[begins.of]]];
      const names = capabilities.flatMap(({ name, selected, lacking }) =>
        selected && lacking.includes(conversation) ? [name] : [],
      );
      return [[conversation, names.join(', ') || NOT_EXPLAINED]];
    }),
  );
  return (conversation) => explanations.get(conversation);
}
