/**
 * Calibration: is a synthesized environment hard enough, easy enough and varied enough for GRPO with this base model (the method's step 2)?
 * Invariants: a pure function of the rewards and the bands, in whatever order they come; a group is one seed's rewards, and only scored rollouts
 * are in it; seeds are the units of every interval.
 */
import { z } from 'zod';
import type { Decision } from './approval';
import type { ArtifactRef } from './artifacts';
import { count, fraction } from './kinds';
import { successes, successRateOf, successShare } from './outcomes';
import { type Group, isSuccess, type RolloutSummary } from './rollout';
import {
  comparable,
  type Estimate,
  mean,
  meanInterval,
  passAtK,
  populationStd,
  successRate,
  wilsonInterval,
} from './statistics';

const interval = z.object({ low: z.number(), high: z.number(), level: z.number().gt(0).lt(1) });

const band = z.tuple([fraction, fraction]);

export const calibrationBandsSchema = z
  .strictObject({
    seeds: count.default(100).describe('Instances that are played.'),
    rolloutsPerSeed: count.default(16).describe('Rollouts of each instance.'),
    temperature: z.number().positive().default(1).describe('Temperature of calibration rollouts.'),
    maxRounds: count.default(5).describe('Most versions of an environment.'),
    meanReward: band.default([0.2, 0.6]).describe('Accepted mean rewards.'),
    successRate: band.default([0.2, 0.6]).describe('Accepted success rates.'),
    minBranchSuccess: fraction.default(0).describe('Lowest success rate of each branch that is judged.'),
    maxAllSuccess: fraction.default(0.2).describe('Highest share of instances whose rollouts all succeed.'),
    maxAllZero: fraction.default(0.2).describe('Highest share whose rewards are all 0.'),
    maxConstant: fraction.default(0.5).describe('Highest share whose rewards are all equal.'),
    minInformative: fraction.default(0.5).describe('Lowest share whose rewards differ.'),
    minRewardStd: z.number().min(0).default(0.05).describe('Lowest standard deviation of all rewards.'),
  })
  .prefault({});
export type CalibrationBands = z.infer<typeof calibrationBandsSchema>;

/** The figures that are compared with the bands. */
const measuresSchema = z.object({
  seeds: z.number().int().positive(),
  meanReward: fraction,
  /** Share of a seed's rollouts that are successes, mean over the seeds. */
  successRate: fraction,
  allSuccess: fraction,
  allZero: fraction,
  /** Share of groups whose rewards are equal to 8 decimals; they give no gradient. */
  constant: fraction,
  /** The other groups. */
  informative: fraction,
  rewardStd: z.number().nonnegative(),
  intervals: z.record(
    z.enum(['meanReward', 'successRate', 'allSuccess', 'allZero', 'constant', 'informative']),
    interval,
  ),
});
export type Measures = z.infer<typeof measuresSchema>;

const isConstant = (rewards: readonly number[]): boolean => new Set(rewards.map(comparable)).size === 1;

const RESAMPLES = 2_000;

const estimate = (values: readonly number[], confidence: number): Estimate =>
  meanInterval({ values, confidence, resamples: RESAMPLES });

function measure(groups: readonly Group[], confidence: number): Measures {
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
        taskMeans: groups.map(({ rewards }) => successShare(rewards)),
        trials: Math.max(...groups.map(({ rewards }) => rewards.length)),
        ...{ confidence, resamples: RESAMPLES },
      }),
      value: successRateOf(groups),
    },
    allSuccess: shareOf((rewards) => rewards.every((reward) => isSuccess({ reward }))),
    allZero: shareOf((rewards) => rewards.every((reward) => reward === 0)),
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
function passRates(groups: readonly Group[], confidence: number) {
  const most = Math.min(...groups.map(({ rewards }) => rewards.length));
  const estimates = Object.fromEntries(
    PASS_AT.filter((k) => k <= most).map((k) => {
      const bySeed = groups.map(({ rewards }) => passAtK({ trials: rewards.length, successes: successes(rewards), k }));
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
  mapValues(estimates, ({ value }) => Math.min(1, Math.max(0, value)));
const intervals = <K extends string>(estimates: Record<K, Estimate>, level: number) =>
  mapValues(estimates, ({ low, high }) => ({ low, high, level }));

export const calibrationReportSchema = z.object({
  accepted: z.boolean(),
  /** Says what the next round must change: `too_little_contrast` means that too few groups have different rewards. */
  verdict: z.enum(['accepted', 'too_easy', 'too_hard', 'too_little_contrast']),
  /** One sentence for each band that is missed; then, where not all branches were judged, over which. */
  reasons: z.array(z.string()),
  /** Figures of all groups. */
  ...measuresSchema.shape,
  /** pass@k for k in 1, 4, 8, 16, as far as there are k rollouts a seed: the mean over seeds of the unbiased estimate. */
  passAt: z.record(z.string(), fraction),
  passAtIntervals: z.record(z.string(), interval),
  rolloutsPerSeed: z.number().int().positive(),
  /** Figures of the groups of each branch; absent where no group has one. */
  branches: z.record(z.string(), measuresSchema).optional(),
  /** Set where the verdict is over some branches alone. The base has mastered the others, which are controls that guard against shortcuts. */
  judged: z
    .object({
      branches: z.array(z.string()),
      mastered: z.array(z.string()),
      /** "over the instances of `special`; `twin` is mastered: 0.89" */
      text: z.string(),
      measures: measuresSchema,
    })
    .optional(),
});
export type CalibrationReport = z.infer<typeof calibrationReportSchema>;

/** Holds rewards, grouped by seed, against the bands. Throws if there is no group, or one is empty. */
export function calibrate(o: {
  groups: readonly Group[];
  bands: CalibrationBands;
  confidence: number;
}): CalibrationReport {
  const { groups, bands, confidence } = o;
  const all = measure(groups, confidence);
  const names = [...new Set(groups.flatMap(({ branch }) => branch ?? []))].sort();
  const of = (wanted: readonly string[]) =>
    measure(
      groups.filter(({ branch }) => branch !== undefined && wanted.includes(branch)),
      confidence,
    );
  const branches = Object.fromEntries(names.map((name) => [name, of([name])]));
  const everyHas = groups.every(({ branch }) => branch !== undefined);
  const judged = everyHas ? judgedApart({ all, branches, bands, of }) : undefined;
  const apart = judged ? judged.branches : names;
  const { verdict, reasons } = judge(judged?.measures ?? all, bands, pick(branches, apart));
  return {
    accepted: verdict === 'accepted',
    verdict,
    reasons: judged && reasons.length > 0 ? [...reasons, judged.text] : reasons,
    ...all,
    ...passRates(groups, confidence),
    ...(names.length > 0 && { branches }),
    ...(judged && { judged }),
  };
}

/**
 * Returns the branches that the base has not mastered, if the environment as a whole is too easy or has too little contrast only because of the
 * mastered ones, whose success lies above the band.
 */
function judgedApart(o: {
  all: Measures;
  branches: Record<string, Measures>;
  bands: CalibrationBands;
  of: (branches: readonly string[]) => Measures;
}): CalibrationReport['judged'] {
  const { all, branches, bands, of } = o;
  const { verdict } = judge(all, bands, branches);
  if (verdict !== 'too_easy' && verdict !== 'too_little_contrast') return undefined;
  const mastered = Object.keys(branches).filter(
    (name) => comparable(branches[name]!.successRate) > bands.successRate[1],
  );
  const others = Object.keys(branches).filter((name) => !mastered.includes(name));
  if (mastered.length === 0 || others.length === 0) return undefined;
  const known = mastered.map((name) => `\`${name}\` is mastered: ${branches[name]!.successRate.toFixed(2)}`);
  const text = `over the instances of ${others.map((name) => `\`${name}\``).join(' and ')}; ${known.join(', ')}`;
  return { branches: others, mastered, text, measures: of(others) };
}

/** Returns the bands that are missed, and in which direction the environment has to change. */
function judge(
  measured: Measures,
  bands: CalibrationBands,
  branches: Record<string, Measures>,
): Pick<CalibrationReport, 'verdict' | 'reasons'> {
  const easy: string[] = [];
  const hard: string[] = [];
  const flat: string[] = [];
  const { meanReward, successRate, maxAllSuccess, maxAllZero, maxConstant, minInformative, minRewardStd } = bands;
  for (const [name, value, [low, high]] of [
    ['mean reward', comparable(measured.meanReward), meanReward],
    ['success rate', comparable(measured.successRate), successRate],
  ] as const) {
    if (value > high) easy.push(`${name} ${show(value)} is above ${high}`);
    if (value < low) hard.push(`${name} ${show(value)} is below ${low}`);
  }
  for (const [name, { successRate: of }] of Object.entries(branches))
    if (comparable(of) < bands.minBranchSuccess)
      hard.push(`success rate ${show(of)} over the instances of \`${name}\` is below ${bands.minBranchSuccess}`);
  const above = (list: string[], name: string, value: number, limit: number): void => {
    if (value > limit) list.push(`${show(value)} of the groups are ${name}, above ${limit}`);
  };
  above(easy, 'all-success', measured.allSuccess, maxAllSuccess);
  above(hard, 'all-zero', measured.allZero, maxAllZero);
  above(flat, 'constant', measured.constant, maxConstant);
  if (measured.informative < minInformative)
    flat.push(`${show(measured.informative)} of the groups inform, below ${minInformative}`);
  if (comparable(measured.rewardStd) < minRewardStd)
    flat.push(`reward std ${show(measured.rewardStd)} is below ${minRewardStd}`);

  const reasons = [...easy, ...hard, ...flat];
  if (reasons.length === 0) return { verdict: 'accepted', reasons };
  if (easy.length > 0 && hard.length === 0) return { verdict: 'too_easy', reasons };
  if (hard.length > 0 && easy.length === 0) return { verdict: 'too_hard', reasons };
  return { verdict: 'too_little_contrast', reasons };
}

const pick = (branches: Record<string, Measures>, names: readonly string[]): Record<string, Measures> =>
  Object.fromEntries(Object.entries(branches).filter(([name]) => names.includes(name)));

const show = (value: number): string => value.toFixed(3);

export const selfTestSchema = z.object({
  passed: z.boolean(),
  findings: z.array(z.string()),
});
export type SelfTest = z.infer<typeof selfTestSchema>;

/** One version of a synthesized environment and what was found of it; calibration is absent where the self-test failed. */
export interface SynthesisRound {
  round: number;
  module: ArtifactRef;
  selfTest: SelfTest;
  calibration?: CalibrationReport;
  calibrationRollouts?: RolloutSummary;
  /** The decision of a person, where the campaign asks for one. */
  decision?: Decision;
}

/** The results of a version that the synthesizer needs to revise it. */
export interface RoundFeedback {
  findings: readonly string[];
  /** Why a person rejected a version that is within the bands, in their words. */
  rejection?: string;
  calibration?: CalibrationReport;
}

export const isCalibrated = ({ calibration }: SynthesisRound): boolean => calibration?.accepted === true;
