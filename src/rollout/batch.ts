/**
 * A batch as an artifact. Invariants: what is under a batch's key is complete; a batch with broken rollouts is stored under a key of its own, and
 * its journal stays, so that the next run tries only the broken ones again. Either is noted for others of its setting.
 */
import { sha256 } from '../artifacts/hash';
import type { ArtifactStore, Journal } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { breathing } from '../domain/concurrency';
import type { BrokenRollout, Policy, Rollout, ScoredRollout } from '../domain/rollout';
import type { BatchPlan } from './keys';
import { readRollouts, ROLLOUTS_MEDIA_TYPE } from './read';
import { noteStored } from './sharing';

interface StoreBatch {
  store: ArtifactStore;
  title: string;
  policy: Policy;
  /** What the batch derives from besides the policy's adapters or its router. */
  inputs: ArtifactRef[];
  plan: BatchPlan;
  /** The scored ones by key. */
  held: ReadonlyMap<string, ScoredRollout>;
  journal: Journal;
  broken: Map<string, BrokenRollout>;
}

export interface StoredBatch {
  ref: ArtifactRef;
  /** What the artifact holds. */
  records: Rollout[];
}

interface ReadBatch {
  store: ArtifactStore;
  ref: ArtifactRef;
  /** How many records there are by now; now and then, in a batch that takes long to read. */
  onRead?: (records: number) => void;
}

export async function readBatch({ store, ref, onRead }: ReadBatch): Promise<StoredBatch> {
  const records: Rollout[] = [];
  const heard = () => onRead?.(records.length);
  for await (const record of readRollouts({ store, ref, onRead: heard })) records.push(record);
  return { ref, records };
}

/** Stores all records as JSON lines in the plan's order. If another run has finished the batch meanwhile, its artifact stands. */
export async function storeBatch(batch: StoreBatch): Promise<StoredBatch> {
  const { store, title, policy, inputs, plan, held, journal, broken } = batch;
  const records = plan.rollouts.map(({ key }): Rollout => (held.get(key) ?? broken.get(key))!);
  const body = await jsonLines(records);
  const sha = sha256(body);
  const ref = await store.put({
    key: broken.size === 0 ? plan.key : `${plan.key}/incomplete/${sha}`,
    producer: `rollouts: ${title}`,
    inputs: [...inputs, ...artifactsOf(policy)],
    mediaType: ROLLOUTS_MEDIA_TYPE,
    body,
  });
  await noteStored({ store, plan, ref });
  if (broken.size === 0) await journal.remove();
  return ref.sha256 === sha ? { ref, records } : readBatch({ store, ref });
}

async function jsonLines(records: readonly Rollout[]): Promise<Buffer> {
  const lines: Buffer[] = [];
  const breathe = breathing();
  for (const record of records)
    await breathe(lines[lines.push(Buffer.from(`${JSON.stringify(record)}\n`)) - 1]!.length);
  return Buffer.concat(lines);
}

const artifactsOf = (policy: Policy): ArtifactRef[] =>
  'router' in policy ? [policy.router] : policy.adapters.map(({ ref }) => ref);
