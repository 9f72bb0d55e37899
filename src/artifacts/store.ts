/**
 * The artifact store's interface. Invariants: what is under a key is written once (a second put under the key returns the first
 * artifact); a half-written artifact can never be read; every artifact knows its inputs, so that any figure leads back to rollouts.
 */
import type { ArtifactRef } from '../domain/artifacts';

export interface Provenance {
  key: string;
  /** The step that made it: an activity's name. */
  producer: string;
  inputs: ArtifactRef[];
}

export interface ArtifactStore {
  /** Stores bytes under a key derived from the inputs. If the key is taken, the artifact there is returned and `body` is dropped. */
  put(artifact: Provenance & { body: Uint8Array | string; mediaType: string }): Promise<ArtifactRef>;
  /** Stores a folder (an adapter) file by file; the reference is to its listing. */
  putFolder(artifact: Provenance & { folder: string }): Promise<ArtifactRef>;
  find(key: string): Promise<ArtifactRef | undefined>;
  /** The bytes, checked against the reference's sha256. */
  read(ref: ArtifactRef): Promise<Buffer>;
  /** A read-only local folder that holds what putFolder stored. */
  folder(ref: ArtifactRef): Promise<string>;
  provenance(ref: ArtifactRef): Promise<Provenance>;
  /** The artifact whose sha256 begins with `prefix` or whose key is `prefix`; undefined if none or several. */
  resolve(prefix: string): Promise<ArtifactRef | undefined>;
  /** An append-only log of finished records, for work that takes long and is resumed. */
  journal(key: string): Promise<Journal>;
}

export interface Journal {
  /** Records that were whole on disk when the journal was opened or were appended since, by record key. */
  records(): ReadonlyMap<string, unknown>;
  /** Resolves when the record is durable (appends are flushed together). The first record under a key stays. */
  append(key: string, record: unknown): Promise<void>;
  close(): Promise<void>;
  /** Closes and deletes it: for when what it led to is stored as an artifact. */
  remove(): Promise<void>;
}
