/**
 * A folder that is written for others. Invariants: it is there whole or not at all; only what is empty or an earlier one of its kind is replaced;
 * what a dead process left of one goes.
 */
import { randomBytes } from 'node:crypto';
import { readdir, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { flush, ifThere, isCode, lives, makeFolder } from '../artifacts/durable-file';
import { OutsideFailure, reasonOf } from '../domain/failures';

/** `mark`: a name that each of its kind holds. Throws BadInput where the folder holds something else. */
export async function replaceFolder<Result>(o: {
  folder: string;
  mark: string;
  write: (made: string) => Promise<Result>;
}): Promise<Result> {
  const { folder, mark, write } = o;
  await checkFree(folder, mark);
  const [above, name] = [dirname(folder), basename(folder)];
  const aside = join(above, `.${name}.${process.pid}-${randomBytes(4).toString('hex')}.partial`);
  const [made, old] = [`${aside}/new`, `${aside}/old`];
  try {
    // Where no folder can be made, as in /proc, Node's own way to make those above it never ends.
    await makeFolder(made).catch((error: unknown) => {
      const problem = `nothing can be written into ${above} (${reasonOf(error)})`;
      throw new OutsideFailure('BadInput', `${problem}; name a folder elsewhere`, error);
    });
    await removeAbandoned(above, name);
    const result = await write(made);
    await ifThere(rename(folder, old));
    await rename(made, folder);
    await flush(above);
    return result;
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
}

async function checkFree(folder: string, mark: string): Promise<void> {
  const names = await readdir(folder).catch((error: unknown): string[] => {
    if (isCode(error, 'ENOENT')) return [];
    throw new OutsideFailure('BadInput', `${folder} is no folder; name another one`, error);
  });
  if (names.length === 0 || names.includes(mark)) return;
  throw new OutsideFailure(
    'BadInput',
    `${folder} holds other things (${names[0]}); name a folder that is not there yet`,
  );
}

/** Of processes that are gone. */
async function removeAbandoned(above: string, name: string): Promise<void> {
  for (const one of await readdir(above)) {
    const pid = one.startsWith(`.${name}.`) ? /\.(\d+)-[0-9a-f]{8}\.partial$/.exec(one)?.[1] : undefined;
    if (pid !== undefined && !lives(Number(pid))) await rm(join(above, one), { recursive: true, force: true });
  }
}
