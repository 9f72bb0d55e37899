/** Rollouts by the real engine. */
import { play, type PlayOptions } from '../../src/rollout/play';
import { rollOut, type RolloutBatch, type RollOutOptions } from '../../src/rollout/engine';
import type { Rollout, ScoredRollout } from '../../src/domain/rollout';

type Needed = 'environment' | 'policy' | 'tasks' | 'store' | 'client';
type Batch = Pick<RollOutOptions, Needed> & Partial<RollOutOptions>;

/** Options for one attempt at each task at temperature 1, unless `o` changes them. */
export const batchOf = (o: Batch): RollOutOptions => ({
  campaign: 'one',
  attempts: 1,
  sampling: { temperature: 1, topP: 1, maxTokens: 48 },
  seed: 1,
  concurrency: 8,
  purpose: 'test',
  title: 'a batch',
  maxAttempts: 1,
  ...o,
});

/** A batch with its whole rollouts, for tests that look into them. */
export async function played(o: Batch): Promise<Omit<RolloutBatch, 'records'> & { records: Rollout[] }> {
  const batch = await rollOut(batchOf(o));
  return { ...batch, records: await batch.records() };
}

/** One rollout, of no batch. */
export const playedAlone = (
  task: string,
  o: Pick<PlayOptions, 'environment' | 'client' | 'policy'> & Partial<PlayOptions>,
): Promise<ScoredRollout> =>
  play(
    { key: task, task, attempt: 0 },
    {
      sampling: { temperature: 1, topP: 1, maxTokens: 32 },
      seed: 1,
      signal: new AbortController().signal,
      ...o,
    },
  );
