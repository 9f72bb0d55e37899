/**
 * A batch as an artifact. Invariant: what is under a batch's key is complete; a batch with broken rollouts is stored under a key of
 * its own, and its journal stays, so that the next run tries only the broken ones again.
 */
import { sha256 } from '../artifacts/hash';
import type { ArtifactStore, Journal } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import type { BrokenRollout, Policy, Rollout } from '../domain/rollout';
import type { BatchPlan } from './keys';
import { readRollouts, ROLLOUTS_MEDIA_TYPE } from './read';

interface StoreBatch {
  store: ArtifactStore;
  title: string;
  policy: Policy;
  /** What the batch derives from besides the policy's adapters or its router. */
  inputs?: ArtifactRef[];
  plan: BatchPlan;
  journal: Journal;
  broken: Map<string, BrokenRollout>;
}

export interface StoredBatch {
  ref: ArtifactRef;
  /** What the artifact holds. */
  records: Rollout[];
}

export async function readBatch({ store, ref }: { store: ArtifactStore; ref: ArtifactRef }): Promise<StoredBatch> {
  const records: Rollout[] = [];
  for await (const record of readRollouts({ store, ref })) records.push(record);
  return { ref, records };
}

/** Stores all records as JSON lines in the plan's order. If another run has finished the batch meanwhile, its artifact stands. */
export async function storeBatch(batch: StoreBatch): Promise<StoredBatch> {
  const { store, title, policy, plan, journal, broken } = batch;
  const scored = journal.records();
  const records = plan.rollouts.map(({ key }) => (scored.get(key) ?? broken.get(key)) as Rollout);
  const body = Buffer.concat(records.map((record) => Buffer.from(`${JSON.stringify(record)}\n`)));
  const sha = sha256(body);
  const ref = await store.put({
    key: broken.size === 0 ? plan.key : `${plan.key}/incomplete/${sha}`,
    producer: `rollouts: ${title}`,
    inputs: [...(batch.inputs ?? []), ...artifactsOf(policy)],
    mediaType: ROLLOUTS_MEDIA_TYPE,
    body,
  });
  if (broken.size === 0) await journal.remove();
  return ref.sha256 === sha ? { ref, records } : readBatch({ store, ref });
}

const artifactsOf = (policy: Policy): ArtifactRef[] =>
  'router' in policy ? [policy.router] : policy.adapters.map(({ ref }) => ref);
