/** Capabilities: candidates, labels, and selection. */
import { z } from 'zod';
import { isPolicyName } from './policy-names';

export const capabilityNameSchema = z
  .string()
  .regex(/^[a-z]+(_[a-z]+){1,4}$/, 'a capability name is snake_case with 2-5 words')
  .refine((name) => !isPolicyName(name), 'another name: the report has this one already');

/** A step of a trajectory, as evidence. */
export const citationSchema = z.object({
  /** The rollout's key. */
  rollout: z.string(),
  /** Index into the rollout's messages. */
  message: z.number().int().nonnegative(),
  /** What is to be seen there, in a sentence. */
  says: z.string(),
  /** The model's own sentence, where names that only its prompt knew are put in words above: further prompts hold it as it was written. */
  verbatim: z.string().optional(),
});
export type Citation = z.infer<typeof citationSchema>;

/** Of a composite: the capabilities whose environments are mixed. */
export const partSchema = z.object({ names: z.array(z.string()).min(2), share: z.number() });
export type Part = z.infer<typeof partSchema>;

export const candidateSchema = z.object({
  name: capabilityNameSchema,
  definition: z.string(),
  /** Rollout keys, of both outcomes where there are any; none where nothing may be quoted. */
  examples: z.array(z.string()),
  /** Steps that show it, of both outcomes; for analysts that cite. */
  citations: z.array(citationSchema).optional(),
  /** Of a composite. */
  parts: z.array(partSchema).optional(),
  /** Of a composite: nothing is written for it, it is trained on its parts' environments in turns. */
  mixed: z.literal(true).optional(),
});
export type Candidate = z.infer<typeof candidateSchema>;
/** A capability in words. */
export type Lacking = Pick<Candidate, 'name' | 'definition'>;

/** What failed for no fault of the agent's: it is reported and never becomes a capability. */
export const faultSchema = z.object({
  of: z.enum(['environment', 'user']),
  /** In a sentence or two. */
  what: z.string(),
  citations: z.array(citationSchema),
});
export type Fault = z.infer<typeof faultSchema>;

/** What discovery found. */
export const discoverySchema = z.object({
  candidates: z.array(candidateSchema),
  faults: z.array(faultSchema),
});
export type Discovery = z.infer<typeof discoverySchema>;

export type Label = 'NA' | 'PRESENT' | 'LACKING';

/** Where a failure begins: the earliest step that explains it, and whose it is. */
export const failureOriginSchema = z.object({
  of: z.enum(['agent', 'environment', 'user']),
  /** Index into the trajectory's messages. */
  message: z.number().int().nonnegative(),
  reason: z.string(),
});
export type FailureOrigin = z.infer<typeof failureOriginSchema>;

/** Ids are text; files of others hold numbers too, which become text. */
const ids = z.array(z.union([z.string(), z.number()]).transform(String));
/** One labeling pass in the shape that the method's authors publish (file run_NN.json). */
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
  /** By capability and trajectory: why it is labeled so, and the message it hangs on. For analysts that give reasons. */
  reasons: z
    .record(
      z.string(),
      z.record(z.string(), z.object({ reason: z.string(), message: z.number().int().nonnegative().optional() })),
    )
    .optional(),
  /** Of each failed trajectory; where it is not the agent's, the trajectory is NA everywhere. For analysts that give reasons. */
  failures: z.record(z.string(), failureOriginSchema).optional(),
});
export type LabelPass = z.infer<typeof labelPassSchema>;

const meanStd = z.object({ mean: z.number(), std: z.number() });
export const selectionSchema = z.object({
  passes: z.number().int(),
  /** Set when nothing is selected: why. */
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
