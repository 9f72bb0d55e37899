/**
 * What a campaign file may set of the shop. Invariant: `requests` and `several` decide what the tasks are, the counts only how many of them
 * there are; so a larger count adds tasks after those that are there, and rollouts of these stay known.
 */
import { z } from 'zod';

const MOST_TASKS = 10_000;

export const shopParameters = {
  /** Most things that one conversation asks for. */
  requests: z.number().int().min(1).max(3).default(2),
  /** Share of the tasks that need several skills. */
  several: z.number().min(0).max(1).default(0.5),
  trainTasks: z.number().int().min(2).max(MOST_TASKS).default(400),
  testTasks: z.number().int().min(1).max(MOST_TASKS).default(200),
};

const parametersSchema = z.strictObject(shopParameters);
export type ShopParameters = z.infer<typeof parametersSchema>;

/** What the tasks are drawn by. */
export type TaskSetting = Pick<ShopParameters, 'requests' | 'several'>;

/** Parameters that are not given have their defaults. Throws a ZodError that names a wrong one. */
export const completeParameters = (given: Partial<ShopParameters> = {}): ShopParameters =>
  parametersSchema.parse(given);

/** With what another setting than the default makes of the tasks. */
export function versionOf(setting: TaskSetting): string {
  const { requests, several } = completeParameters();
  const changed = [
    ...(setting.requests === requests ? [] : [`requests ${setting.requests}`]),
    ...(setting.several === several ? [] : [`several ${setting.several}`]),
  ];
  return changed.length === 0 ? '1' : `1 (${changed.join(', ')})`;
}
