/**
 * Calibration: is a synthesized environment hard enough, easy enough and varied enough for GRPO with this base model (the method's step 2)?
 * Invariants: a pure function of the rewards and the bands, in whatever order they come; a group is one seed's rewards, and only scored rollouts
 * are in it.
 */
import { z } from 'zod';
import type { CalibrationBands } from './campaign';
import { interval, measure, measuresSchema, passRates, share, type Measures } from './measures';
import type { Group } from './rollout';
import { comparable } from './statistics';

export const calibrationReportSchema = z.object({
  accepted: z.boolean(),
  /** What the next round must change: `too_little_contrast` is neither too easy nor too hard, but too few groups inform. */
  verdict: z.enum(['accepted', 'too_easy', 'too_hard', 'too_little_contrast']),
  /** One sentence for each band that is missed; then, where not all branches were judged, over which. */
  reasons: z.array(z.string()),
  /** Of all groups. */
  ...measuresSchema.shape,
  /** pass@k for k in 1, 4, 8, 16, as far as there are k rollouts a seed: the mean over seeds of the unbiased estimate. */
  passAt: z.record(z.string(), share),
  passAtIntervals: z.record(z.string(), interval),
  /** Rollouts of the smallest group. */
  rolloutsPerSeed: z.number().int().positive(),
  /** Of the groups of each branch; absent where no group has one. */
  branches: z.record(z.string(), measuresSchema).optional(),
  /** Where the verdict is over some branches alone: the base has mastered the others, which are controls that guard against shortcuts. */
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

/** Holds rewards, grouped by seed, against the bands. Throws if a group is empty or a reward is not in [0, 1]. */
export function calibrate({
  groups,
  bands,
  confidence,
}: {
  groups: readonly Group[];
  bands: CalibrationBands;
  /** Level of the intervals. */
  confidence: number;
}): CalibrationReport {
  check(groups);
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

function check(groups: readonly Group[]): void {
  if (groups.length === 0) throw new Error('calibrate: no groups; give the rewards of at least one seed');
  groups.forEach(({ rewards }, i) => {
    if (rewards.length === 0)
      throw new Error(`calibrate: group ${i} is empty; leave out seeds without a scored rollout`);
    const wrong = rewards.find((r) => !(r >= 0 && r <= 1));
    if (wrong !== undefined) throw new Error(`calibrate: group ${i} has the reward ${wrong}; rewards are in [0, 1]`);
  });
}

/**
 * Where the environment as a whole is too easy or has too little contrast only because the base has mastered some of its branches (their
 * success lies above the band): the others, which are what there is to learn.
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
  const mastered = Object.keys(branches).filter((name) => branches[name]!.successRate > bands.successRate[1]);
  const others = Object.keys(branches).filter((name) => !mastered.includes(name));
  if (mastered.length === 0 || others.length === 0) return undefined;
  const known = mastered.map((name) => `\`${name}\` is mastered: ${branches[name]!.successRate.toFixed(2)}`);
  const text = `over the instances of ${others.map((name) => `\`${name}\``).join(' and ')}; ${known.join(', ')}`;
  return { branches: others, mastered, text, measures: of(others) };
}

/** All bands that are missed, and which way the environment has to move. */
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
    ['success rate', measured.successRate, successRate],
  ] as const) {
    if (value > high) easy.push(`${name} ${show(value)} is above ${high}`);
    if (value < low) hard.push(`${name} ${show(value)} is below ${low}`);
  }
  for (const [name, { successRate: of }] of Object.entries(branches))
    if (of < bands.minBranchSuccess)
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

/** Whether hints can bring it into the bands: it is too hard, or too few groups inform while few rollouts succeed. */
export function wantsAid(report: CalibrationReport, { successRate: [low, high] }: CalibrationBands): boolean {
  const { successRate } = report.judged?.measures ?? report;
  return (
    report.verdict === 'too_hard' ||
    (report.verdict === 'too_little_contrast' && successRate < comparable((low + high) / 2))
  );
}

const pick = (branches: Record<string, Measures>, names: readonly string[]): Record<string, Measures> =>
  Object.fromEntries(Object.entries(branches).filter(([name]) => names.includes(name)));

const show = (value: number): string => value.toFixed(3);
