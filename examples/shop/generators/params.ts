/**
 * The parameters of a generated module, its text, and the change of its knobs between rounds. The text is the parameters
 * on the first line, the files of module/ in one scope, and its exports; it imports nothing.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Action, type CalibrationReport, jsonText, type ToolSchema, z } from 'trace-campaign/plugin';
import type { Plan } from './capabilities';
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
  plans: Record<'special' | 'twin', Plan>;
  /** Tools that the user's requests are for. */
  requested: string[];
  /** messageHash() of messages that must not come up. */
  forbidden: string[];
}

export type Values = Record<string, string | number>;

export interface Request {
  write: string;
  said: Values;
  /** The record that it acts on, and a similar record; null if there is none. */
  record: Values | null;
  lookalike: Values | null;
}

/** An instance in a generated module, which is also its episode's state: a step changes nothing above `made`. */
export interface Instance {
  seed: number;
  /** Needs the capability; its twin does not. */
  special: boolean;
  key: string | number;
  /** The agent has received the key. */
  known: boolean;
  requests: [Request, ...Request[]];
  records: Values[];
  wanted: Action[];
  amount: string | number | null;
  first: string;

  made: Action[];
  /** Names of records that a write was made on: a look-up no longer lists them. */
  settled: string[];
  texts: string[];
  looked: boolean;
  /** A look-up was tried before the key was known. */
  invented: boolean;
  asked: boolean;
  done: boolean;
}

export const startKnobs: Knobs = { records: [3, 4], lookalikes: 1 };

const between = (value: number, low: number, high: number): number => Math.min(high, Math.max(low, value));

/** After calibration: harder after `too_easy`, easier after `too_hard`, by what was judged. The same where they can't be turned any further. */
export function turn(knobs: Knobs, report: CalibrationReport): Knobs {
  const { successRate } = report.judged?.measures ?? report;
  const harder = report.verdict === 'too_little_contrast' ? successRate > 0.4 : report.verdict === 'too_easy';
  if (report.verdict === 'accepted') return knobs;
  const more = harder ? 1 : -1;
  const [fewest, most] = knobs.records;
  const records: Knobs['records'] = [between(fewest + more, 2, 5), between(most + more, 3, 6)];
  return { records, lookalikes: between(knobs.lookalikes + more, 1, 2) };
}

/** Each uses only those before it. */
const FILES = ['random', 'text', 'records', 'accounts', 'instances', 'episodes', 'solutions', 'environment'];
const FIRST_LINE = 'export const params = ';
const LAST_LINE =
  'export const { describe, make, start, step, reward, reference, solve, shortcuts } = environmentOf(params);';

export function moduleSource(params: Params): string {
  return `${FIRST_LINE}${JSON.stringify(params)};\n${(fixedText ??= readFixedText())}${LAST_LINE}\n`;
}

/** The knobs that a generated module was made with; undefined for any other module, such as one that a person puts in its place. */
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
