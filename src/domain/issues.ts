/** Describes why a value does not fit its schema in one line: the field, the expected type, and the value. */
import type { z } from 'zod';

type Issue = z.core.$ZodIssue;

const SHOWN = 120;

/** Returns the first issue, such as field `breakdown.db` and problem `Invalid input: expected number, received null`. */
export function describeIssue({ issues: [first] }: z.ZodError, value: unknown): { field: string; problem: string } {
  if (!first) return { field: '', problem: '' };
  const { path, message } = innermost(first, value);
  const found = valueAt(value, path);
  const received = found === undefined ? 'and it is missing' : `received ${shown(found)}`;
  return { field: path.join('.'), problem: `${message.replace(/, received [^,]*$/, '')}, ${received}` };
}

export function firstIssue(error: z.ZodError, value: unknown): string {
  const { field, problem } = describeIssue(error, value);
  return [field, problem].filter(Boolean).join(': ');
}

/** A union says only that no option fits: the option that fits the value furthest says why. */
function innermost(issue: Issue, value: unknown): Issue {
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return issue;
  const here = valueAt(value, issue.path);
  const depth = (option: readonly Issue[]) => Math.max(...option.map(({ path }) => presentDepth(here, path)));
  const [nearest] = issue.errors.reduce((best, option) => (depth(option) > depth(best) ? option : best));
  if (!nearest) return issue;
  const inner = innermost(nearest, here);
  return { ...inner, path: [...issue.path, ...inner.path] };
}

function presentDepth(value: unknown, path: readonly PropertyKey[]): number {
  const missing = path.findIndex((_, n) => valueAt(value, path.slice(0, n + 1)) === undefined);
  return missing < 0 ? path.length : missing;
}

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | null | undefined)?.[key], value);

function shown(value: unknown): string {
  const text = typeof value === 'number' ? String(value) : (JSON.stringify(value) ?? String(value));
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}... (${text.length} characters)` : text;
}
