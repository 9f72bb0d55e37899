/** Output of a child, straight into a file, so that it is whole even if the supervisor is killed. */
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readSync, renameSync, statSync } from 'node:fs';
import { join } from 'node:path';

const ROTATE_BYTES = 20 * 1024 * 1024;
const TAIL_BYTES = 64 * 1024;

export interface LogFile {
  path: string;
  /** For a child's stdio. */
  descriptor: number;
  /** Size when it was opened: what comes after was written by this child. */
  start: number;
}

export const logPath = (folder: string, name: string): string => join(folder, `${name}.log`);

/** Where what is written from now on begins. */
export const logSize = (folder: string, name: string): number =>
  statSync(logPath(folder, name), { throwIfNoEntry: false })?.size ?? 0;

/** Opens `<folder>/<name>.log` for appending; a large old one is kept once as `.log.1`. */
export function openLog(folder: string, name: string): LogFile {
  mkdirSync(folder, { recursive: true });
  const path = logPath(folder, name);
  if (existsSync(path) && statSync(path).size > ROTATE_BYTES) renameSync(path, `${path}.1`);
  const descriptor = openSync(path, 'a');
  return { path, descriptor, start: fstatSync(descriptor).size };
}

/** The last `lines` lines that are not empty, of what was written from `start` on. */
export function logTail({ path, start = 0, lines = 8 }: { path: string; start?: number; lines?: number }): string[] {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch {
    return [];
  }
  try {
    const { size } = fstatSync(descriptor);
    const from = Math.max(start, size - TAIL_BYTES, 0);
    const bytes = Buffer.alloc(Math.max(0, size - from));
    readSync(descriptor, bytes, 0, bytes.length, from);
    const text = bytes
      .toString('utf8')
      .split('\n')
      .filter((line) => line.trim() !== '');
    return text.slice(-lines);
  } finally {
    closeSync(descriptor);
  }
}
