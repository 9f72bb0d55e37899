/**
 * Batches as artifacts. Invariants: what is under a batch's key is complete; a batch with broken rollouts is stored under a key of its own, and its
 * journal stays, so that the next run tries only the broken ones again. A setting's index names every stored batch, complete or not, and is
 * never taken back; scored rollouts alone are taken from it.
 */
import { sha256 } from '../artifacts/hash';
import type { ArtifactStore, Journal } from '../artifacts/store';
import { artifactRefSchema, type ArtifactRef } from '../domain/artifacts';
import { breathing } from '../domain/concurrency';
import { isFailure } from '../domain/failures';
import { outcomeOf, type Outcome } from '../domain/outcomes';
import type { BrokenRollout, Policy, Rollout, ScoredRollout } from '../domain/rollout';
import type { BatchPlan } from './keys';
import { keepOutcomes, readOutcomes, readRollouts, ROLLOUTS_MEDIA_TYPE, type ReadRollouts } from './read';

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
  outcomes: readonly Outcome[];
  /** What the artifact holds: kept from making it, or read. */
  records: () => Promise<Rollout[]>;
}

interface FindBatch {
  store: ArtifactStore;
  plan: BatchPlan;
  /** Now and then, where a batch takes long to read: how many rollouts were read, or taken. */
  onRead?: (rollouts: number) => void;
}

/** What is stored already. Noted once more and without its journal, since a run may have ended before it did either. */
export async function findBatch({ store, plan, onRead }: FindBatch): Promise<StoredBatch | undefined> {
  const ref = await store.find(plan.key);
  if (!ref) return undefined;
  await noteStored({ store, plan, ref });
  await store.removeJournal(plan.key);
  return openBatch({ store, ref, ...(onRead && { onRead }) });
}

async function openBatch({ store, ref, onRead }: Omit<FindBatch, 'plan'> & { ref: ArtifactRef }): Promise<StoredBatch> {
  let read = 0;
  const outcomes = await keepOutcomes({ store, ref, onRead: () => onRead?.((read += 1)) });
  return { ref, outcomes, records: () => recordsIn({ store, ref }) };
}

async function recordsIn(batch: ReadRollouts): Promise<Rollout[]> {
  const records: Rollout[] = [];
  for await (const record of readRollouts(batch)) records.push(record);
  return records;
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
  if (ref.sha256 !== sha) return openBatch({ store, ref });
  const outcomes = await keepOutcomes({ store, ref, outcomes: records.map(outcomeOf) });
  return { ref, outcomes, records: async () => records };
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

/** Stored batches by setting, for whoever asks for some of the same rollouts. */
const indexOf = (store: ArtifactStore, { setting }: BatchPlan) => store.journal(`batches/${setting}`);

async function noteStored({ store, plan, ref }: { store: ArtifactStore; plan: BatchPlan; ref: ArtifactRef }) {
  const index = await indexOf(store, plan);
  try {
    // By content: a batch that was damaged and made anew is another entry.
    await index.append(ref.sha256, ref);
  } finally {
    await index.close();
  }
}

interface Taken {
  /** By key. */
  rollouts: Map<string, ScoredRollout>;
  /** The batches that they are from. */
  from: ArtifactRef[];
}

/** What stored batches hold of the plan; where several hold a rollout, the first that was stored. */
export async function takeStored({ store, plan, onRead }: FindBatch): Promise<Taken> {
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

/** A batch that is damaged or gone is passed over: what it held is played again by whoever wants it. */
async function heldBy({ wanted, ...batch }: ReadRollouts & { wanted: ReadonlySet<string> }): Promise<ScoredRollout[]> {
  const isWanted = ({ status, key }: Pick<Outcome, 'status' | 'key'>): boolean =>
    status === 'scored' && wanted.has(key);
  const held: ScoredRollout[] = [];
  try {
    if (!(await readOutcomes(batch)).some(isWanted)) return [];
    for await (const rollout of readRollouts(batch))
      if (rollout.status === 'scored' && isWanted(rollout)) held.push(rollout);
  } catch (error) {
    if (isFailure(error, 'ArtifactDamaged')) return [];
    throw error;
  }
  return held;
}
