/** A worker's pool with one environment for all specs, without costs. */
import type { EnvironmentPool } from '../../src/activities/environments';

export const poolOf = (get: EnvironmentPool['get']): EnvironmentPool =>
  ({ get, paidBy: () => ({ get }) }) as unknown as EnvironmentPool;
