/** Errors that a user can act on: the first line names the cause and the fix, further lines are evidence (a log's tail). */
import { distance } from 'fastest-levenshtein';
import { OutsideFailure } from '../domain/failures';
import { plainText } from '../domain/plain-text';

/** Kind of the error, for programs. */
type ErrorCode =
  | 'unknown_field'
  | 'missing_field'
  | 'invalid_value'
  | 'bad_input'
  | 'removed_field'
  | 'unreadable_file'
  | 'invalid_argument'
  | 'missing_requirement'
  | 'port_in_use'
  | 'not_found'
  | 'name_taken'
  | 'home_in_use'
  | 'other_pool'
  | 'running'
  | 'not_running'
  | 'unavailable'
  | 'refused'
  | 'unwritable'
  | 'damaged'
  | 'failed'
  | 'aborted';

export class UserError extends Error {
  override name = 'UserError';
  constructor(
    readonly code: ErrorCode,
    /** The field, option or thing that it is about. */
    readonly field: string,
    /** Names the failed thing, its value and the fix. */
    message: string,
    /** Lines that back the message up: the end of a log, further problems of the same kind. */
    readonly evidence: readonly string[] = [],
  ) {
    super(message);
  }
}

/** One problem of an input: programs and tests read its fields, people its text. */
export interface Problem {
  code: ErrorCode;
  /** Path of the field, name of the option, or name of the requirement. */
  field: string;
  /** As in the input; absent for a missing field. Keys are not shown. */
  value?: string;
  /** The problem, if "FIELD is VALUE" does not say it. */
  reason?: string;
  fix?: string | undefined;
  /** FILE:LINE, or the option that names the file. */
  where?: string;
}

function problemText({ code, field, value = 'missing', reason = `is ${value}`, fix, where }: Problem): string {
  const what =
    code === 'unknown_field'
      ? `unknown field '${field}'`
      : code === 'missing_requirement'
        ? `${field}: ${value}`
        : `${field} ${reason}`;
  return [where, [what, fix].filter(Boolean).join('; ')].filter(Boolean).join(' ');
}

/** Problems of files, options and requirements. */
export class InputError extends UserError {
  readonly problems: readonly Problem[];

  /** `problems`: one at least. */
  constructor(...problems: Problem[]) {
    const [first, ...others] = problems;
    super(first!.code, first!.field, problemText(first!), others.map(problemText));
    this.problems = problems;
  }

  /** True if the command line or a file is wrong, false if the machine is. */
  get isUsage(): boolean {
    return !this.problems.some(({ code }) => code === 'missing_requirement' || code === 'port_in_use');
  }
}

/** A wrong value of an option. */
export const invalidOption = (field: string, value: string, fix: string): InputError =>
  new InputError({ code: 'invalid_argument', field, value, fix });

/** The message of whatever was thrown, on one line. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return plainText(text)
    .replace(/\s*\n\s*/g, ' ')
    .trim();
}

export const snakeCase = (name: string): string =>
  name.replace(/[A-Z]/g, (letter, at: number) => (at > 0 ? '_' : '') + letter.toLowerCase());

/** True if the command line or a file is wrong: the command exits with code 2. */
export const isUsage = (error: unknown): boolean =>
  error instanceof InputError
    ? error.isUsage
    : (error instanceof OutsideFailure && error.type === 'BadInput') ||
      (error instanceof UserError && error.code === 'bad_input');

/** Returns the stderr text of a failed command; the stack is included with --debug only. */
export function renderError(error: unknown, debug: boolean): string {
  const code = error instanceof OutsideFailure ? snakeCase(error.type) : error instanceof UserError && error.code;
  const lines = [`campaign: ${messageOf(error)}${code ? ` [${code}]` : ''}`];
  const others = error instanceof InputError ? error.problems.slice(1).map(({ code }) => ` [${code}]`) : [];
  if (error instanceof UserError)
    lines.push(...error.evidence.map((line, n) => `  ${plainText(line)}${others[n] ?? ''}`));
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
