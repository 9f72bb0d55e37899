/** What rewards grouped by seed come to. Invariant: seeds are the units of every interval, and a share never leaves [0, 1]. */
import { z } from 'zod';
import { SUCCESS, type Group } from './rollout';
import {
  comparable,
  mean,
  meanInterval,
  meanShare,
  passAtK,
  populationStd,
  successRate,
  wilsonInterval,
  type Estimate,
} from './statistics';

export const share = z.number().min(0).max(1);
export const interval = z.object({ low: z.number(), high: z.number(), level: z.number().gt(0).lt(1) });

/** What the bands are held against. */
export const measuresSchema = z.object({
  seeds: z.number().int().positive(),
  meanReward: share,
  /** Share of a seed's rollouts with reward >= 1, mean over the seeds. */
  successRate: share,
  /** Share of groups in which every rollout succeeds. */
  allSuccess: share,
  /** Share of groups in which every reward is 0. */
  allZero: share,
  /** Share of groups whose rewards are equal to 8 decimals; they give no gradient. */
  constant: share,
  /** The other groups. */
  informative: share,
  /** Population standard deviation of all rewards. */
  rewardStd: z.number().nonnegative(),
  intervals: z.object({
    meanReward: interval,
    successRate: interval,
    allSuccess: interval,
    allZero: interval,
    constant: interval,
    informative: interval,
  }),
});
export type Measures = z.infer<typeof measuresSchema>;

const isConstant = (rewards: readonly number[]): boolean => new Set(rewards.map(comparable)).size === 1;
const succeeds = (reward: number): boolean => reward >= SUCCESS;
const successesIn = (rewards: readonly number[]): number => rewards.filter(succeeds).length;

const RESAMPLES = 2_000;

const estimate = (values: readonly number[], confidence: number): Estimate =>
  meanInterval({ values, confidence, resamples: RESAMPLES });

export function measure(groups: readonly Group[], confidence: number): Measures {
  const shareOf = (is: (rewards: readonly number[]) => boolean): Estimate => {
    const successes = groups.filter(({ rewards }) => is(rewards)).length;
    return wilsonInterval({ successes, trials: groups.length, confidence });
  };
  const over = (value: (rewards: readonly number[]) => number): Estimate =>
    estimate(
      groups.map(({ rewards }) => value(rewards)),
      confidence,
    );
  const estimates = {
    meanReward: over(mean),
    successRate: {
      ...successRate({
        taskMeans: groups.map(({ rewards }) => successesIn(rewards) / rewards.length),
        trials: Math.max(...groups.map(({ rewards }) => rewards.length)),
        ...{ confidence, resamples: RESAMPLES },
      }),
      mean: meanShare(groups.map(({ rewards }) => ({ part: successesIn(rewards), of: rewards.length }))),
    },
    allSuccess: shareOf((rewards) => rewards.every(succeeds)),
    allZero: shareOf((rewards) => rewards.every((r) => r === 0)),
    constant: shareOf(isConstant),
    informative: shareOf((rewards) => !isConstant(rewards)),
  };
  return {
    seeds: groups.length,
    ...points(estimates),
    rewardStd: populationStd(groups.flatMap(({ rewards }) => rewards)),
    intervals: intervals(estimates, confidence),
  };
}

const PASS_AT = [1, 4, 8, 16];

/** pass@k by k, as far as the smallest group goes. */
export function passRates(groups: readonly Group[], confidence: number) {
  const most = Math.min(...groups.map(({ rewards }) => rewards.length));
  const estimates = Object.fromEntries(
    PASS_AT.filter((k) => k <= most).map((k) => {
      const bySeed = groups.map(({ rewards }) =>
        passAtK({ trials: rewards.length, successes: successesIn(rewards), k }),
      );
      return [`${k}`, estimate(bySeed, confidence)];
    }),
  );
  return { passAt: points(estimates), passAtIntervals: intervals(estimates, confidence), rolloutsPerSeed: most };
}

function mapValues<K extends string, A, B>(record: Record<K, A>, map: (value: A) => B): Record<K, B> {
  return Object.fromEntries(Object.entries<A>(record).map(([key, value]) => [key, map(value)])) as Record<K, B>;
}
// Round-off of the means must not leave [0, 1].
const points = <K extends string>(estimates: Record<K, Estimate>) =>
  mapValues(estimates, ({ mean: value }) => Math.min(1, Math.max(0, value)));
const intervals = <K extends string>(estimates: Record<K, Estimate>, level: number) =>
  mapValues(estimates, ({ low, high }) => ({ low, high, level }));
