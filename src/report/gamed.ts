/**
 * An adapter that games its environment: it does one thing everywhere, which is right on one branch of the instances and wrong on another.
 * Invariant: a branch has fallen or risen only if the interval of its paired difference to the base excludes zero.
 */
import { direction } from '../domain/paired-statistics';
import type { BranchComparison } from '../domain/reported-capability';
import { comparable } from '../domain/statistics';

/** A branch that fell by less has not been paid with. */
const LEAST_FALL = 0.05;

/** The branches that it lost, and those that it gained by it; undefined where it is not so. */
export function gamed(
  branches: readonly BranchComparison[] | undefined = [],
): { gained: BranchComparison[]; lost: BranchComparison[] } | undefined {
  const gained = branches.filter(({ difference }) => direction(difference.interval) === 'up');
  const lost = branches.filter(
    ({ difference: { value, interval } }) => direction(interval) === 'down' && comparable(value ?? 0) < -LEAST_FALL,
  );
  return gained.length > 0 && lost.length > 0 ? { gained, lost } : undefined;
}
