/** Calibration: is an environment hard, easy and varied enough for GRPO with this base model? A group is one seed's rewards; seeds are the units. */
import { z } from 'zod';
import type { Decision } from './approval';
import type { ArtifactRef } from './artifacts';
import { count, fraction } from './kinds';
import { successRateOf, successShare } from './outcomes';
import { type Group, isSuccess, type RolloutSummary } from './rollout';
import {
  comparable,
  type Estimate,
  mean,
  meanInterval,
  populationStd,
  successRate,
  wilsonInterval,
} from './statistics';

const interval = z.object({ low: z.number(), high: z.number(), level: z.number().gt(0).lt(1) });

const band = z.tuple([fraction, fraction]);

export const calibrationBandsSchema = z
  .strictObject({
    seeds: count.default(100).describe('Instances.'),
    rolloutsPerSeed: count.default(16).describe('Rollouts per instance.'),
    temperature: z.number().positive().default(1).describe('Temperature.'),
    maxRounds: count.default(5).describe('Most versions.'),
    meanReward: band.default([0.2, 0.6]).describe('Accepted mean rewards.'),
    successRate: band.default([0.2, 0.6]).describe('Accepted success rates.'),
    minBranchSuccess: fraction.default(0).describe('Lowest success rate per branch.'),
    maxAllSuccess: fraction.default(0.2).describe('Highest share of instances that always succeed.'),
    maxAllZero: fraction.default(0.2).describe('Highest share of instances with all rewards 0.'),
    minInformative: fraction.default(0.5).describe('Lowest share of instances with different rewards.'),
    minRewardStd: z.number().min(0).default(0.05).describe('Lowest standard deviation of rewards.'),
  })
  .prefault({});
export type CalibrationBands = z.infer<typeof calibrationBandsSchema>;

const measuresSchema = z.object({
  seeds: z.number().int().positive(),
  meanReward: fraction,
  successRate: fraction,
  allSuccess: fraction,
  allZero: fraction,
  /** Share of groups whose rewards are not all equal to 8 decimals: only they give a gradient. */
  informative: fraction,
  rewardStd: z.number().nonnegative(),
  intervals: z.object({ meanReward: interval, successRate: interval, informative: interval }),
});
export type Measures = z.infer<typeof measuresSchema>;

const RESAMPLES = 2_000;

function measure(groups: readonly Group[], confidence: number): Measures {
  const how = { confidence, resamples: RESAMPLES };
  const share = (is: (rewards: readonly number[]) => boolean): number =>
    groups.filter(({ rewards }) => is(rewards)).length / groups.length;
  const meanReward = meanInterval({ values: groups.map(({ rewards }) => mean(rewards)), ...how });
  const informative = groups.filter(({ rewards }) => new Set(rewards.map(comparable)).size > 1).length;
  const trials = Math.max(...groups.map(({ rewards }) => rewards.length));
  const success = successRate({ taskMeans: groups.map(({ rewards }) => successShare(rewards)), trials, ...how });
  const interval = ({ low, high }: Estimate) => ({ low, high, level: confidence });
  return {
    seeds: groups.length,
    // Round-off of the means must not leave [0, 1].
    meanReward: Math.min(1, meanReward.value),
    successRate: Math.min(1, successRateOf(groups)),
    allSuccess: share((rewards) => rewards.every((reward) => isSuccess({ reward }))),
    allZero: share((rewards) => rewards.every((reward) => reward === 0)),
    informative: informative / groups.length,
    rewardStd: populationStd(groups.flatMap(({ rewards }) => rewards)),
    intervals: {
      meanReward: interval(meanReward),
      successRate: interval(success),
      informative: interval(wilsonInterval({ successes: informative, trials: groups.length, confidence })),
    },
  };
}

export const calibrationReportSchema = z.object({
  accepted: z.boolean(),
  /** Says what the next round must change: `too_little_contrast` means that too few groups have different rewards. */
  verdict: z.enum(['accepted', 'too_easy', 'too_hard', 'too_little_contrast']),
  /** One sentence for each band that is missed; then, where not all branches were judged, over which. */
  reasons: z.array(z.string()),
  ...measuresSchema.shape,
  branches: z.record(z.string(), measuresSchema).optional(),
  /** Set where the verdict is over some branches alone. The base has mastered the others, which are controls that guard against shortcuts. */
  judged: z
    .object({
      branches: z.array(z.string()),
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
    ...(names.length > 0 && { branches }),
    ...(judged && { judged }),
  };
}

/** Returns the branches to judge if mastered ones, whose success is above the band, alone make the whole too easy or of too little contrast. */
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
  return { branches: others, text, measures: of(others) };
}

function judge(
  measured: Measures,
  bands: CalibrationBands,
  branches: Record<string, Measures>,
): Pick<CalibrationReport, 'verdict' | 'reasons'> {
  const easy: string[] = [];
  const hard: string[] = [];
  const flat: string[] = [];
  const { meanReward, successRate, maxAllSuccess, maxAllZero, minInformative, minRewardStd } = bands;
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
  decision?: Decision;
}

export interface RoundFeedback {
  findings: readonly string[];
  /** Why a person rejected a version that is within the bands, in their words. */
  rejection?: string;
  calibration?: CalibrationReport;
}

export const isCalibrated = ({ calibration }: SynthesisRound): boolean => calibration?.accepted === true;
