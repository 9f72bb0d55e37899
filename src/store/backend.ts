/** The interface of what holds a store's files: a folder, or a bucket. */
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ifThere } from './durable-file';

export interface TextFile {
  text: string;
  version: string;
  changedMs: number;
}

export interface StoredFile {
  path: string;
  isFolder: boolean;
  bytes: number;
  names: number;
  changedMs: number;
}

/** Holds a store's files. Paths are relative, with forward slashes. */
export interface Backend {
  /** Returns the address of a file for errors; that of the store for an empty path. */
  address(path: string): string;
  /** Returns a small file. Its version changes with every write and renewal. */
  read(path: string): Promise<TextFile | undefined>;
  /** Writes the text unless the path is taken; returns whether it did. Exactly one of several writers succeeds. */
  create(path: string, text: string): Promise<boolean>;
  /** Makes a file count as written now; returns false if it is no longer the one that was read. */
  renew(path: string, file: TextFile): Promise<boolean>;
  /** Removes a file. With `version` it removes only that version, and returns false if it is not there. */
  remove(path: string, version?: string): Promise<boolean>;
  removeOlder(path: string, thanMs: number): Promise<void>;
  putFile(path: string, file: string): Promise<void>;
  getFile(path: string, file: string): Promise<boolean>;
  list(prefix?: string): Promise<StoredFile[]>;
  leftovers(): Promise<string[]>;
  changedMs(path: string): Promise<number | undefined>;
  readonly objects: {
    has(sha: string): Promise<boolean>;
    /** Stores bytes, or renews the object that holds them, so that it counts as written now. Returns their sha256. */
    put(body: Uint8Array | string): Promise<string>;
    /** Stores a file in the same way. It may be linked instead of copied, and is read-only from then on. */
    takeOver(file: string): Promise<string>;
    read(sha: string): Promise<Buffer | undefined>;
    /** Makes the local file `to` hold the object; returns false if the object is damaged or missing. */
    giveOut(sha: string, to: string): Promise<boolean>;
  };
  folderPath(sha: string): string;
}

/** Returns a local folder and everything in it; nothing if it does not exist. */
export async function walk(folder: string): Promise<StoredFile[]> {
  const entries = (await ifThere(readdir(folder, { recursive: true, withFileTypes: true }))) ?? [];
  const paths = [folder, ...entries.map((entry) => join(entry.parentPath, entry.name))];
  const seen = await Promise.all(
    paths.map(async (path) => {
      const stat = await ifThere(lstat(path));
      if (!stat) return [];
      const isFolder = stat.isDirectory();
      const names = isFolder ? 1 : stat.nlink;
      return [{ path, isFolder, bytes: stat.blocks * 512, names, changedMs: stat.mtimeMs }];
    }),
  );
  return seen.flat();
}
