/**
 * What a generated module is a function of, its text, and how its knobs are turned from round to round. The text is the
 * parameters on the first line, the files of module/ in one scope, and its exports; it imports nothing.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { CalibrationReport } from '../../domain/calibration';
import { jsonText, type ToolSchema } from '../../domain/messages';
import type { Family, Member } from './families';
import type { Wording } from './wording';
import type { World } from './world';

const knobsSchema = z.object({
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
  tools: ToolSchema[];
  world: World;
  wording: Wording;
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

/** Each uses only those before it. */
const FILES = [
  'random',
  'validation',
  'text',
  'records',
  'members',
  'first-message',
  'accounts',
  'instances',
  'transitions',
  'reward',
  'solutions',
  'hint',
  'environment',
];
const FIRST_LINE = 'export const params = ';
/** `easier` is called by nobody: it went from the contract (docs/synthesis.md), and a module's bytes are the key of all that was trained on it. */
const LAST_LINE =
  'export const { describe, make, easier, start, step, reward, reference, solve, shortcuts, hint } = environmentOf(params);';

export function moduleSource(params: Params): string {
  return `${FIRST_LINE}${JSON.stringify(params)};\n${(fixedText ??= readFixedText())}${LAST_LINE}\n`;
}

/** The knobs that a generated module was made with; undefined for a module of somebody else, which a person may put in a generated one's place. */
export function knobsOf(source: string): Knobs | undefined {
  const line = source.slice(0, source.indexOf('\n'));
  if (!line.startsWith(FIRST_LINE)) return undefined;
  return jsonText.pipe(knobsSchema).safeParse(line.slice(FIRST_LINE.length, -1)).data;
}

let fixedText: string | undefined;

function readFixedText(): string {
  const texts = FILES.map((name) => readFileSync(join(__dirname, 'module', `${name}.js`), 'utf8'));
  return texts.map((text) => text.replace(/^import [^;]*;\n/gm, '').replace(/^export /gm, '')).join('\n');
}
