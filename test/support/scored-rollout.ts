/** A scored rollout of one turn, for what looks at outcomes only. */
import type { ScoredRollout } from '../../src/domain/rollout';

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
