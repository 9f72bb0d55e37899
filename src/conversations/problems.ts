/** What a schema complains of, in words: field, value, fix. */
import type { z } from 'zod';

const SHOWN = 60;

/** At most so many of one conversation: the rest follows from the first, or is like it. */
const PER_CONVERSATION = 3;

export function problemsIn({ error, value }: { error: z.ZodError; value: unknown }): string[] {
  return error.issues.slice(0, PER_CONVERSATION).map(({ path, message }) => {
    const found = valueAt(value, path);
    const field = dotted(path) || 'the line';
    return found === undefined
      ? `${field} is missing; it must be ${message}`
      : `${field} is ${shown(found)}; it must be ${message}`;
  });
}

/** A value as one short line. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

const valueAt = (value: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | null | undefined)?.[key], value);

const dotted = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text ? `${text}.${String(key)}` : String(key)),
    '',
  );
