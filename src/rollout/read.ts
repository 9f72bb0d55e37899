/**
 * Reads stored batches: the outcomes of rollouts, or complete rollouts for training and for readers of conversations. Large batches do not block the
 * event loop.
 */
import type { ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { breathing } from '../domain/concurrency';
import { isFailure } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { outcomesSchema, taskMeans, type Outcome } from '../domain/outcomes';
import type { TaskMeans } from '../domain/statistics';
import type { Rollout, ScoredRollout } from '../domain/rollout';

export const ROLLOUTS_MEDIA_TYPE = 'application/jsonl';

interface StoredRollouts {
  store: ArtifactStore;
  ref: ArtifactRef;
}

/** Yields the records of a batch, sorted by task and then by attempt. */
export async function* readRollouts({ store, ref }: StoredRollouts): AsyncGenerator<Rollout> {
  const body = await store.read(ref);
  const breathe = breathing();
  for (let start = 0; start < body.length;) {
    const lineBreak = body.indexOf(10, start);
    const end = lineBreak < 0 ? body.length : lineBreak;
    // The store has checked the bytes, and the engine the fields when it made them.
    yield JSON.parse(body.toString('utf8', start, end)) as Rollout;
    await breathe(end - start);
    start = end + 1;
  }
}

export async function readRecords(batch: StoredRollouts): Promise<Rollout[]> {
  const records: Rollout[] = [];
  for await (const record of readRollouts(batch)) records.push(record);
  return records;
}

export const readScored = async (batch: StoredRollouts): Promise<ScoredRollout[]> =>
  (await readRecords(batch)).filter((record) => record.status === 'scored');

/** Changes whenever the same batch would have other outcomes, which are then computed again. */
const OUTCOMES_FORM = 2;

/** A batch's outcomes have a key of the batch's hash, so that a reference to the batch is enough to find them. */
const outcomesKey = ({ sha256 }: ArtifactRef): string => `outcomes/${OUTCOMES_FORM}/${sha256}`;

/** Returns the outcomes in the batch's order; reads them from the rollouts if they are not stored or damaged. */
export const readOutcomes = async (batch: StoredRollouts): Promise<Outcome[]> =>
  (await storedOutcomes(batch)) ?? outcomesSchema.parse(await readRecords(batch));

/** Returns the outcomes of a batch and stores them if need be. `records` are those of a batch that has just been made. */
export async function keepOutcomes(batch: StoredRollouts, records?: readonly Rollout[]): Promise<Outcome[]> {
  const { store, ref } = batch;
  const known = records ? undefined : await storedOutcomes(batch);
  if (known) return known;
  const outcomes = outcomesSchema.parse(records ?? (await readRecords(batch)));
  await store.put({
    key: outcomesKey(ref),
    producer: 'outcomes',
    inputs: [ref],
    mediaType: 'application/json',
    body: JSON.stringify(outcomes),
  });
  return outcomes;
}

async function storedOutcomes({ store, ref }: StoredRollouts): Promise<Outcome[] | undefined> {
  const stored = await store.find(outcomesKey(ref));
  if (!stored) return undefined;
  try {
    return jsonText.pipe(outcomesSchema).parse((await store.read(stored)).toString('utf8'));
  } catch (error) {
    if (isFailure(error, 'ArtifactDamaged')) return undefined;
    throw error;
  }
}

export const readTaskMeans = async (store: ArtifactStore, ref: ArtifactRef): Promise<TaskMeans> =>
  taskMeans(await readOutcomes({ store, ref }), ref);
