/** What was found of one version of a synthesized environment. Invariant: the last calibration counts, with hints or without. */
import { z } from 'zod';
import type { Decision } from './approval';
import type { ArtifactRef } from './artifacts';
import type { CalibrationReport } from './calibration';
import type { RolloutSummary } from './rollout-summary';

export const selfTestSchema = z.object({
  passed: z.boolean(),
  findings: z.array(z.string()),
  /** The environment gives hints. */
  hints: z.boolean().optional(),
});
export type SelfTest = z.infer<typeof selfTestSchema>;

export interface AidedCalibration {
  /** Share of each seed's rollouts that are shown the hint. */
  hints: number;
  calibration: CalibrationReport;
  calibrationRollouts: RolloutSummary;
}
export type AidedFeedback = Omit<AidedCalibration, 'calibrationRollouts'>;

/** One version of a synthesized environment and what was found of it; calibration is absent where the self-test failed. */
export interface SynthesisRound {
  round: number;
  module: ArtifactRef;
  selfTest: SelfTest;
  calibration?: CalibrationReport;
  calibrationRollouts?: RolloutSummary;
  /** Where that missed the bands for want of success: the same with hints. The last one counts. */
  aided?: AidedCalibration[];
  /** What was decided of it, where somebody was asked. */
  decision?: Decision;
}

/** What was found of a version, for whoever revises it: findings, or a rejection, or bands that were missed. */
export interface RoundFeedback {
  /** Of the self-test. */
  findings: readonly string[];
  /** Why a person rejected a version that is within the bands, in their words. */
  rejection?: string;
  calibration?: CalibrationReport;
  /** The same with hints. */
  aided?: readonly AidedFeedback[];
}

/** Whether a round's environment is within the bands, as it is or with hints. */
export const isCalibrated = ({ calibration, aided }: SynthesisRound): boolean =>
  (aided?.at(-1)?.calibration ?? calibration)?.accepted === true;

/** Whether a round's environment was accepted with hints. */
export const acceptedWithHints = ({ aided }: Pick<SynthesisRound, 'aided'>): boolean =>
  aided?.at(-1)?.calibration.accepted === true;
