/**
 * Folder artifacts: a folder is stored as its files plus a JSON listing of them. Invariant: the listing's sha256 fixes every byte
 * of the folder, and a materialised folder is whole from the moment it has its name.
 */
import { copyFile, chmod, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { z } from 'zod';
import { asidePath, isCode, syncFolder } from './durable-file';

export const TREE_MEDIA_TYPE = 'application/vnd.campaign.folder+json';

const listingSchema = z.object({
  files: z.array(
    z.object({
      /** Relative, with forward slashes, inside the folder. */
      path: z.string().refine((path) => !path.split('/').some((part) => part === '' || part === '.' || part === '..')),
      sha256: z.string(),
      bytes: z.number().int(),
    }),
  ),
});
export type Listing = z.infer<typeof listingSchema>;

export const parseListing = (body: Buffer): Listing => listingSchema.parse(JSON.parse(body.toString('utf8')));

/** The files of a folder, sorted by path. Links and devices are refused: what they lead to is not the folder's. */
export async function listFiles(folder: string): Promise<{ path: string; absolute: string }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => !entry.isDirectory())
    .map((entry) => {
      const absolute = join(entry.parentPath, entry.name);
      if (!entry.isFile()) throw new Error(`folder artifact: ${absolute} is not a plain file; copy what it refers to`);
      return { path: relative(folder, absolute).split(sep).join('/'), absolute };
    });
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Copies the listed objects to `target`, read-only. Does nothing if it is there; two processes may do this at once. */
export async function materialise({ listing, target, aside, objectPath }: Materialise): Promise<void> {
  if (await stat(target).catch(() => undefined)) return;
  const temporary = asidePath(aside);
  await mkdir(temporary);
  try {
    for (const file of listing.files) {
      const path = join(temporary, file.path);
      await mkdir(dirname(path), { recursive: true });
      await copyFile(objectPath(file.sha256), path);
      const handle = await open(path, 'r+');
      await handle.sync();
      await handle.close();
      await chmod(path, 0o444);
    }
    await mkdir(dirname(target), { recursive: true });
    await rename(temporary, target);
    await syncFolder(dirname(target));
  } catch (error) {
    await rm(temporary, { recursive: true, force: true });
    // Another process was first; what it made is the same.
    if (!isCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  }
}

interface Materialise {
  listing: Listing;
  target: string;
  aside: string;
  objectPath: (sha: string) => string;
}
