/** Branches of instances: the figures of a batch, the best iteration, and what a training's metrics say of each. */
import { bestIteration, type Iteration } from '../../../src/domain/results';
import { type RolloutSummary } from '../../../src/domain/rollout';
import { outcomesSchema, summarise } from '../../../src/domain/outcomes';
import { scoredRollout } from '../../support/scored-rollout';

/** Rewards by branch: "special 0 1, twin 0.5", and after a dash those of no branch. */
const rollouts = (written: string) =>
  written.split(', ').flatMap((own) => {
    const [branch = '-', ...rewards] = own.split(' ');
    return rewards.map((reward, i) =>
      scoredRollout({
        ...{ name: `${branch}${i}`, task: `${branch}${i}`, reward: Number(reward) },
        ...(branch !== '-' && { branch }),
      }),
    );
  });
const ref = { uri: 'artifact:0', sha256: '0', bytes: 0, mediaType: 'x' };
const summary = (rewards: string, sha256 = '0'): RolloutSummary => ({
  ...summarise(outcomesSchema.parse(rollouts(rewards))),
  ref: { ...ref, sha256 },
  purpose: 'training',
  title: '',
  seconds: 0,
});

describe('a batch', () => {
  it('has the figures of each branch, of the rollouts that have one', () => {
    expect(summary('twin 1 1 0.5, special 0 1, - 0')).toMatchObject({
      scored: 6,
      meanReward: 3.5 / 6,
      branches: {
        special: { scored: 2, meanReward: 0.5, successRate: 0.5 },
        twin: { scored: 3, meanReward: 2.5 / 3, successRate: 2 / 3 },
      },
    });
  });
});

describe('the best iteration', () => {
  const iteration = (step: number, rewards: string): Iteration => ({
    step,
    rollouts: 10 * step,
    policy: { base: 'base@1', adapters: [] },
    heldOut: summary(rewards),
  });
  const refuses = 'special 1 1 1 1 1 1, twin 0 0';
  const learns = 'special 1 1 1 0 0 0, twin 1 1';

  it.each([
    ['a gain on the larger branch does not hide what the smaller lost', 2, [refuses, learns]],
    ['more reward among equals', 1, ['special 0 0 0, twin 0.9', 'special 0.4 0.4 0.4, twin 0.2']],
    ['also by branch', 2, ['special 0.5, twin 0', 'special 0.1, twin 0.5']],
    ['then the fewest rollouts', 1, ['special 1, twin 0', 'special 0, twin 1']],
    ['all rollouts where there are no branches', 2, ['- 1 0 0', '- 1 1 0', '- 1 1 0']],
  ])('is picked by the mean over branches: %s', (_, step, iterations) => {
    expect(bestIteration(iterations.map((rewards, i) => iteration(i + 1, rewards)))?.step).toBe(step);
  });
});
