/** Reads what the engine stored. Invariant: every record is checked; only `scored` ones enter a statistic. */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { rolloutSchema, type Rollout, type ScoredRollout } from '../domain/rollout';

export const ROLLOUTS_MEDIA_TYPE = 'application/jsonl';

/** The records of a batch, one after the other, sorted by task and then by attempt. */
export async function* readRollouts({
  store,
  ref,
}: {
  store: ArtifactStore;
  ref: ArtifactRef;
}): AsyncGenerator<Rollout> {
  const body = await store.read(ref);
  for (let start = 0, line = 1; start < body.length; line++) {
    const lineBreak = body.indexOf(10, start);
    const end = lineBreak < 0 ? body.length : lineBreak;
    const parsed = rolloutSchema.safeParse(JSON.parse(body.toString('utf8', start, end)));
    if (!parsed.success) {
      const [issue] = parsed.error.issues;
      throw new Error(
        `${ref.uri}, line ${line}: ${issue?.path.join('.')}: ${issue?.message}; it is not a batch of rollouts`,
      );
    }
    yield parsed.data;
    start = end + 1;
  }
}

/** Rewards of the scored rollouts by task, in the order of the attempts. A task whose rollouts are all broken is not there. */
export async function outcomes(batch: { store: ArtifactStore; ref: ArtifactRef }): Promise<Map<string, number[]>> {
  const rewards = new Map<string, number[]>();
  for await (const rollout of readRollouts(batch)) {
    if (rollout.status !== 'scored') continue;
    const known = rewards.get(rollout.task);
    if (known) known.push(rollout.reward);
    else rewards.set(rollout.task, [rollout.reward]);
  }
  return rewards;
}

/** The scored rollouts of a batch. */
export async function readScored(batch: { store: ArtifactStore; ref: ArtifactRef }): Promise<ScoredRollout[]> {
  const scored: ScoredRollout[] = [];
  for await (const rollout of readRollouts(batch)) if (rollout.status === 'scored') scored.push(rollout);
  return scored;
}
