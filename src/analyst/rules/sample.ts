/**
 * What one labeling pass looks at: a random half of the rollouts, without replacement. A mean over m of n drawn so has the variance
 * S^2 (1/m - 1/n), which at m = n/2 is S^2/n: the spread between passes is a bootstrap's, and no rollout is there twice. Invariant: the
 * sample is a function of (keys, seed, pass), whatever the order of the rollouts.
 */
import { seededRandom } from '../../domain/statistics';
import type { ScoredRollout } from '../../domain/rollout';

/** Sorted by key: artifacts hold rollouts in the order in which they finished. */
export const byKey = (rollouts: readonly ScoredRollout[]): ScoredRollout[] =>
  [...rollouts].sort((a, b) => (a.key < b.key ? -1 : 1));

/** Half of the rollouts, sorted by key; of an odd number the larger half, so that of one rollout nothing is lost. */
export function randomHalf({
  rollouts,
  seed,
  pass,
}: {
  rollouts: readonly ScoredRollout[];
  seed: number;
  pass: number;
}): ScoredRollout[] {
  const random = seededRandom('labels', seed, pass);
  const shuffled = byKey(rollouts)
    .map((rollout) => ({ rollout, place: random() }))
    .sort((a, b) => a.place - b.place);
  return byKey(shuffled.slice(0, Math.ceil(shuffled.length / 2)).map(({ rollout }) => rollout));
}
