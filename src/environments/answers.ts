/**
 * One line of an environment's stdout. Invariant: what is handed on is a JSON-RPC response of bounded depth; of any other line it is said
 * what is wrong, and which request it was to answer where that can be seen.
 */
import type { z } from 'zod';
import { responseSchema } from './protocol';
import { quoted } from './trouble';

export type Answer =
  { id: number; response: z.infer<typeof responseSchema> } | { id: number | undefined; problem: string; fix: string };

/** No schema or argument of a tool is nested so deep; what is deeper overflows the stack of whoever walks through it. */
const MAX_DEPTH = 100;
const STDOUT = 'stdout is for the protocol, logs go to stderr';

export function readAnswer(line: string): Answer {
  const wrong = (problem: string, fix = STDOUT): Answer => ({ id: idIn(line), problem, fix });
  if (isTooDeep(line)) return wrong(`the answer is nested deeper than ${MAX_DEPTH}`, 'send plain records');
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    const fix = /\b(NaN|Infinity)\b/.test(line) ? 'NaN and Infinity are no JSON: send finite numbers' : STDOUT;
    return wrong(`wrote a line that is not JSON: ${quoted(line, 200)}`, fix);
  }
  const { success, data: response } = responseSchema.safeParse(value);
  return success ? { id: Number(response.id), response } : wrong(`wrote no JSON-RPC response: ${quoted(line, 200)}`);
}

/** The request that a line answers, if it is meant to be an answer at all. */
export function idIn(line: string): number | undefined {
  if (!line.startsWith('{')) return undefined;
  const ends = `${line.slice(0, 200)} ${line.slice(-200)}`;
  const id = ends.includes('"jsonrpc"') ? /"id"\s*:\s*(\d+)/.exec(ends)?.[1] : undefined;
  return id === undefined ? undefined : Number(id);
}

/** Counts brackets outside of strings: nothing is built of a line that is too deep. */
function isTooDeep(line: string): boolean {
  let depth = 0;
  let inString = false;
  for (let n = 0; n < line.length; n++) {
    const code = line.charCodeAt(n);
    if (inString) {
      if (code === 92 /* \ */) n++;
      else if (code === 34 /* " */) inString = false;
    } else if (code === 34) inString = true;
    else if (code === 91 /* [ */ || code === 123 /* { */) {
      if (++depth > MAX_DEPTH) return true;
    } else if (code === 93 || code === 125) depth--;
  }
  return false;
}
