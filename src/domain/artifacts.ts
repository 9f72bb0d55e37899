/**
 * References to artifacts, which go through Temporal payloads instead of data, and the numbers that are measured from them. Invariant: a figure says
 * over how many units it is and which artifacts it came from, so that `campaign show` can lead from it back to rollouts; a missing number is null
 * with n 0, never zero.
 */
import { z } from 'zod';

export const artifactRefSchema = z.object({
  /** `artifact:<sha256>` for files, `artifact-tree:<sha256>` for folders (an adapter, an environment). */
  uri: z.string(),
  sha256: z.string(),
  bytes: z.number().int().nonnegative(),
  mediaType: z.string(),
});
export type ArtifactRef = z.infer<typeof artifactRefSchema>;

/** Every reference in a value, once. */
export function refsIn(value: unknown, found = new Map<string, ArtifactRef>()): ArtifactRef[] {
  const ref = artifactRefSchema.safeParse(value).data;
  if (ref) found.set(ref.uri, ref);
  else if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) refsIn(part, found);
  return [...found.values()];
}

const intervalSchema = z.strictObject({
  low: z.number(),
  high: z.number(),
  level: z.number().gt(0).lt(1),
  /** Name of the method, e.g. `wilson`, `paired bootstrap over tasks`. */
  method: z.string(),
});

const units = z.number().int().nonnegative();
const testSchema = z.strictObject({ better: units, worse: units, p: z.number().min(0).max(1) });

/** `fraction` and `difference` (of two fractions) are in 0..1 here and shown as percent and points. */
const figureUnitSchema = z.enum(['fraction', 'difference', 'reward', 'count', 'tokens', 'milliseconds']);

export const figureSchema = z
  .strictObject({
    /** Dotted path that `campaign show` takes, e.g. `arms.trace.success_rate`. */
    id: z.string().regex(/^[a-z0-9_]+(\.[a-z0-9_-]+)*$/, 'lower-case words joined by dots'),
    /** null: there was nothing to measure (n is 0). */
    value: z.number().nullable(),
    /** Number of units that the value is over: tasks, rollouts, seeds or labeling passes. */
    n: z.number().int().nonnegative(),
    unit: figureUnitSchema.optional(),
    /** Population standard deviation over the n units, where that is what the method reports. */
    std: z.number().nonnegative().optional(),
    interval: intervalSchema.optional(),
    /** The test behind the interval of a paired difference, and the number of tasks that each side solves more often. */
    test: testSchema.optional(),
    from: z.array(artifactRefSchema),
  })
  .refine((f) => f.value !== null || f.n === 0, 'a figure without a value has n 0')
  .refine((f) => f.from.length > 0 || f.n === 0, 'a figure names the artifacts that it came from');
export type Figure = z.infer<typeof figureSchema>;

/** Every figure in a value, in the order in which it stands there; a repeated figure is given once per place. */
export const figuresIn = (value: unknown): Figure[] => {
  if (typeof value !== 'object' || value === null) return [];
  if ('id' in value && 'n' in value && 'from' in value) return [value as Figure];
  return Object.values(value).flatMap(figuresIn);
};
