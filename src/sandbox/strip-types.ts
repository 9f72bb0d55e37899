/**
 * TypeScript to JavaScript by leaving types out. Line and column of everything else stay as they were, nothing is run, and a text that
 * crashes the parser does not harm the next one.
 */
import { createRequire } from 'node:module';

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
