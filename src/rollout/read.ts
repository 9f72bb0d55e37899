/**
 * Reads what the engine stored: outcomes for whoever asks what rollouts came to, whole rollouts for those who read conversations or train on
 * them. A batch of any size leaves the event loop its turns.
 */
import type { ArtifactStore } from '../store/store';
import type { ArtifactRef } from '../domain/artifacts';
import { breathing } from '../domain/concurrency';
import { isFailure } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { outcomesSchema, taskMeans, type Outcome } from '../domain/outcomes';
import type { TaskMeans } from '../domain/statistics';
import { rolloutSchema, type Rollout, type ScoredRollout } from '../domain/rollout';

export const ROLLOUTS_MEDIA_TYPE = 'application/jsonl';
const lineSchema = jsonText.pipe(rolloutSchema);

interface StoredRollouts {
  store: ArtifactStore;
  ref: ArtifactRef;
}

/** The records of a batch, one after the other, sorted by task and then by attempt. */
export async function* readRollouts({ store, ref }: StoredRollouts): AsyncGenerator<Rollout> {
  const body = await store.read(ref);
  const breathe = breathing();
  for (let start = 0, line = 1; start < body.length; line++) {
    const lineBreak = body.indexOf(10, start);
    const end = lineBreak < 0 ? body.length : lineBreak;
    const parsed = lineSchema.safeParse(body.toString('utf8', start, end));
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      const problem = [issue?.path.join('.'), issue?.message].filter(Boolean).join(': ');
      throw new Error(`${ref.uri}, line ${line}: ${problem}; it is not a batch of rollouts`);
    }
    yield parsed.data;
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

/** Changes whenever other outcomes would be written for the same batch: outcomes of another form are made anew. */
const OUTCOMES_FORM = 2;

/** A batch's outcomes lie under its own hash, so that whoever has its reference has them, and the batch stays what everything refers to. */
const outcomesKey = ({ sha256 }: ArtifactRef): string => `outcomes/${OUTCOMES_FORM}/${sha256}`;

/** In the batch's order. Where they are not stored, or were damaged, they are read from its rollouts. */
export const readOutcomes = async (batch: StoredRollouts): Promise<Outcome[]> =>
  (await storedOutcomes(batch)) ?? outcomesSchema.parse(await readRecords(batch));

/** Stores the outcomes of a batch, unless they are there; `records`: of one that has just been made. */
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

/** Means by task of one batch. */
export const readTaskMeans = async (store: ArtifactStore, ref: ArtifactRef): Promise<TaskMeans> =>
  taskMeans(await readOutcomes({ store, ref }), ref);
