/**
 * Rollouts kept as fixtures: a folder with `description.json` (the environment) and JSONL files of scored rollouts. Invariant: a prompt that is
 * built from them is the same bytes on every machine.
 */
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { environmentDescriptionSchema, type EnvironmentDescription } from '../../src/domain/environment';
import { rolloutSchema, type ScoredRollout } from '../../src/domain/rollout';

export const fixtures = resolve(__dirname, '..', 'fixtures');

/** Fields that are left out of a line: they are the same everywhere, or analysts do not read them. */
const unkept = { status: 'scored', rows: [], usage: { promptTokens: 0, completionTokens: 0 }, seconds: 0 } as const;
/** In place of the first message where it is the environment's policy: it would be most of the file. */
const POLICY = 'the policy of description.json';

export interface FixtureRollouts {
  description: EnvironmentDescription;
  rollouts: ScoredRollout[];
}

/** `name`: the file's path in test/fixtures without its ending, e.g. `shop-rollouts/base`. */
export function readFixtureRollouts(name: string): FixtureRollouts {
  const { system, ...description } = readDescription(resolve(fixtures, name, '..'));
  const opening = { role: 'system' as const, content: system ?? description.policy };
  const lines = readFileSync(join(fixtures, `${name}.jsonl`), 'utf8')
    .trimEnd()
    .split('\n');
  const rollouts = lines.map((line, n) => {
    const rollout = rolloutSchema.parse({ ...unkept, ...z.looseObject({}).parse(JSON.parse(line)) });
    if (rollout.status !== 'scored') throw new Error(`${name}.jsonl, line ${n + 1}: not a scored rollout`);
    const [first, ...rest] = rollout.messages;
    if (first?.content !== POLICY) return rollout;
    return { ...rollout, messages: [opening, ...rest] };
  });
  return { description, rollouts };
}

/** `system`: the system message where it is not the policy alone. */
const fileSchema = environmentDescriptionSchema.extend({ system: z.string().optional() });
type DescriptionFile = z.infer<typeof fileSchema>;

const readDescription = (folder: string): DescriptionFile =>
  fileSchema.parse(JSON.parse(readFileSync(join(folder, 'description.json'), 'utf8')));
