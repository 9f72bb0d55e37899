/**
 * The text of a generated module: its parameters on the first line, then the files of module/ in one scope, then its exports. Invariant:
 * the text is a function of the parameters; it imports nothing.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { jsonText } from '../../domain/messages';
import { knobsSchema, type Knobs, type Params } from './params';

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
