/** The files of a store in a folder that are no content: the entry of a key (and of provenance), and the listing of a folder's files. */
import { z } from 'zod';
import { artifactRefSchema } from '../domain/artifacts';
import { digest } from './hash';
import { isInside } from './objects';

const entrySchema = z.object({
  key: z.string(),
  producer: z.string(),
  inputs: z.array(artifactRefSchema),
  ref: artifactRefSchema,
});
export type Entry = z.infer<typeof entrySchema>;

export const listingSchema = z.object({
  files: z.array(z.object({ path: z.string().refine(isInside), sha256: z.string(), bytes: z.number().int() })),
});
export type Listing = z.infer<typeof listingSchema>;

/** An entry carries its digest, so that any changed byte makes it damaged. */
export const formatEntry = (entry: Entry): string => JSON.stringify({ digest: digest(entry), entry });

/** Undefined if it is damaged. */
export function parseEntry(text: string): Entry | undefined {
  try {
    const { digest: wanted, entry } = JSON.parse(text) as { digest: string; entry: unknown };
    return digest(entry) === wanted ? entrySchema.parse(entry) : undefined;
  } catch {
    return undefined;
  }
}
