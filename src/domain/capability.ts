/** Capabilities: the taxonomy of errors that the analyst by rules works with, labels, and selection. */
import { z } from 'zod';

export const capabilityNameSchema = z
  .string()
  .regex(/^[a-z]+(_[a-z]+){1,4}$/, 'a capability name is snake_case with 2-5 words');

/** General classes of error that can be seen by comparing what was done with what was needed. */
export const errorClassSchema = z.enum([
  /** Some of the needed actions were done, others left out. */
  'omitted_action',
  /** A write that the policy forbids: none was needed there. */
  'forbidden_action',
  /** The right tool on the wrong one of several similar records. */
  'wrong_candidate',
  /** Right tool, right record, a wrong computed value. */
  'wrong_value',
  /** Everything was done, but a fact that the user asked for was not told (or a false one was). */
  'untold_information',
  /** An identifier was made up instead of asked for. */
  'invented_identifier',
  /** Nothing was done although the policy permits it. */
  'refused_permitted_action',
]);
export type ErrorClass = z.infer<typeof errorClassSchema>;

export const candidateSchema = z.object({
  name: capabilityNameSchema,
  definition: z.string(),
  /** 2-4 rollout keys, of both outcomes where there are any. */
  examples: z.array(z.string()),
  /** Set by the analyst by rules; the synthesizer by generators has one generator per class. */
  errorClass: errorClassSchema.optional(),
});
export type Candidate = z.infer<typeof candidateSchema>;

export const labelSchema = z.enum(['NA', 'PRESENT', 'LACKING']);
export type Label = z.infer<typeof labelSchema>;

/**
 * One labeling pass in the shape that the method's authors publish (file run_NN.json). Ids are text; files of others hold numbers too,
 * which become text.
 */
const ids = z.array(z.union([z.string(), z.number()]).transform(String));
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
      /** The first 8 of its LACKING-failed trajectories, sorted as text. */
      evidence: ids,
    }),
  ),
});
export type Selection = z.infer<typeof selectionSchema>;
