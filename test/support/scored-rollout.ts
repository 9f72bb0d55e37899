/** A scored rollout of one turn, for what looks at outcomes only. */
import type { Rollout } from '../../src/domain/rollout';

/** `name` makes the key. */
export const scoredRollout = ({
  name,
  task,
  reward,
  branch,
}: {
  name: string;
  task: string;
  reward: number;
  branch?: string;
}): Rollout => ({
  status: 'scored',
  key: Buffer.from(name).toString('hex').padEnd(64, '0'),
  task,
  attempt: 0,
  messages: [],
  stopReason: 'agent_stop',
  reward,
  breakdown: {},
  ...(branch !== undefined && { branch }),
  rows: [],
  steps: 1,
  usage: { promptTokens: 1, completionTokens: 1 },
  seconds: 1,
});
