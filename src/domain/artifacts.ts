/** References to artifacts: what goes through Temporal payloads instead of data. */
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
