/**
 * What changed from one version of a module to the next, by lines. Invariant: nothing in it moves a cursor or turns the direction of writing:
 * what it shows is what stands in the module.
 */
import { structuredPatch } from 'diff';
import { visible } from './format';

/** Unchanged lines around a change. */
const CONTEXT = 3;
/** Versions with more changed lines are not compared: it would take seconds, and nobody reads it. */
const MOST_CHANGES = 2000;
/** Characters of a line: generated modules hold their data on one. */
const LINE = 1000;

export interface Diff {
  added: number;
  removed: number;
  /** As of `diff -u`, without the names of files: `@@ -1,4 +1,5 @@`, then lines that begin with `+`, `-` or a space. */
  lines: string[];
}

/** Undefined where the versions have too little in common to be compared. */
export function diffOf({ before, after }: { before: string; after: string }): Diff | undefined {
  const options = { context: CONTEXT, maxEditLength: MOST_CHANGES };
  const patch = structuredPatch('', '', before, after, undefined, undefined, options);
  if (!patch) return undefined;
  const lines = patch.hunks.flatMap((hunk) => [
    `@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`,
    ...hunk.lines.map(shown),
  ]);
  const count = (sign: string): number =>
    patch.hunks.reduce((sum, hunk) => sum + hunk.lines.filter((line) => line.startsWith(sign)).length, 0);
  return { added: count('+'), removed: count('-'), lines };
}

const shown = (line: string): string =>
  visible(line.length > LINE ? `${line.slice(0, LINE)}… (${line.length - LINE} more characters)` : line);
