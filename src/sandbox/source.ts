/**
 * A module's text before it runs: the files of a folder, what can be said of the code, and TypeScript to JavaScript.
 */
import { readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { checkFile } from '../domain/allowed';
import { OutsideFailure, reasonOf } from '../domain/failures';

export async function moduleFiles(folder: string, field?: string): Promise<string[]> {
  checkFile(field ?? 'modules', folder);
  const wrong = (problem: string) =>
    new OutsideFailure(
      'BadInput',
      `${field ? `${field}: ` : ''}${folder} ${problem}; name a folder of environment modules (docs/synthesis.md)`,
    );
  const names = await readdir(folder).catch((error: unknown) => {
    throw wrong(`cannot be read (${reasonOf(error)})`);
  });
  const files = names.filter((name) => name.endsWith('.js')).sort();
  if (files.length === 0) throw wrong('holds no .js file');
  return files;
}

/** As code writes them, without a space between: the words alone may stand in a policy's text ("the return process. Give the Date (ISO)"). */
const FORBIDDEN: readonly [construct: RegExp, name: string, fix: string][] = [
  [/^\s*import\s+(?:['"]|[\w*{][^\n]*\bfrom\s*['"])/, 'import', 'a module has no imports: write what you need into it'],
  [/\bimport\(/, 'import()', 'a module has no imports: write what you need into it'],
  [/\brequire\(/, 'require', 'a module has no imports: write what you need into it'],
  [/\bfetch\(/, 'fetch', 'there is no network: draw what you need from the seed'],
  [/\bprocess\.[a-z]/, 'process', 'there is no host to ask: leave it out'],
  [/\bMath\s*\.\s*random\b/, 'Math.random', 'draw everything from the seed, by a generator of your own'],
  [
    /\bnew\s+Date[(;]|\bDate(?:\.[a-zU]|\((?!s\)))/,
    'Date',
    'there is no clock: write dates as text and count days yourself',
  ],
  [/\bset(?:Timeout|Interval)\(/, 'a timer', 'nothing runs later: answer at once'],
  [/\beval\(|\bnew\s+Function\(/, 'eval', 'write the code itself'],
];

export function staticFindings(source: string): string[] {
  const lines = source.split('\n');
  return FORBIDDEN.flatMap(([construct, name, fix]) => {
    const at = lines.findIndex((line) => construct.test(line));
    return at < 0 ? [] : [`line ${at + 1} uses ${name}: ${fix}`];
  });
}

const PARSER = '@swc/wasm-typescript';
const load = createRequire(__filename);
/** The parser is recursive: brackets that are nested deeper could overflow its stack. */
const MOST_NESTED = 200;

/** What the parser throws for a text that it cannot take: with a place, unless it has crashed. */
interface ParserError {
  message?: string;
  startLine?: number;
}

/** Returns the text without its types, or what is wrong with it and where. Enums and namespaces are more than types and are refused. */
export function withoutTypes(source: string): { source: string } | { problem: string } {
  const deep = tooDeepLine(source);
  if (deep !== undefined)
    return { problem: `SyntaxError in line ${deep}: brackets stand more than ${MOST_NESTED} deep: nest less` };
  try {
    const { transformSync } = load(PARSER) as typeof import('@swc/wasm-typescript');
    return { source: transformSync(source, { mode: 'strip-only' }).code };
  } catch (error) {
    const { message, startLine } = error as ParserError;
    if (startLine === undefined) {
      // After an overflow or a panic the WebAssembly instance fails on every text: the next call loads a fresh one.
      delete load.cache[load.resolve(PARSER)];
      return { problem: `SyntaxError: ${message ?? String(error)}` };
    }
    const line = source.split('\n')[startLine - 1]?.trim().slice(0, 200) ?? '';
    return { problem: `SyntaxError in line ${startLine} ("${line}"): ${message ?? ''}` };
  }
}

/** The first line in which too many brackets are open. Brackets in texts and comments are counted as well. */
function tooDeepLine(source: string): number | undefined {
  let [depth, line] = [0, 1];
  for (const character of source)
    if (character === '\n') line += 1;
    else if ('([{'.includes(character)) {
      depth += 1;
      if (depth > MOST_NESTED) return line;
    } else if (')]}'.includes(character)) depth = Math.max(0, depth - 1);
  return undefined;
}
