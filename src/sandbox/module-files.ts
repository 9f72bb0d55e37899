/** A folder of modules that somebody brings: every .js file is one. Throws BadInput where there is none. */
import { readdir } from 'node:fs/promises';
import { OutsideFailure, reasonOf } from '../domain/failures';

/** Names of the files, in order. */
export async function moduleFiles(folder: string): Promise<string[]> {
  const wrong = (problem: string) =>
    new OutsideFailure('BadInput', `${folder} ${problem}; name a folder of environment modules (docs/synthesis.md)`);
  const names = await readdir(folder).catch((error: unknown) => {
    throw wrong(`cannot be read (${reasonOf(error)})`);
  });
  const files = names.filter((name) => name.endsWith('.js')).sort();
  if (files.length === 0) throw wrong('holds no .js file');
  return files;
}
