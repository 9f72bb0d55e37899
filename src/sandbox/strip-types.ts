/**
 * TypeScript to JavaScript, by leaving types out. Invariants: what is left stands in the lines where it stood; nothing is run; a text that
 * breaks the parser breaks it for no other.
 */
import { createRequire } from 'node:module';
import { dirname, sep } from 'node:path';

const load = createRequire(__filename);
/** Brackets within brackets: the parser works by recursion. */
const MOST_NESTED = 200;

/** The text without its types; or what is wrong with it, and where. Enums and namespaces are more than types, and are refused. */
export function withoutTypes(source: string): { source: string } | { problem: string } {
  const deep = deepLineOf(source);
  if (deep !== undefined)
    return { problem: `SyntaxError in line ${deep}: brackets stand more than ${MOST_NESTED} deep: nest less` };
  try {
    const { transformSync } = load('amaro') as typeof import('amaro');
    return { source: transformSync(source, { mode: 'strip-only' }).code };
  } catch (error) {
    const { message, startLine } = error as { message?: string; startLine?: number };
    if (startLine === undefined) {
      forgetParser();
      return { problem: `SyntaxError: ${message ?? String(error)}` };
    }
    const line = source.split('\n')[startLine - 1]?.trim().slice(0, 200) ?? '';
    return { problem: `SyntaxError in line ${startLine} ("${line}"): ${message ?? ''}` };
  }
}

/** The first line in which too many brackets are open, those in texts and comments counted as well. */
function deepLineOf(source: string): number | undefined {
  let [depth, line] = [0, 1];
  for (const character of source)
    if (character === '\n') line += 1;
    else if ('([{'.includes(character)) {
      depth += 1;
      if (depth > MOST_NESTED) return line;
    } else if (')]}'.includes(character)) depth = Math.max(0, depth - 1);
  return undefined;
}

/** After an overflow or a panic its WebAssembly instance fails on every text: the next one is given a fresh one. */
function forgetParser(): void {
  const folder = dirname(load.resolve('amaro')) + sep;
  for (const file of Object.keys(load.cache)) if (file.startsWith(folder)) delete load.cache[file];
}
