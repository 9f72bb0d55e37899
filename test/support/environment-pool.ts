/** A worker's environments, of which there is one kind for all specs and nobody pays for anything. */
import type { EnvironmentPool } from '../../src/activities/environments';

export const poolOf = (get: EnvironmentPool['get']): EnvironmentPool =>
  ({ get, paidBy: () => ({ get }) }) as unknown as EnvironmentPool;
