/** Whether what a result names can still be read: damage is found here, by whoever can mend it, and not by a later step that cannot. */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { isFailure } from '../domain/failures';

export async function isWhole(store: ArtifactStore, ref: ArtifactRef): Promise<boolean> {
  try {
    const { key } = await store.provenance(ref);
    return (await store.find(key))?.sha256 === ref.sha256;
  } catch (error) {
    if (isFailure(error, 'ArtifactDamaged')) return false;
    throw error;
  }
}
