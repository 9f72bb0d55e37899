/** A batch with its whole rollouts, for tests that look into them. */
import { rollOut, type RolloutBatch, type RollOutOptions } from '../../src/rollout/engine';
import type { Rollout } from '../../src/domain/rollout';

export async function played(options: RollOutOptions): Promise<Omit<RolloutBatch, 'records'> & { records: Rollout[] }> {
  const batch = await rollOut(options);
  return { ...batch, records: await batch.records() };
}
