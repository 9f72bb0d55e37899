/**
 * The artifact store's interface, and artifacts that hold JSON. Invariants: an artifact is written once under a key (a second put returns the first one);
 * a half-written artifact can never be read; every artifact knows its inputs, so that any figure leads back to rollouts.
 */
import { join } from 'node:path';
import type { ArtifactRef } from '../domain/artifacts';
import { z } from 'zod';
import { withTemporaryFolder } from './durable-file';
import { canonical } from './hash';

export interface Provenance {
  key: string;
  producer: string;
  inputs: ArtifactRef[];
}

export interface ArtifactStore {
  /** Returns the id of the store. The id is created with the store and does not change when the store is moved. */
  id(): Promise<string>;
  /** Throws BadInput for a store of another version, whose keys differ. */
  checkFormat(): Promise<void>;
  /** Stores bytes under a key derived from the inputs. If the key is taken, the artifact there is returned and `body` is dropped. */
  put(artifact: Provenance & { body: Uint8Array | string; mediaType: string }): Promise<ArtifactRef>;
  /**
   * Stores a folder (an adapter), or the named files of it; the reference is to its listing. The files may be linked instead of copied and are read-only
   * from then on: the caller must not write into them.
   */
  putFolder(artifact: Provenance & { folder: string; files?: readonly string[] }): Promise<ArtifactRef>;
  /** Returns the artifact under the key. A damaged one is forgotten, so that the caller makes it again. */
  find(key: string): Promise<ArtifactRef | undefined>;
  /** Removes the key, so that the next caller makes its artifact again. */
  forget(key: string): Promise<void>;
  /** Returns the bytes, checked against the reference's sha256. Throws ArtifactDamaged. */
  read(ref: ArtifactRef): Promise<Buffer>;
  /** Returns a read-only local folder with the files of putFolder, checked once in a process. Throws ArtifactDamaged. */
  folder(ref: ArtifactRef): Promise<string>;
  provenance(ref: ArtifactRef): Promise<Provenance>;
  /** Returns the artifact whose sha256 begins with `prefix` or whose key is `prefix`; undefined for none or several. */
  resolve(prefix: string): Promise<ArtifactRef | undefined>;
  /** Small records beside the artifacts, each written once. */
  readonly files: RecordFiles;
  readonly isBucket?: true;
  /**
   * Removes artifacts that no campaign's index names and that are older than a day, and temporary files of ended processes; with `dryRun` it only counts.
   * Any number of steps may run meanwhile. `nowMs` is the time by the store's clock; by default it is read.
   */
  gc(o: { dryRun: boolean; nowMs?: number }): Promise<Garbage>;
}

/** Files at fixed paths (`budget/NAME/7`), with which workers agree: a file is created once and never changed. */
export interface RecordFiles {
  /**
   * Writes the text durably unless the path is taken; returns whether this call wrote it. Exactly one of several writers succeeds if their texts differ:
   * a bucket can't distinguish a request that was sent twice from two writers of the same text. The text must not be empty.
   */
  create(path: string, text: string): Promise<boolean>;
  read(path: string): Promise<string | undefined>;
  list(prefix: string): Promise<RecordFile[]>;
  remove(path: string): Promise<void>;
  /** Removes all files below the path. */
  removeFolder(path: string): Promise<void>;
  /** Stores a local file under a path that no other writer uses. The file may be linked, and must not be changed from then on. */
  putFile(path: string, file: string): Promise<void>;
  /** Copies or links the file at the path to a local file; returns false if there is none. */
  getFile(path: string, file: string): Promise<boolean>;
}

export interface RecordFile {
  path: string;
  changedMs: number;
}

export interface Garbage {
  files: number;
  bytes: number;
}

/** Reads an artifact that holds JSON. Throws if it does not fit the schema. */
export async function readJson<T>(store: ArtifactStore, ref: ArtifactRef, schema: z.ZodType<T>): Promise<T> {
  const parsed = schema.safeParse(JSON.parse((await store.read(ref)).toString('utf8')));
  if (parsed.success) return parsed.data;
  throw new Error(`artifact ${ref.uri} has another form than expected: ${z.prettifyError(parsed.error)}`);
}

/** Finds the artifact under the key, or makes it and stores it as canonical JSON: equal values are equal artifacts. */
export async function keptJson(
  store: ArtifactStore,
  { key, ...provenance }: { key: string; producer: string; inputs: ArtifactRef[] },
  make: () => unknown,
): Promise<ArtifactRef> {
  const known = await store.find(key);
  if (known) return known;
  const body = canonical(await make());
  return store.put({ key, ...provenance, mediaType: 'application/json', body });
}

/** Finds the folder under a key. Otherwise stores the one that `write` makes at the given path. */
export async function keptFolder(
  store: Pick<ArtifactStore, 'find' | 'putFolder'>,
  about: Provenance,
  write: (folder: string) => Promise<void>,
): Promise<ArtifactRef> {
  const known = await store.find(about.key);
  if (known) return known;
  return withTemporaryFolder('kept-', async (work) => {
    const folder = join(work, 'folder');
    await write(folder);
    return store.putFolder({ ...about, folder });
  });
}
