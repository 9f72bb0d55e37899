/** Entries of keys and of provenance, and the paths of a store's files. */
import { z } from 'zod';
import { artifactRefSchema } from '../domain/artifacts';
import { digest, sha256 } from './hash';

const entrySchema = z.object({
  key: z.string(),
  producer: z.string(),
  inputs: z.array(artifactRefSchema),
  ref: artifactRefSchema,
});
export type Entry = z.infer<typeof entrySchema>;

/** An entry carries its digest, so that any changed byte makes it damaged. */
export const formatEntry = (entry: Entry): string => JSON.stringify({ digest: digest(entry), entry });

/** Returns undefined for a damaged entry. */
export function parseEntry(text: string): Entry | undefined {
  try {
    const { digest: wanted, entry } = JSON.parse(text) as { digest: string; entry: unknown };
    return digest(entry) === wanted ? entrySchema.parse(entry) : undefined;
  } catch {
    return undefined;
  }
}

export const objectPath = (sha: string): string => `objects/${sha.slice(0, 2)}/${sha}`;
export const provenancePath = (sha: string): string => `provenance/${sha.slice(0, 2)}/${sha}.json`;
export const keyPath = (key: string): string => `keys/${sha256(key).slice(0, 2)}/${sha256(key)}.json`;
