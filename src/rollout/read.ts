/**
 * Reads what the engine stored. Invariants: every record is checked; only `scored` ones enter a statistic; a batch of any size leaves the event
 * loop its turns.
 */
import type { ArtifactStore } from '../artifacts/store';
import type { ArtifactRef } from '../domain/artifacts';
import { breathing } from '../domain/concurrency';
import { jsonText } from '../domain/messages';
import type { TaskMeans } from '../domain/paired-statistics';
import { rolloutSchema, SUCCESS, type Group, type Rollout, type ScoredRollout } from '../domain/rollout';
import { mean } from '../domain/statistics';

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

/** Scored rollouts by task, rewards in the order of the attempts. A task whose rollouts are all broken is not there. */
export async function outcomes(batch: ReadRollouts): Promise<Map<string, Group>> {
  const groups = new Map<string, { rewards: number[]; branch?: string }>();
  for await (const rollout of readRollouts(batch)) {
    if (rollout.status !== 'scored') continue;
    const { task, reward, branch } = rollout;
    const known = groups.get(task);
    if (known) known.rewards.push(reward);
    else groups.set(task, { rewards: [reward], ...(branch !== undefined && { branch }) });
  }
  return groups;
}

/** Task means of one batch. A task whose rollouts are all broken is not there. */
export async function taskMeans(store: ArtifactStore, ref: ArtifactRef): Promise<TaskMeans> {
  const means: TaskMeans = { success: new Map(), reward: new Map(), branch: new Map(), trials: 0, from: [ref] };
  for (const [task, { rewards, branch }] of await outcomes({ store, ref })) {
    if (branch !== undefined) means.branch.set(task, branch);
    means.success.set(task, mean(rewards.map((reward) => (reward >= SUCCESS ? 1 : 0))));
    means.reward.set(task, mean(rewards));
    means.trials = Math.max(means.trials, rewards.length);
  }
  return means;
}

/** The scored rollouts of a batch. */
export async function readScored(batch: ReadRollouts): Promise<ScoredRollout[]> {
  const scored: ScoredRollout[] = [];
  for await (const rollout of readRollouts(batch)) if (rollout.status === 'scored') scored.push(rollout);
  return scored;
}
