/** Calibration and training in report.json. Invariant: a number that was measured on rollouts is a `Figure`. */
import { z } from 'zod';
import { artifactRefSchema } from './artifacts';
import { figureSchema } from './figure';

const step = z.number().int().nonnegative();

/** One calibration round of a synthesized environment. Rates are over groups (seeds). */
export const calibrationFiguresSchema = z.strictObject({
  round: z.number().int().positive(),
  accepted: z.boolean(),
  verdict: z.enum(['accepted', 'too_easy', 'too_hard', 'too_little_contrast']),
  reasons: z.array(z.string()),
  meanReward: figureSchema,
  successRate: figureSchema,
  allSuccess: figureSchema,
  allZero: figureSchema,
  constant: figureSchema,
  informative: figureSchema,
  rewardStd: figureSchema,
  /** pass@k by k; a k above the rollouts per seed is absent. */
  passAt: z.record(z.string(), figureSchema),
});
export type CalibrationFigures = z.infer<typeof calibrationFiguresSchema>;

/** A policy on the way, by what picks the best of them (BEST_BY in domain/results.ts). */
const reportedIterationSchema = z.strictObject({
  step,
  /** Training rollouts spent until here. */
  rollouts: figureSchema,
  /** On held-out seeds of the synthesized environment for a capability, on held-out train tasks of the target for an arm. */
  successRate: figureSchema,
  meanReward: figureSchema,
});
export type ReportedIteration = z.infer<typeof reportedIterationSchema>;

export const reportedTrainingSchema = z.strictObject({
  steps: step,
  /** All that it trained, also past the best step. */
  rollouts: figureSchema,
  /** Mean training reward by finished optimizer step, from the trainer's metrics; absent where no trainer ran. */
  rewardCurve: z
    .strictObject({
      points: z.array(z.strictObject({ step, reward: z.number() })),
      from: z.array(artifactRefSchema),
    })
    .optional(),
  iterations: z.array(reportedIterationSchema),
  bestStep: step.optional(),
});
export type ReportedTraining = z.infer<typeof reportedTrainingSchema>;
