/**
 * Reads a journal that grows again and again. Invariant: what was read is not read anew, as long as it is the same file; a line that had not
 * ended is read once more.
 */
import { open, type FileHandle } from 'node:fs/promises';
import { isCode } from './durable-file';
import { addRecords } from './journal';

interface Seen {
  /** Tells apart files that have one path after the other. */
  file: string;
  records: Map<string, unknown>;
  size: number;
  /** After the last line that ended. */
  read: number;
}

const nothing = (file: string): Seen => ({ file, records: new Map(), size: 0, read: 0 });

/** Each call gives what is whole by then; nothing where there is no journal. */
export function journalReader(path: string): () => Promise<ReadonlyMap<string, unknown>> {
  let seen = nothing('');
  return async () => {
    const file = await open(path, 'r').catch((error: unknown) => {
      if (isCode(error, 'ENOENT')) return undefined;
      throw error;
    });
    if (!file) seen = nothing('');
    else seen = await readOn(file, seen).finally(() => file.close());
    return seen.records;
  };
}

async function readOn(file: FileHandle, before: Seen): Promise<Seen> {
  const { size, dev, ino, birthtimeMs } = await file.stat();
  const name = [dev, ino, birthtimeMs].join();
  const seen = name === before.file && size >= before.size ? before : nothing(name);
  if (size === seen.size) return seen;
  const bytes = await bytesFrom(file, { start: seen.read, end: size });
  const read = seen.read + (await addRecords(bytes, seen.records));
  return { ...seen, size: seen.read + bytes.length, read };
}

/** Fewer where the file was cut meanwhile. */
async function bytesFrom(file: FileHandle, { start, end }: { start: number; end: number }): Promise<Buffer> {
  const bytes = Buffer.alloc(end - start);
  let filled = 0;
  while (filled < bytes.length) {
    const { bytesRead } = await file.read(bytes, filled, bytes.length - filled, start + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
}
