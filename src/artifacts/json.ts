/** Artifacts that hold JSON. */
import { z } from 'zod';
import type { ArtifactRef } from '../domain/artifacts';
import { canonical } from './hash';
import type { ArtifactStore } from './store';

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
