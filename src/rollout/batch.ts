/**
 * A batch as an artifact. Invariant: what is under a batch's key is complete; a batch with broken rollouts is stored under a key of
 * its own, and its journal stays, so that the next run tries only the broken ones again.
 */
import { sha256 } from '../artifacts/hash';
import type { Journal } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { BrokenRollout } from '../domain/rollout';
import type { RollOutOptions } from './engine';
import type { BatchPlan } from './keys';
import { ROLLOUTS_MEDIA_TYPE } from './read';

interface StoreBatch extends Pick<RollOutOptions, 'store' | 'purpose' | 'policy' | 'inputs' | 'environment'> {
  plan: BatchPlan;
  journal: Journal;
  broken: Map<string, BrokenRollout>;
}

/** Stores all records as JSON lines in the plan's order. If another run has finished the batch meanwhile, its artifact stands. */
export async function storeBatch({
  store,
  purpose,
  policy,
  plan,
  journal,
  broken,
  ...options
}: StoreBatch): Promise<ArtifactRef> {
  const scored = journal.records();
  const lines = plan.rollouts.map(({ key }) => Buffer.from(`${JSON.stringify(scored.get(key) ?? broken.get(key))}\n`));
  const body = Buffer.concat(lines);
  const ref = await store.put({
    key: broken.size === 0 ? plan.key : `${plan.key}/incomplete/${sha256(body)}`,
    producer: `rollouts: ${purpose}`,
    inputs: [...(options.inputs ?? []), ...policy.adapters.map((adapter) => adapter.ref)],
    mediaType: ROLLOUTS_MEDIA_TYPE,
    body,
  });
  if (broken.size === 0) await journal.remove();
  return ref;
}
