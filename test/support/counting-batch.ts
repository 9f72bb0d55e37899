/** Options of a small batch over the counting environment: six rollouts of three tasks. */
import type { ArtifactStore } from '../../src/artifacts/store';
import type { RollOutOptions } from '../../src/rollout/engine';
import { countingEnvironment, countingPolicy } from './counting-environment';

export const countingBatch = (store: ArtifactStore, changes: Partial<RollOutOptions> = {}): RollOutOptions => ({
  environment: countingEnvironment(),
  policy: { base: 'base', adapters: [] },
  tasks: ['n-2', 'n-0', 'n-1'],
  attempts: 2,
  sampling: { temperature: 1, topP: 1, maxTokens: 16 },
  seed: 7,
  concurrency: 4,
  purpose: 'test',
  title: 'a batch',
  maxAttempts: 3,
  pauseMs: 1,
  store,
  client: countingPolicy(),
  ...changes,
});
