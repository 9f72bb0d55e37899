/** Errors that a user can act on: the first line names the cause and the fix, further lines are evidence (a log's tail). */
import { distance } from 'fastest-levenshtein';
import { plainText } from '../domain/plain-text';

export class UserError extends Error {
  override name = 'UserError';
  constructor(
    message: string,
    /** Lines that back the message up: the end of a log, further problems of the same kind. */
    readonly evidence: readonly string[] = [],
  ) {
    super(message);
  }
}

/** The message of whatever was thrown, on one line. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return plainText(text)
    .replace(/\s*\n\s*/g, ' ')
    .trim();
}

/** What a failed command writes to stderr; the stack is for --debug only. */
export function renderError(error: unknown, debug: boolean): string {
  const lines = [`campaign: ${messageOf(error)}`];
  if (error instanceof UserError) lines.push(...error.evidence.map((line) => `  ${plainText(line)}`));
  if (debug && error instanceof Error && error.stack) lines.push(plainText(error.stack));
  return lines.join('\n');
}

/** The known word that begins with a mistyped one, else the one within a third of its length (at least 2 edits), or undefined. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const lower = word.toLowerCase();
  const longer = known.find((candidate) => word.length > 2 && candidate.startsWith(lower));
  if (longer !== undefined) return longer;
  const ranked = known
    .map((candidate) => ({ candidate, edits: distance(lower, candidate.toLowerCase()) }))
    .sort((a, b) => a.edits - b.edits || a.candidate.localeCompare(b.candidate));
  return ranked[0] && ranked[0].edits <= Math.max(2, Math.floor(word.length / 3)) ? ranked[0].candidate : undefined;
}
