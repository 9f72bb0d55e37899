/** Paths as campaigns carry them from machine to machine. No text is ever taken for one. */
import { z } from 'zod';

export const placeSchema = z.union([
  /** A file or folder that a campaign put into the store when it started: the digest of the stored files, and the path among them. */
  z.strictObject({ $given: z.string().regex(/^[0-9a-f]{64}$/), path: z.string() }),
  /** A path relative to the project's folder. */
  z.strictObject({ $project: z.string() }),
]);
export type Place = z.infer<typeof placeSchema>;

export const isPlace = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && ('$given' in value || '$project' in value);

export const fileNameOf = (path: string | Place): string =>
  (typeof path === 'string' ? path : '$given' in path ? path.path : path.$project).split('/').at(-1)!;
