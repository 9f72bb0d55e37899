/** What a generated module is a function of, and how its knobs are turned from round to round. */
import { z } from 'zod';
import type { CalibrationReport } from '../../domain/calibration';
import type { ToolSchema } from '../../domain/messages';
import type { Family, Member } from './families';
import type { Wording } from './wording';
import type { World } from './world';

export const knobsSchema = z.object({
  /** Fewest and most records in an account. */
  records: z.tuple([z.number().int().positive(), z.number().int().positive()]),
  /** Records that share a word with the one that is meant, where the capability is about them. */
  lookalikes: z.number().int().min(1),
});
export type Knobs = z.infer<typeof knobsSchema>;

/** Everything that the module's fixed text works on: its first line. */
export interface Params extends Knobs {
  capability: string;
  policy: string;
  maxSteps: number;
  /** The target's tools that this environment offers. */
  tools: ToolSchema[];
  world: World;
  wording: Wording;
  /** The record's field that users name. */
  named: string;
  families: Family[];
  cycle: Member[][];
  /** messageHash() of messages that must not come up. */
  forbidden: string[];
}

const RECORDS = { fewest: 2, most: 6 };

export const startKnobs: Knobs = { records: [3, 4], lookalikes: 1 };

const between = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** After calibration: harder after `too_easy`, easier after `too_hard`, by what was judged. The same where they can't be turned any further. */
export function turn(knobs: Knobs, report: CalibrationReport): Knobs {
  const { successRate } = report.judged?.measures ?? report;
  const harder = report.verdict === 'too_little_contrast' ? successRate > 0.4 : report.verdict === 'too_easy';
  if (report.verdict === 'accepted') return knobs;
  const more = harder ? 1 : -1;
  const [fewest, most] = knobs.records;
  return {
    records: [
      between(fewest + more, RECORDS.fewest, RECORDS.most - 1),
      between(most + more, RECORDS.fewest + 1, RECORDS.most),
    ],
    lookalikes: between(knobs.lookalikes + more, 1, 2),
  };
}
