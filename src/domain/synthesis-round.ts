/** What was found of one version of a synthesized environment. Invariant: the last calibration counts, whatever aids it was made with. */
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
  /** It gives easier instances. */
  easier: z.boolean().optional(),
});
export type SelfTest = z.infer<typeof selfTestSchema>;

/** What helps a policy that hardly ever succeeds. */
export interface Aids {
  /** Share of each seed's rollouts that are shown the hint. */
  hints?: number;
  /** Share of the instances that are the easier ones. */
  easier?: number;
}

export interface AidedCalibration extends Aids {
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
  /** Where that missed the bands for want of success: the same with hints, then with easier instances too. The last one counts. */
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
  /** The same with hints, and with easier instances too. */
  aided?: readonly AidedFeedback[];
}

export const aidsIn = ({ hints, easier }: Aids): Aids => ({
  ...(hints !== undefined && { hints }),
  ...(easier !== undefined && { easier }),
});

export const aidNames = ({ hints, easier }: Aids): string =>
  [...(hints === undefined ? [] : ['hints']), ...(easier === undefined ? [] : ['easier instances'])].join(' and ');

/** Whether a round's environment is within the bands, as it is, with hints, or with easier instances too. */
export const isCalibrated = ({ calibration, aided }: SynthesisRound): boolean =>
  (aided?.at(-1)?.calibration ?? calibration)?.accepted === true;

/** What a round's environment was accepted with; nothing as it is, or where it was not. */
export function acceptedWith({ aided }: Pick<SynthesisRound, 'aided'>): Aids {
  const last = aided?.at(-1);
  return last?.calibration.accepted ? aidsIn(last) : {};
}
