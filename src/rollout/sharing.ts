/**
 * Stored batches by setting, for whoever asks for some of the same rollouts. Invariants: a setting's index names every stored batch, complete or
 * not, and is never taken back; scored rollouts alone are taken; a batch in it that is damaged or gone is passed over, and what it held is
 * played again by whoever wants it.
 */
import type { ArtifactStore } from '../artifacts/store';
import { artifactRefSchema, type ArtifactRef } from '../domain/artifacts';
import { isFailure } from '../domain/failures';
import type { ScoredRollout } from '../domain/rollout';
import type { BatchPlan } from './keys';
import { readRollouts, type ReadRollouts } from './read';

const indexOf = (store: ArtifactStore, { setting }: BatchPlan) => store.journal(`batches/${setting}`);

interface NoteStored {
  store: ArtifactStore;
  plan: BatchPlan;
  ref: ArtifactRef;
}

export async function noteStored({ store, plan, ref }: NoteStored): Promise<void> {
  const index = await indexOf(store, plan);
  try {
    // By content: a batch that was damaged and made anew is another entry.
    await index.append(ref.sha256, ref);
  } finally {
    await index.close();
  }
}

export interface Taken {
  /** By key. */
  rollouts: Map<string, ScoredRollout>;
  /** The batches that they are from. */
  from: ArtifactRef[];
}

interface TakeStored {
  store: ArtifactStore;
  plan: BatchPlan;
  /** How many are taken by now; now and then, where batches take long to read. */
  onRead?: (taken: number) => void;
}

/** What stored batches hold of the plan; where several hold a rollout, the first that was stored. */
export async function takeStored({ store, plan, onRead }: TakeStored): Promise<Taken> {
  const index = await indexOf(store, plan);
  await index.close();
  const wanted = new Set(plan.rollouts.map(({ key }) => key));
  const taken: Taken = { rollouts: new Map(), from: [] };
  for (const entry of index.records().values()) {
    if (wanted.size === 0) break;
    const ref = artifactRefSchema.parse(entry);
    const held = await heldBy({ store, ref, wanted, onRead: () => onRead?.(taken.rollouts.size) });
    if (held.length > 0) taken.from.push(ref);
    for (const rollout of held) {
      taken.rollouts.set(rollout.key, rollout);
      wanted.delete(rollout.key);
    }
  }
  return taken;
}

async function heldBy({ wanted, ...batch }: ReadRollouts & { wanted: ReadonlySet<string> }): Promise<ScoredRollout[]> {
  const held: ScoredRollout[] = [];
  try {
    for await (const rollout of readRollouts(batch))
      if (rollout.status === 'scored' && wanted.has(rollout.key)) held.push(rollout);
  } catch (error) {
    if (isFailure(error, 'ArtifactDamaged')) return [];
    throw error;
  }
  return held;
}
