/** Options of a small batch over the counting environment, six rollouts of three tasks, and what can be made to go wrong with it. */
import type { ArtifactStore, RecordFiles } from '../../src/store/store';
import type { ArtifactRef } from '../../src/domain/artifacts';
import { OutsideFailure } from '../../src/domain/failures';
import type { RollOutOptions } from '../../src/rollout/engine';
import { countingEnvironment, countingPolicy } from './counting-environment';
import { batchOf } from './played';

export const countingBatch = (store: ArtifactStore, changes: Partial<RollOutOptions> = {}): RollOutOptions =>
  batchOf({
    environment: countingEnvironment(),
    policy: { base: 'base', adapters: [] },
    tasks: ['n-2', 'n-0', 'n-1'],
    attempts: 2,
    seed: 7,
    concurrency: 4,
    maxAttempts: 3,
    store,
    client: countingPolicy(),
    ...changes,
  });

/** Reports an error of its own at each step of the tasks that `fails` says. */
export const failingEnvironment = (fails: (task: string) => boolean) =>
  countingEnvironment({
    beforeStep: (task) => {
      if (fails(task)) throw new OutsideFailure('EnvironmentFailed', 'env: step: no such row');
    },
  });

/** The store where one artifact is damaged. */
export const damagedIn = (store: ArtifactStore, { sha256 }: Pick<ArtifactRef, 'sha256'>): ArtifactStore => ({
  ...store,
  read: async (ref) => {
    if (ref.sha256 === sha256) throw new OutsideFailure('ArtifactDamaged', 'damaged');
    return store.read(ref);
  },
});

/** The store with other functions for its record files. */
export const withFiles = (store: ArtifactStore, otherwise: Partial<RecordFiles>): ArtifactStore => ({
  ...store,
  files: { ...store.files, ...otherwise },
});
