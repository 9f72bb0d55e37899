/**
 * Text from a process that may write anything. Invariants: only whole lines are handed on, and a character is never cut in two; time is
 * linear in what is written and memory bounded, whatever it is.
 */
import type { Readable } from 'node:stream';

/**
 * Characters of one line. The largest honest one is the list of a large benchmark's tasks: 100,000 of them take about 10 MB. JSON of this
 * size is read in a fraction of a second, so that no line holds up a worker's heartbeats.
 */
export const MAX_LINE = 16 * 1024 * 1024;

export interface LineReader {
  /** Every non-empty line; an unfinished last line is dropped. */
  onLine: (line: string) => void;
  /** In place of a line that is too long: how it begins. What follows up to the next line is dropped. */
  onTooLong: (beginning: string) => void;
  max?: number;
}

const BEGINNING = 1_000;

export function readLines(stream: Readable, { onLine, onTooLong, max = MAX_LINE }: LineReader): void {
  let pieces: string[] = [];
  let length = 0;
  let skipping = false;

  function take(piece: string): void {
    if (skipping) return;
    length += piece.length;
    pieces.push(piece);
    if (length <= max) return;
    skipping = true;
    const beginning = pieces.join('').slice(0, BEGINNING);
    pieces = [];
    onTooLong(beginning);
  }

  function finish(): void {
    const line = pieces.join('');
    [pieces, length, skipping] = [[], 0, false];
    if (line.trim() !== '') onLine(line);
  }

  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    let start = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', start)) {
      take(chunk.slice(start, end));
      finish();
      start = end + 1;
    }
    if (start < chunk.length) take(chunk.slice(start));
  });
}

/** Keeps the last `length` characters that are written; the function returned gives them. */
export function keepTail(stream: Readable, length: number): () => string {
  let tail = '';
  let written = 0;
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    written += chunk.length;
    tail = (tail + chunk).slice(-length);
  });
  return () => (written > length ? `... ${tail.trim()}` : tail.trim());
}
