/** Newline-delimited text over a stream. Invariant: only whole lines are handed on, and a character is never cut in two. */
import type { Readable } from 'node:stream';

/** Calls `onLine` for every non-empty line; an unfinished last line is dropped. */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = '';
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const line of lines) if (line.trim() !== '') onLine(line);
  });
}
