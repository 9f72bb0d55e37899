/**
 * Entries: what is known of an artifact, in the files of keys and of provenance. Invariant: an entry that is read is the one that was
 * written: it carries its digest, so that any changed byte makes it damaged.
 */
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises';
import { z } from 'zod';
import { artifactRefSchema } from '../domain/artifacts';
import { asidePath } from './aside';
import { withRoom } from './disk-full';
import { isCode, linked, makeFolder } from './durable-file';
import { digest } from './hash';

const entrySchema = z.object({
  key: z.string(),
  producer: z.string(),
  inputs: z.array(artifactRefSchema),
  ref: artifactRefSchema,
});
export type Entry = z.infer<typeof entrySchema>;

const fileSchema = z.object({ digest: z.string(), entry: z.unknown() });

export const formatEntry = (entry: Entry): string => JSON.stringify({ digest: digest(entry), entry });

interface EntryFile {
  /** Undefined if the file is damaged. */
  entry: Entry | undefined;
  /** Which file was read: another one under its name has another. */
  identity: string;
}

/** What the file holds; undefined if there is none. */
export async function readEntry(path: string): Promise<EntryFile | undefined> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    throw error;
  }
  try {
    const identity = identityOf(await file.stat({ bigint: true }));
    return { entry: parseEntry(await file.readFile('utf8')), identity };
  } finally {
    await file.close();
  }
}

function parseEntry(text: string): Entry | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const file = fileSchema.safeParse(value);
  if (!file.success || digest(file.data.entry) !== file.data.digest) return undefined;
  return entrySchema.safeParse(file.data.entry).data;
}

/** Takes away the file that was read, so that its name is free. A file that somebody else has put there since stays. */
export async function removeEntry({ path, identity, aside }: RemoveEntry): Promise<void> {
  await withRoom({ path: aside, bytes: 0 }, () => makeFolder(aside));
  const moved = asidePath(aside);
  try {
    await rename(path, moved);
    if (identityOf(await stat(moved, { bigint: true })) !== identity) await linked(moved, path);
  } catch (error) {
    // Another process was first.
    if (!isCode(error, 'ENOENT')) throw error;
  } finally {
    await rm(moved, { force: true });
  }
}

interface RemoveEntry {
  path: string;
  identity: string;
  aside: string;
}

/** Stays the same when the file is moved. */
const identityOf = ({ ino, size, mtimeNs }: { ino: bigint; size: bigint; mtimeNs: bigint }): string =>
  [ino, size, mtimeNs].join(':');
