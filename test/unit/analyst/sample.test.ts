/** The half that a labeling pass looks at. */
import fc from 'fast-check';
import { randomHalf } from '../../../src/analyst/rules/rules';
import type { ScoredRollout } from '../../../src/domain/rollout';
import { mean, populationStd } from '../../../src/domain/statistics';
import { scoredRollout } from '../../support/scored-rollout';

const rolloutsOf = (count: number) =>
  Array.from({ length: count }, (_, i) => scoredRollout({ name: `r${i}`, task: `t${i}`, reward: i % 2 })).filter(
    (one): one is ScoredRollout => one.status === 'scored',
  );
const keys = (rollouts: readonly ScoredRollout[]) => rollouts.map(({ key }) => key);

describe('the half of a labeling pass', () => {
  it('holds half of the rollouts, none twice, sorted by key, whatever their order', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 40 }), fc.nat(), fc.nat(), (count, seed, pass) => {
        const rollouts = rolloutsOf(count);
        const half = keys(randomHalf({ rollouts, seed, pass }));
        expect(half).toHaveLength(Math.ceil(count / 2));
        expect(new Set(half).size).toBe(half.length);
        expect([...half].sort()).toEqual(half);
        expect(keys(rollouts)).toEqual(expect.arrayContaining(half));
        expect(keys(randomHalf({ rollouts: [...rollouts].reverse(), seed, pass }))).toEqual(half);
      }),
    );
  });

  it('takes the only rollout there is', () => {
    const rollouts = rolloutsOf(1);
    expect(randomHalf({ rollouts, seed: 1, pass: 0 })).toEqual(rollouts);
  });

  it('spreads over the passes as bootstrap samples do', () => {
    const rollouts = rolloutsOf(100);
    const means = Array.from({ length: 2000 }, (_, pass) =>
      mean(randomHalf({ rollouts, seed: 1, pass }).map(({ reward }) => reward)),
    );
    expect(mean(means)).toBeCloseTo(0.5, 2);
    // A bootstrap's mean of 100 outcomes, half of them 1, has the standard deviation 0.05.
    expect(populationStd(means)).toBeGreaterThan(0.047);
    expect(populationStd(means)).toBeLessThan(0.053);
  });
});
