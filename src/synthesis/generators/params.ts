/**
 * The knobs of a generated environment and how calibration turns them. Invariant: at least 26% of the instances are twins, so that doing
 * the special thing always stays below the success threshold of the self-test (75%).
 */
import { z } from 'zod';
import type { CalibrationReport } from '../../domain/calibration';

export const knobsSchema = z.object({
  /** Share of the instances that do not need the capability. */
  twins: z.number().min(0).max(1),
  /** Fewest and most records in an account. */
  records: z.tuple([z.number().int().positive(), z.number().int().positive()]),
  /** Records that share a word with the one that is meant, where the class is about them. */
  lookalikes: z.number().int().min(1),
});
export type Knobs = z.infer<typeof knobsSchema>;

export const TWINS = { start: 0.28, fewest: 0.26, most: 0.5 };
const RECORDS = { fewest: 2, most: 6 };

export const startKnobs: Knobs = { twins: TWINS.start, records: [3, 4], lookalikes: 1 };

const between = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** The next round's knobs: harder after `too_easy`, easier after `too_hard`. */
export function turn(knobs: Knobs, report: CalibrationReport): Knobs {
  const harder = report.verdict === 'too_little_contrast' ? report.successRate > 0.4 : report.verdict === 'too_easy';
  if (report.verdict === 'accepted') return knobs;
  const more = harder ? 1 : -1;
  const [fewest, most] = knobs.records;
  return {
    twins: between(knobs.twins - 0.08 * more, TWINS.fewest, TWINS.most),
    records: [
      between(fewest + more, RECORDS.fewest, RECORDS.most - 1),
      between(most + more, RECORDS.fewest + 1, RECORDS.most),
    ],
    lookalikes: between(knobs.lookalikes + more, 1, 2),
  };
}
