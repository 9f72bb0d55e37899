/** Branches of instances: the figures of a batch, the best iteration, and what a training's metrics say of each. */
import { bestIteration, type Iteration } from '../../../src/domain/results';
import { type RolloutSummary } from '../../../src/domain/rollout';
import { outcomesSchema, summarise, taskMeans } from '../../../src/domain/outcomes';
import { rateFigure, rewardFigure } from '../../../src/report/build/figures';
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

  it('has the success rate and mean reward of the report, also where tasks have unequal numbers of scored rollouts', () => {
    const rewards = { a: [1, 1, 1], b: [0.5] };
    const played = Object.entries(rewards).flatMap(([task, own]) =>
      own.map((reward, n) => scoredRollout({ name: `${task}${n}`, task, reward })),
    );
    const outcomes = outcomesSchema.parse(played);
    const means = taskMeans(outcomes, ref);
    const level = { confidence: 0.95, seed: 1 };
    const { successRate, meanReward } = summarise(outcomes);
    expect([successRate, meanReward]).toEqual([0.5, 0.75]);
    expect(rateFigure('rate', means, level).value).toBe(successRate);
    expect(rewardFigure('reward', means, level).value).toBe(meanReward);
  });

  it('has none where no rollout has a branch', () => {
    expect(summary('- 0 1')).not.toHaveProperty('branches');
    expect(summary('')).toMatchObject({ scored: 0, meanReward: 0, successRate: 0 });
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
  // 0.3 + 0.2 + 0.1 is less than 0.1 + 0.2 + 0.3.
  const fallsOff = 'a 1 1 1 0 0 0 0 0 0 0, b 1 1 0 0 0 0 0 0 0 0, c 1 0 0 0 0 0 0 0 0 0';
  const risesUp = 'a 1 0 0 0 0 0 0 0 0 0, b 1 1 0 0 0 0 0 0 0 0, c 1 1 1 0 0 0 0 0 0 0';

  it.each([
    ['a gain on the larger branch does not hide what the smaller lost', 2, [refuses, learns]],
    ['nor where it comes later', 1, [learns, refuses]],
    ['more reward among equals', 1, ['special 0 0 0, twin 0.9', 'special 0.4 0.4 0.4, twin 0.2']],
    ['also by branch', 2, ['special 0.5, twin 0', 'special 0.1, twin 0.5']],
    ['then the fewest rollouts', 1, ['special 1, twin 0', 'special 0, twin 1']],
    ['equal successes are equal in any order', 1, [fallsOff, risesUp]],
    ['equal rewards are', 1, ['- 0.3 0.2 0.1', '- 0.1 0.2 0.3']],
    ['and those of a branch', 1, ['a 0.1 0.3, b 0', 'a 0.4 0, b 0']],
    ['all rollouts where there are no branches', 2, ['- 1 0 0', '- 1 1 0', '- 1 1 0']],
  ])('is picked by the mean over branches: %s', (_, step, iterations) => {
    expect(bestIteration(iterations.map((rewards, i) => iteration(i + 1, rewards)))?.step).toBe(step);
  });

  it('is none of none', () => expect(bestIteration([])).toBeUndefined());
});
