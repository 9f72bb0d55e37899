/**
 * The artifact store's interface, and artifacts that hold JSON. Invariants: what is under a key is written once (a second put under the key returns the
 * first artifact); a half-written artifact can never be read; every artifact knows its inputs, so that any figure leads back to rollouts.
 */
import type { ArtifactRef } from '../domain/artifacts';
import { z } from 'zod';
import { canonical } from './hash';

export interface Provenance {
  key: string;
  /** The step that made it: an activity's name. */
  producer: string;
  inputs: ArtifactRef[];
}

export interface ArtifactStore {
  /** What tells this store from every other one, wherever it is moved to: made with the store, and then the same for all who open it. */
  id(): Promise<string>;
  /** Throws BadInput where another version has made it, whose keys are others. */
  checkFormat(): Promise<void>;
  /** Stores bytes under a key derived from the inputs. If the key is taken, the artifact there is returned and `body` is dropped. */
  put(artifact: Provenance & { body: Uint8Array | string; mediaType: string }): Promise<ArtifactRef>;
  /**
   * Stores a folder (an adapter) file by file, or of it the named files alone; the reference is to its listing. The files may be linked instead
   * of copied, and are read-only from then on: whoever made them must not write into them.
   */
  putFolder(artifact: Provenance & { folder: string; files?: readonly string[] }): Promise<ArtifactRef>;
  /** What is under the key. What is damaged is forgotten, and so made again by whoever asks. */
  find(key: string): Promise<ArtifactRef | undefined>;
  /** Takes the key's entry away: whoever asks next makes it anew. */
  forget(key: string): Promise<void>;
  /** The bytes, checked against the reference's sha256. Throws ArtifactDamaged. */
  read(ref: ArtifactRef): Promise<Buffer>;
  /** A read-only local folder that holds what putFolder stored, checked once a process. Throws ArtifactDamaged. */
  folder(ref: ArtifactRef): Promise<string>;
  provenance(ref: ArtifactRef): Promise<Provenance>;
  /** The artifact whose sha256 begins with `prefix` or whose key is `prefix`; undefined if none or several. */
  resolve(prefix: string): Promise<ArtifactRef | undefined>;
  /** Small records beside the artifacts, each written once. */
  readonly files: RecordFiles;
  /** True of a bucket, which no host has as a disk. */
  readonly isBucket?: true;
  /**
   * Removes what no campaign's index names and is older than a day, and what dead processes left half-written; with `dryRun` it only counts. Any
   * number of steps may run meanwhile. `nowMs`: the time by the store's clock, which is read where it is not given.
   */
  gc(o: { dryRun: boolean; nowMs?: number }): Promise<Garbage>;
}

/** Files at fixed paths (`budget/NAME/7`), by which workers agree: a file is created once and is never changed. */
export interface RecordFiles {
  /**
   * Writes the text, durably, unless the path is taken; returns whether this call wrote it. Of several writers exactly one succeeds, if their texts
   * differ: a bucket can't tell a request that was sent twice from two writers of the same text. The text must not be empty.
   */
  create(path: string, text: string): Promise<boolean>;
  read(path: string): Promise<string | undefined>;
  /** The files whose paths begin with the prefix, sorted by path. */
  list(prefix: string): Promise<RecordFile[]>;
  remove(path: string): Promise<void>;
  /** Removes all files below the path. */
  removeFolder(path: string): Promise<void>;
  /** Stores a local file under a path that no other writer uses. The file may be linked: nobody may write into it from then on. */
  putFile(path: string, file: string): Promise<void>;
  /** Makes the local file hold what the path holds; returns false if there is nothing. */
  getFile(path: string, file: string): Promise<boolean>;
}

export interface RecordFile {
  path: string;
  /** Time of writing by the store's clock. */
  changedMs: number;
}

export interface Garbage {
  files: number;
  bytes: number;
}

/** An artifact that holds JSON. Throws where it does not have the schema's form: something else wrote it. */
export async function readJson<T>(store: ArtifactStore, ref: ArtifactRef, schema: z.ZodType<T>): Promise<T> {
  const parsed = schema.safeParse(JSON.parse((await store.read(ref)).toString('utf8')));
  if (parsed.success) return parsed.data;
  throw new Error(`artifact ${ref.uri} has another form than expected: ${z.prettifyError(parsed.error)}`);
}

/** What is under the key, or else is made and stored there as canonical JSON: equal values are equal artifacts. */
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
