/** Capabilities: candidates, labels, selection, and where failures begin. */
import { z } from 'zod';
import { isPolicyName } from './policies';
import { countsOf } from './statistics';

export const capabilityNameSchema = z
  .string()
  .regex(/^[a-z]+(_[a-z]+){1,4}$/, 'a capability name is snake_case with 2-5 words')
  .refine((name) => !isPolicyName(name), 'another name: the report has this one already');

const citationSchema = z.object({
  rollout: z.string(),
  /** Index into the rollout's messages. */
  message: z.number().int().nonnegative(),
  says: z.string(),
  /** The model's own sentence if `says` replaces ids of its prompt by names; later prompts quote this one. */
  verbatim: z.string().optional(),
});
export type Citation = z.infer<typeof citationSchema>;

export const candidateSchema = z.object({
  name: capabilityNameSchema,
  definition: z.string(),
  /** Rollout keys, of both outcomes where there are any; none where nothing may be quoted. */
  examples: z.array(z.string()),
  /** Steps that show it, of both outcomes; for analysts that cite. */
  citations: z.array(citationSchema).optional(),
});
export type Candidate = z.infer<typeof candidateSchema>;
export type Lacking = Pick<Candidate, 'name' | 'definition'>;

/** A failure that is not the agent's: it is reported and never becomes a capability. */
const faultSchema = z.object({
  of: z.enum(['environment', 'user']),
  what: z.string(),
  citations: z.array(citationSchema),
});

export const discoverySchema = z.object({
  candidates: z.array(candidateSchema),
  faults: z.array(faultSchema),
});
export type Discovery = z.infer<typeof discoverySchema>;

export type Label = 'NA' | 'PRESENT' | 'LACKING';

/** The earliest step that explains a failure, and the party that made it. */
export const failureOriginSchema = z.object({
  of: z.enum(['agent', 'environment', 'user']),
  /** Index into the trajectory's messages. */
  message: z.number().int().nonnegative(),
  reason: z.string(),
});
export type FailureOrigin = z.infer<typeof failureOriginSchema>;

const ids = z.array(z.string());
export const labelPassSchema = z.object({
  attempt: z.union([z.number(), z.string()]),
  totals: z.object({ total_failed: z.number().int(), total_passed: z.number().int() }),
  labels: z.record(
    z.string(),
    z.object({
      lacking_failed: ids,
      present_failed: ids,
      na_failed: ids,
      lacking_passed: ids,
      present_passed: ids,
      na_passed: ids,
    }),
  ),
  /** The reason of each label and the message that it refers to, by capability and trajectory; for analysts that give reasons. */
  reasons: z
    .record(
      z.string(),
      z.record(z.string(), z.object({ reason: z.string(), message: z.number().int().nonnegative().optional() })),
    )
    .optional(),
  /** The origin of each failure; a trajectory whose failure is not the agent's is NA everywhere. For analysts that give reasons. */
  failures: z.record(z.string(), failureOriginSchema).optional(),
});
export type LabelPass = z.infer<typeof labelPassSchema>;

const meanStd = z.object({ mean: z.number(), std: z.number() });
export const selectionSchema = z.object({
  passes: z.number().int(),
  reason: z.string().optional(),
  capabilities: z.array(
    z.object({
      name: z.string(),
      /** Over the passes that contain the capability; std is the population's. */
      coverage: meanStd,
      delta: meanStd,
      votes: z.number().int(),
      passes: z.number().int(),
      selected: z.boolean(),
      /** The first (as many as the rule's `evidence`) of its LACKING-failed trajectories, sorted as text. */
      evidence: ids,
    }),
  ),
});
export type Selection = z.infer<typeof selectionSchema>;

export interface Beginning extends FailureOrigin {
  /** Number of passes that name this message, among those that blame the same party. */
  votes: number;
  blaming: number;
}

/** Returns the origin that most passes name; undefined without any. `origins` are in the order of the passes; the reason is the first for that message. */
export function beginningOf(origins: readonly FailureOrigin[]): Beginning | undefined {
  const counts = (['agent', 'environment', 'user'] as const).map((of) => origins.filter((one) => one.of === of));
  const blaming = counts.reduce((most, own) => (own.length > most.length ? own : most));
  const step = commonest(blaming.map(({ message }) => message));
  const first = blaming.find(({ message }) => message === step?.message);
  return step && first && { ...first, votes: step.votes, blaming: blaming.length };
}

/** Returns the most frequent message; the earliest if there are several. */
export function commonest(messages: readonly number[]): { message: number; votes: number } | undefined {
  const [first] = [...countsOf(messages)].sort(([a, votesA], [b, votesB]) => votesB - votesA || a - b);
  return first && { message: first[0], votes: first[1] };
}
