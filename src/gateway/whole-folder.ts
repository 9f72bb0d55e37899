/** Writes a folder that is there whole or not at all. */
import { readdir, rename, rm } from 'node:fs/promises';
import { ifThere, makeFolder } from '../store/durable-file';
import { badInput, reasonOf } from '../domain/failures';

/** Replaces an empty folder, or an earlier one that holds the name `mark`. Throws BadInput where the folder holds something else. */
export async function replaceFolder(o: {
  folder: string;
  mark: string;
  write: (made: string) => Promise<void>;
}): Promise<void> {
  const { folder, mark, write } = o;
  const names = (await ifThere(readdir(folder))) ?? [];
  if (names.length > 0 && !names.includes(mark))
    throw badInput(`${folder} holds other things (${names[0]}); name a folder that is not there yet`);
  const made = `${folder}.partial`;
  await rm(made, { recursive: true, force: true });
  try {
    await makeFolder(made).catch((error: unknown) => {
      throw badInput(`${made} can't be made (${reasonOf(error)}); name a folder elsewhere`, error);
    });
    await write(made);
    await rm(folder, { recursive: true, force: true });
    await rename(made, folder);
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}
