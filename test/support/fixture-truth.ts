/** What was planted in the rollouts of a fixture: for evaluation only, never for an analyst. */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { fixtures } from './fixture-rollouts';

const truthSchema = z.record(
  z.string(),
  z.strictObject({
    /** Who played. */
    made: z.string(),
    /** Skills that the agent lacks, each to be found. */
    planted: z.array(z.string()).min(1),
    /** By rollout (`task attempt`), where it is known: the mistake that was made, and the skills that the agent showed before. */
    rollouts: z
      .record(z.string(), z.strictObject({ mistake: z.string().nullable(), shown: z.array(z.string()) }))
      .optional(),
  }),
);
export type Truth = z.infer<typeof truthSchema>[string];

const fileOf = (name: string): string => resolve(fixtures, name, '..', 'truth.json');
const stem = (name: string): string => name.split('/').at(-1)!;
const read = (name: string) =>
  existsSync(fileOf(name)) ? truthSchema.parse(JSON.parse(readFileSync(fileOf(name), 'utf8'))) : {};

/** `name` as in readFixtureRollouts(). */
export function readTruth(name: string): Truth {
  const truth = read(name)[stem(name)];
  if (!truth) throw new Error(`${fileOf(name)} holds nothing of "${stem(name)}": make the fixture anew`);
  return truth;
}
