/** What an arm reads from the disk. Invariant: what passes can be used as it lies there; the other errors are of type BadInput and name the field. */
import { takeConversations } from '../conversations/read';
import { isFailure, OutsideFailure } from '../domain/failures';
import type { Registry } from '../registry';
import { moduleFiles } from '../sandbox/source';

type FileToRead = ReturnType<NonNullable<Registry['arms'][number]['reads']>>;

export async function checkBrought(what: FileToRead): Promise<void> {
  try {
    if (what.holds === 'modules') await moduleFiles(what.path);
    else await takeConversations({ file: what.path, minReward: what.minReward });
  } catch (error) {
    if (!isFailure(error, 'BadInput')) throw error;
    throw new OutsideFailure('BadInput', `${what.field}: ${error.message}`, error);
  }
}
