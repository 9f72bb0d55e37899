/** The calibrations of a version of an environment: as it is, and with hints where that was too hard. */
import type { ReportedRound } from '../domain/reported-capability';
import type { CalibrationFigures } from '../domain/reported-training';
import { shortPercent } from './format';

export const calibrationsOf = ({ calibration, aided = [] }: ReportedRound): CalibrationFigures[] =>
  [calibration, ...aided].filter((one) => one !== undefined);

/** `with hints on 50% of the rollouts`; undefined without any. */
export const hintsText = ({ hints }: { hints?: number | undefined }): string | undefined =>
  hints === undefined ? undefined : `with hints on ${shortPercent(hints)} of the rollouts`;
