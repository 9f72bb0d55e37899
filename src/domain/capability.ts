/** Capabilities: candidates, labels, and selection. */
import { z } from 'zod';
import { isPolicyName } from './policy-names';

export const capabilityNameSchema = z
  .string()
  .regex(/^[a-z]+(_[a-z]+){1,4}$/, 'a capability name is snake_case with 2-5 words')
  .refine((name) => !isPolicyName(name), 'another name: the report has this one already');

export const candidateSchema = z.object({
  name: capabilityNameSchema,
  definition: z.string(),
  /** Rollout keys, of both outcomes where there are any; none where nothing may be quoted. */
  examples: z.array(z.string()),
});
export type Candidate = z.infer<typeof candidateSchema>;

export type Label = 'NA' | 'PRESENT' | 'LACKING';

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
