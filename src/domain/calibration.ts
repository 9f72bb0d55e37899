/**
 * Calibration: is a synthesized environment hard enough, easy enough and varied enough for GRPO with this base model (the method's step 2)?
 * Invariant: a pure function of the rewards and the bands; a group is one seed's rewards, and only scored rollouts are in it.
 */
import { z } from 'zod';
import type { CalibrationBands } from './campaign';
import { SUCCESS } from './rollout';
import { mean, meanInterval, passAtK, populationStd, wilsonInterval, type Estimate } from './statistics';

const share = z.number().min(0).max(1);
/** Seeds are the units. */
const interval = z.object({ low: z.number(), high: z.number(), level: z.number().gt(0).lt(1) });

export const calibrationReportSchema = z.object({
  accepted: z.boolean(),
  /** What the next round must change: `too_little_contrast` is neither too easy nor too hard, but too few groups inform. */
  verdict: z.enum(['accepted', 'too_easy', 'too_hard', 'too_little_contrast']),
  /** One sentence for each band that is missed. */
  reasons: z.array(z.string()),
  meanReward: share,
  /** Share of rollouts with reward >= 1. */
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
  /** pass@k for k in 1, 4, 8, 16, as far as there are k rollouts a seed: the mean over seeds of the unbiased estimate. */
  passAt: z.record(z.string(), share),
  seeds: z.number().int().positive(),
  /** Rollouts of the smallest group. */
  rolloutsPerSeed: z.number().int().positive(),
  intervals: z.object({
    meanReward: interval,
    successRate: interval,
    allSuccess: interval,
    allZero: interval,
    constant: interval,
    informative: interval,
    passAt: z.record(z.string(), interval),
  }),
});
export type CalibrationReport = z.infer<typeof calibrationReportSchema>;

const PASS_AT = [1, 4, 8, 16];

const isConstant = (rewards: readonly number[]): boolean => new Set(rewards.map((r) => r.toFixed(8))).size === 1;

/** Holds rewards, grouped by seed, against the bands. Throws if a group is empty or a reward is not in [0, 1]. */
export function calibrate({
  groups,
  bands,
  confidence,
}: {
  groups: readonly (readonly number[])[];
  bands: CalibrationBands;
  /** Level of the intervals. */
  confidence: number;
}): CalibrationReport {
  check(groups);
  const estimate = (values: readonly number[]): Estimate => meanInterval({ values, confidence, resamples: 2_000 });
  const shareOf = (is: (rewards: readonly number[]) => boolean): Estimate =>
    wilsonInterval({ successes: groups.filter(is).length, trials: groups.length, confidence });
  const intervals = <K extends string>(estimates: Record<K, Estimate>) =>
    mapValues(estimates, ({ low, high }) => ({ low, high, level: confidence }));
  const succeeds = (reward: number): boolean => reward >= SUCCESS;
  const successes = groups.map((rewards) => rewards.filter(succeeds).length);
  const rolloutsPerSeed = Math.min(...groups.map((rewards) => rewards.length));
  const averages = {
    meanReward: estimate(groups.map(mean)),
    successRate: estimate(groups.map((rewards, i) => (successes[i] ?? 0) / rewards.length)),
  };
  const shares = {
    allSuccess: shareOf((rewards) => rewards.every(succeeds)),
    allZero: shareOf((rewards) => rewards.every((r) => r === 0)),
    constant: shareOf(isConstant),
    informative: shareOf((rewards) => !isConstant(rewards)),
  };
  const passAt = Object.fromEntries(
    PASS_AT.filter((k) => k <= rolloutsPerSeed).map((k) => {
      const bySeed = groups.map((rewards, i) => passAtK({ trials: rewards.length, successes: successes[i] ?? 0, k }));
      return [`${k}`, estimate(bySeed)];
    }),
  );
  const figures = {
    ...points({ ...averages, ...shares }),
    rewardStd: populationStd(groups.flat()),
  };
  const { verdict, reasons } = judge(figures, bands);
  return {
    accepted: verdict === 'accepted',
    verdict,
    reasons,
    ...figures,
    passAt: points(passAt),
    seeds: groups.length,
    rolloutsPerSeed,
    intervals: { ...intervals({ ...averages, ...shares }), passAt: intervals(passAt) },
  };
}

function check(groups: readonly (readonly number[])[]): void {
  if (groups.length === 0) throw new Error('calibrate: no groups; give the rewards of at least one seed');
  groups.forEach((rewards, i) => {
    if (rewards.length === 0)
      throw new Error(`calibrate: group ${i} is empty; leave out seeds without a scored rollout`);
    const wrong = rewards.find((r) => !(r >= 0 && r <= 1));
    if (wrong !== undefined) throw new Error(`calibrate: group ${i} has the reward ${wrong}; rewards are in [0, 1]`);
  });
}

type Measured = Pick<
  CalibrationReport,
  'meanReward' | 'successRate' | 'allSuccess' | 'allZero' | 'constant' | 'informative' | 'rewardStd'
>;

/** All bands that are missed, and which way the environment has to move. */
function judge(measured: Measured, bands: CalibrationBands): Pick<CalibrationReport, 'verdict' | 'reasons'> {
  const easy: string[] = [];
  const hard: string[] = [];
  const flat: string[] = [];
  const { meanReward, successRate, maxAllSuccess, maxAllZero, maxConstant, minInformative, minRewardStd } = bands;
  for (const [name, value, [low, high]] of [
    ['mean reward', measured.meanReward, meanReward],
    ['success rate', measured.successRate, successRate],
  ] as const) {
    if (value > high) easy.push(`${name} ${show(value)} is above ${high}`);
    if (value < low) hard.push(`${name} ${show(value)} is below ${low}`);
  }
  const above = (list: string[], name: string, value: number, limit: number): void => {
    if (value > limit) list.push(`${show(value)} of the groups are ${name}, above ${limit}`);
  };
  above(easy, 'all-success', measured.allSuccess, maxAllSuccess);
  above(hard, 'all-zero', measured.allZero, maxAllZero);
  above(flat, 'constant', measured.constant, maxConstant);
  if (measured.informative < minInformative)
    flat.push(`${show(measured.informative)} of the groups inform, below ${minInformative}`);
  if (measured.rewardStd < minRewardStd) flat.push(`reward std ${show(measured.rewardStd)} is below ${minRewardStd}`);

  const reasons = [...easy, ...hard, ...flat];
  if (reasons.length === 0) return { verdict: 'accepted', reasons };
  if (easy.length > 0 && hard.length === 0) return { verdict: 'too_easy', reasons };
  if (hard.length > 0 && easy.length === 0) return { verdict: 'too_hard', reasons };
  return { verdict: 'too_little_contrast', reasons };
}

const show = (value: number): string => value.toFixed(3);

function mapValues<K extends string, A, B>(record: Record<K, A>, map: (value: A) => B): Record<K, B> {
  return Object.fromEntries(Object.entries<A>(record).map(([key, value]) => [key, map(value)])) as Record<K, B>;
}
// Round-off of the means must not leave [0, 1].
const points = <K extends string>(estimates: Record<K, Estimate>) =>
  mapValues(estimates, ({ mean: value }) => Math.min(1, Math.max(0, value)));
