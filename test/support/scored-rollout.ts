/** Rollouts of one turn, for what looks at outcomes only, and batches of rollouts as campaigns store them. */
import type { ArtifactRef } from '../../src/domain/artifacts';
import type { Rollout, ScoredRollout } from '../../src/domain/rollout';
import { ROLLOUTS_MEDIA_TYPE } from '../../src/rollout/read';
import type { ArtifactStore } from '../../src/store/store';

/** `name` makes the key. */
export const scoredRollout = ({
  name,
  ...more
}: { name: string } & Partial<ScoredRollout> & Pick<ScoredRollout, 'task' | 'reward'>): ScoredRollout => ({
  status: 'scored',
  key: Buffer.from(name).toString('hex').padEnd(64, '0'),
  attempt: 0,
  messages: [],
  stopReason: 'agent_stop',
  breakdown: {},
  rows: [],
  steps: 1,
  usage: { promptTokens: 1, completionTokens: 1 },
  seconds: 1,
  ...more,
});

/** One that broke at a task. */
export const brokenRollout = (task: string, type = 'BadEnvironment', message = 'it ended'): Rollout => ({
  ...{ status: 'broken', key: scoredRollout({ name: task, task, reward: 0 }).key, task, attempt: 0 },
  error: { type, message },
});

export const putRollouts = (
  store: Pick<ArtifactStore, 'put'>,
  title: string,
  rollouts: readonly object[],
  { key = title, inputs = [] }: { key?: string; inputs?: ArtifactRef[] } = {},
): Promise<ArtifactRef> => {
  const body = rollouts.map((one) => `${JSON.stringify(one)}\n`).join('');
  return store.put({
    key: `rollouts/${key}`,
    producer: `rollouts: ${title}`,
    inputs,
    mediaType: ROLLOUTS_MEDIA_TYPE,
    body,
  });
};
