/**
 * Reads what the engine stored: outcomes for whoever asks what rollouts came to, whole rollouts for those who read conversations or train on
 * them. A batch of any size leaves the event loop its turns.
 */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { breathing } from '../domain/concurrency';
import { isFailure } from '../domain/failures';
import { jsonText } from '../domain/messages';
import { outcomeOf, outcomesSchema, taskMeans, type Outcome } from '../domain/outcomes';
import type { TaskMeans } from '../domain/paired-statistics';
import { rolloutSchema, type Rollout, type ScoredRollout } from '../domain/rollout';

export const ROLLOUTS_MEDIA_TYPE = 'application/jsonl';
const lineSchema = jsonText.pipe(rolloutSchema);

export interface ReadRollouts {
  store: ArtifactStore;
  ref: ArtifactRef;
  /** Now and then, in a batch that takes long to read. */
  onRead?: () => void;
}

/** The records of a batch, one after the other, sorted by task and then by attempt. */
export async function* readRollouts({ store, ref, onRead }: ReadRollouts): AsyncGenerator<Rollout> {
  const body = await store.read(ref);
  const breathe = breathing(onRead);
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

/** The scored rollouts of a batch. */
export async function readScored(batch: ReadRollouts): Promise<ScoredRollout[]> {
  const scored: ScoredRollout[] = [];
  for await (const rollout of readRollouts(batch)) if (rollout.status === 'scored') scored.push(rollout);
  return scored;
}

/** Changes whenever other outcomes would be written for the same batch: outcomes of another form are made anew. */
const OUTCOMES_FORM = 1;

/** A batch's outcomes lie under its own hash, so that whoever has its reference has them, and the batch stays what everything refers to. */
const outcomesKey = ({ sha256 }: ArtifactRef): string => `outcomes/${OUTCOMES_FORM}/${sha256}`;

/**
 * The outcomes of a batch, in its order. Where they are not stored (the batch is older than they are, or they were damaged), they are read from
 * its rollouts.
 */
export async function readOutcomes(batch: ReadRollouts): Promise<Outcome[]> {
  return (await storedOutcomes(batch)) ?? outcomesIn(batch);
}

/** Stores the outcomes of a batch, unless they are there. */
export async function keepOutcomes(batch: ReadRollouts & { outcomes?: readonly Outcome[] }): Promise<Outcome[]> {
  const { store, ref } = batch;
  const known = await storedOutcomes(batch);
  if (known) return known;
  const outcomes = [...(batch.outcomes ?? (await outcomesIn(batch)))];
  await store.put({
    key: outcomesKey(ref),
    producer: 'outcomes',
    inputs: [ref],
    mediaType: 'application/json',
    body: JSON.stringify(outcomes),
  });
  return outcomes;
}

async function storedOutcomes({ store, ref }: ReadRollouts): Promise<Outcome[] | undefined> {
  const stored = await store.find(outcomesKey(ref));
  if (!stored) return undefined;
  try {
    return jsonText.pipe(outcomesSchema).parse((await store.read(stored)).toString('utf8'));
  } catch (error) {
    if (isFailure(error, 'ArtifactDamaged')) return undefined;
    throw error;
  }
}

async function outcomesIn(batch: ReadRollouts): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for await (const rollout of readRollouts(batch)) outcomes.push(outcomeOf(rollout));
  return outcomes;
}

/** Means by task of one batch. */
export const readTaskMeans = async (store: ArtifactStore, ref: ArtifactRef): Promise<TaskMeans> =>
  taskMeans(await readOutcomes({ store, ref }), ref);
