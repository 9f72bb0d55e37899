/** Writes without room. Invariant: whoever reads the failure knows where there is no room, and how much is wanted. */
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { OutsideFailure } from '../domain/failures';

/** What could not be written: its path and how many bytes it has, where that is known. */
interface Wanted {
  path: string;
  bytes?: number;
}

/** The failure DiskFull for an error that says so (no room, or the quota is used up); any other error as it is. */
export async function diskFull(error: unknown, { path, bytes }: Wanted): Promise<unknown> {
  const code = (error as { code?: unknown } | undefined)?.code;
  if (code !== 'ENOSPC' && code !== 'EDQUOT') return error;
  const room = await roomAt(dirname(path));
  const blocks = Math.max(1, Math.ceil((bytes ?? 0) / room.block)) * room.block;
  const why = code === 'EDQUOT' ? 'the quota of the disk is used up' : 'the disk is full';
  const inodes = room.inodes === undefined ? '' : ` and ${room.inodes.toLocaleString('en-US')} inodes`;
  // With bytes enough it is files that there are too many of.
  const fix = code === 'ENOSPC' && room.free >= blocks ? 'remove files there' : `free at least ${size(blocks)}`;
  return new OutsideFailure(
    'DiskFull',
    `${why}: no room for ${path}${bytes === undefined ? '' : ` (${size(bytes)})`}, ${size(room.free)}${inodes} are free there; ${fix}: work goes on by itself`,
    error,
  );
}

/** Does `work`, which writes what is named; without room it fails with DiskFull. */
export async function withRoom<Result>(wanted: Wanted, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw await diskFull(error, wanted);
  }
}

const size = (bytes: number): string => `${bytes.toLocaleString('en-US')} bytes`;

/** Of the nearest folder that exists. `inodes` is undefined on file systems that make them as they need them. */
async function roomAt(folder: string): Promise<{ block: number; free: number; inodes?: number }> {
  const room = await statfs(folder).catch(() => undefined);
  if (!room) return dirname(folder) === folder ? { block: 4096, free: 0 } : roomAt(dirname(folder));
  return {
    block: room.bsize,
    free: room.bavail * room.bsize,
    ...(room.files > 0 ? { inodes: room.ffree } : {}),
  };
}
