/** Folders and files that a command writes. Invariant: what can't be made or written is told in words. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode, makeFolder } from '../artifacts/durable-file';
import { messageOf, UserError } from './errors';

/** Texts by the names of their files. @throws UserError */
export const writeInto = (folder: string, files: Record<string, string>): Promise<void> =>
  inWords(folder, async () => {
    await makeFolder(folder);
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  });

/** @throws UserError */
export const makeHome = (folder: string): Promise<void> => inWords(folder, () => makeFolder(folder));

const inWords = (folder: string, write: () => Promise<void>): Promise<void> =>
  write().catch((error: unknown) => {
    throw new UserError(`nothing can be written into ${folder}: ${whyUnwritten(error)}; name another folder`);
  });

/** Why something could not be written. */
export function whyUnwritten(error: unknown): string {
  if (isCode(error, 'EACCES', 'EPERM')) return 'you have no permission to write there';
  if (isCode(error, 'EROFS')) return 'its file system can only be read';
  if (isCode(error, 'ENOSPC', 'EDQUOT')) return 'its disk is full';
  if (isCode(error, 'ENOTDIR')) return 'a file is in the place of a folder';
  if (isCode(error, 'EISDIR')) return 'a folder is in the place of a file';
  return messageOf(error);
}
