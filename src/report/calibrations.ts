/** The calibrations of a version of an environment: without hints, and with them where the first was too hard. */
import type { ReportedRound } from '../domain/reported-capability';
import type { CalibrationFigures } from '../domain/reported-training';
import { shortPercent } from './format';

export const calibrationsOf = ({ calibration, withHints }: ReportedRound): CalibrationFigures[] =>
  [calibration, withHints].filter((one) => one !== undefined);

/** `with hints on 50% of the rollouts`; undefined without hints. */
export const hintsText = ({ hints }: { hints?: number | undefined }): string | undefined =>
  hints === undefined ? undefined : `with hints on ${shortPercent(hints)} of the rollouts`;
