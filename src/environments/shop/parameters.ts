/**
 * What a campaign file may set of the shop. Invariant: all of it is in the version: what was made for fewer test tasks may hold the text of one
 * of the others. A larger count adds tasks after those that are there.
 */
import { z } from 'zod';

const MOST_TASKS = 10_000;

/** How many tasks each split has: larger counts add tasks after those that are there. */
export const taskCounts = {
  trainTasks: z.number().int().min(2).max(MOST_TASKS).default(400),
  testTasks: z.number().int().min(1).max(MOST_TASKS).default(200),
};

export const shopParameters = {
  /** Most things that one conversation asks for. */
  requests: z.number().int().min(1).max(3).default(2),
  /** Share of the tasks that need several skills. */
  several: z.number().min(0).max(1).default(0.5),
  ...taskCounts,
};

const parametersSchema = z.strictObject(shopParameters);
export type ShopParameters = z.infer<typeof parametersSchema>;

/** What the tasks are drawn by. */
export type TaskSetting = Pick<ShopParameters, 'requests' | 'several'>;

/** Parameters that are not given have their defaults. Throws a ZodError that names a wrong one. */
export const completeParameters = (given: Partial<ShopParameters> = {}): ShopParameters =>
  parametersSchema.parse(given);

/** With what differs from the defaults. */
export function versionOf(setting: ShopParameters): string {
  const defaults = completeParameters();
  const names = Object.keys(shopParameters) as (keyof ShopParameters)[];
  const changed = names.flatMap((name) => (setting[name] === defaults[name] ? [] : [`${name} ${setting[name]}`]));
  return changed.length === 0 ? '1' : `1 (${changed.join(', ')})`;
}
