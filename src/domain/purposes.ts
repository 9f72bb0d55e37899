/** What rollouts are made for: the rows by which they are counted in plans and reports. */
import { z } from 'zod';

export const purposes = ['base_rollouts', 'calibration', 'training', 'held_out', 'outcome_matrix', 'test'] as const;
export const purposeSchema = z.enum(purposes);
export type Purpose = z.infer<typeof purposeSchema>;

/** For people. */
export const purposeNames: Record<Purpose, string> = {
  base_rollouts: 'base rollouts',
  calibration: 'calibration',
  training: 'training',
  held_out: 'held-out evaluation',
  outcome_matrix: 'router outcome matrix',
  test: 'test',
};
