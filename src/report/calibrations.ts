/** The calibrations of a version of an environment: as it is, and with hints and easier instances where that was too hard. */
import type { ReportedRound } from '../domain/reported-capability';
import type { CalibrationFigures } from '../domain/reported-training';
import { shortPercent } from './format';

export const calibrationsOf = ({ calibration, aided = [] }: ReportedRound): CalibrationFigures[] =>
  [calibration, ...aided].filter((one) => one !== undefined);

/** `with hints on 50% of the rollouts and easier instances in 50% of the groups`; undefined without either. */
export function aidsText(o: { hints?: number | undefined; easier?: number | undefined }): string | undefined {
  const aids = [
    o.hints !== undefined && `hints on ${shortPercent(o.hints)} of the rollouts`,
    o.easier !== undefined && `easier instances in ${shortPercent(o.easier)} of the groups`,
  ].filter((one) => one !== false);
  return aids.length === 0 ? undefined : `with ${aids.join(' and ')}`;
}
