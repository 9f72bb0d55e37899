/** An artifact store in memory, for what puts and reads JSON alone. */
import { sha256 } from '../../src/artifacts/hash';
import type { ArtifactStore } from '../../src/artifacts/store';
import type { ArtifactRef } from '../../src/domain/artifacts';

export function memoryStore(): ArtifactStore {
  const kept = new Map<string, { ref: ArtifactRef; body: Buffer }>();
  const store: Pick<ArtifactStore, 'find' | 'put' | 'read'> = {
    find: async (key) => kept.get(key)?.ref,
    async put({ key, mediaType, body }) {
      const [bytes, sha] = [Buffer.from(body), sha256(body)];
      const ref = { uri: `artifact:${sha}`, sha256: sha, bytes: bytes.length, mediaType };
      for (const name of [key, sha]) if (!kept.has(name)) kept.set(name, { ref, body: bytes });
      return kept.get(key)!.ref;
    },
    async read(ref) {
      const found = kept.get(ref.sha256);
      if (!found) throw new Error(`${ref.uri} was never put here`);
      return found.body;
    },
  };
  return store as ArtifactStore;
}
