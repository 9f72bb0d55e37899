/** References to artifacts, and figures: each says over how many units it is and from which artifacts. A missing number is null with n 0. */
import { z } from 'zod';

export const artifactRefSchema = z.object({
  /** `artifact:<sha256>` for files, `artifact-tree:<sha256>` for folders (an adapter, an environment). */
  uri: z.string(),
  sha256: z.string(),
  bytes: z.number().int().nonnegative(),
  mediaType: z.string(),
});
export type ArtifactRef = z.infer<typeof artifactRefSchema>;

/** Returns every artifact reference inside a value, each once. */
export function refsIn(value: unknown, found = new Map<string, ArtifactRef>()): ArtifactRef[] {
  const ref = artifactRefSchema.safeParse(value).data;
  if (ref) found.set(ref.uri, ref);
  else if (typeof value === 'object' && value !== null) for (const part of Object.values(value)) refsIn(part, found);
  return [...found.values()];
}

export interface Figure {
  /** Dotted path that `campaign show` takes, e.g. `arms.trace.success_rate`. */
  id: string;
  /** null: there was nothing to measure (n is 0). */
  value: number | null;
  n: number;
  /** `fraction` and `difference` (of two fractions) are in 0..1 here and shown as percent and points. */
  unit?: 'fraction' | 'difference' | 'reward' | 'count' | 'tokens' | undefined;
  std?: number | undefined;
  /** `method`: e.g. `wilson`, `sign-flip test over tasks`. */
  interval?: { low: number; high: number; level: number; method: string } | undefined;
  /** The test behind the interval of a paired difference, and the number of tasks that each side solves more often. */
  test?: { better: number; worse: number; p: number } | undefined;
  from: ArtifactRef[];
}

/** Returns all figures in a value, in order of occurrence. Duplicates are kept. */
export const figuresIn = (value: unknown): Figure[] => {
  if (typeof value !== 'object' || value === null) return [];
  if ('id' in value && 'n' in value && 'from' in value) return [value as Figure];
  return Object.values(value).flatMap(figuresIn);
};
