/** Calibration and training in report.json. Invariant: a number that was measured on rollouts is a `Figure`. */
import { z } from 'zod';
import { artifactRefSchema } from './artifacts';
import { branchSchema } from './environment';
import { figureSchema } from './figure';

const step = z.number().int().nonnegative();

/** What the bands are held against. Rates are over groups (seeds). */
const bandFiguresSchema = z.strictObject({
  meanReward: figureSchema,
  successRate: figureSchema,
  allSuccess: figureSchema,
  allZero: figureSchema,
  constant: figureSchema,
  informative: figureSchema,
  rewardStd: figureSchema,
});
export type BandFigures = z.infer<typeof bandFiguresSchema>;

/** One calibration round of a synthesized environment. */
export const calibrationFiguresSchema = z.strictObject({
  round: z.number().int().positive(),
  /** Share of each seed's rollouts that were shown the environment's hint; absent where none was. */
  hints: z.number().gt(0).max(1).optional(),
  accepted: z.boolean(),
  verdict: z.enum(['accepted', 'too_easy', 'too_hard', 'too_little_contrast']),
  reasons: z.array(z.string()),
  /** Of all seeds. */
  ...bandFiguresSchema.shape,
  /** pass@k by k; a k above the rollouts per seed is absent. */
  passAt: z.record(z.string(), figureSchema),
  /** Where instances have branches. */
  branches: z.array(z.strictObject({ branch: branchSchema, ...bandFiguresSchema.shape })).optional(),
  /** Where the verdict is over some branches alone, since the base has mastered the others. */
  judged: z.strictObject({ text: z.string(), ...bandFiguresSchema.shape }).optional(),
});
export type CalibrationFigures = z.infer<typeof calibrationFiguresSchema>;

/** A policy on the way, by what picks the best of them (BEST_BY in domain/results.ts). */
const reportedIterationSchema = z.strictObject({
  step,
  /** Training rollouts spent until here. */
  rollouts: figureSchema,
  /** On held-out seeds of the synthesized environment for a capability; on held-out train tasks of the target for an arm, and for what trained on several environments mixed. */
  successRate: figureSchema,
  meanReward: figureSchema,
  /** Where instances have branches. */
  branches: z
    .array(z.strictObject({ branch: branchSchema, successRate: figureSchema, meanReward: figureSchema }))
    .optional(),
});
export type ReportedIteration = z.infer<typeof reportedIterationSchema>;

const curveSchema = z.array(z.strictObject({ step, reward: z.number() }));
export type Curve = z.infer<typeof curveSchema>;

export const reportedTrainingSchema = z.strictObject({
  steps: step,
  /** Share of each group's rollouts that were shown the environment's hint: the reward curve counts them, too. Absent where none was. */
  hints: z.number().gt(0).max(1).optional(),
  /** All that it trained, also past the best step. */
  rollouts: figureSchema,
  /** Mean training reward by finished optimizer step, from the trainer's metrics; absent where no trainer ran, or without rollouts. */
  rewardCurve: z
    .strictObject({
      points: curveSchema,
      /** The same of the rollouts of each branch, where instances have branches. */
      branches: z.array(z.strictObject({ branch: branchSchema, points: curveSchema })).optional(),
      from: z.array(artifactRefSchema),
    })
    .optional(),
  iterations: z.array(reportedIterationSchema),
  bestStep: step.optional(),
});
export type ReportedTraining = z.infer<typeof reportedTrainingSchema>;
