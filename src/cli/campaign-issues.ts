/** Turns the schema's complaints into sentences: which field, which value, what is allowed. */
import type { z } from 'zod';
import { knownFields } from './campaign-schema';
import { nearest } from './nearest';

type Issue = z.core.$ZodIssue;

/** One entry per wrong field; `path` leads to it in the file. */
export function describeIssue(issue: Issue, input: unknown): { path: PropertyKey[]; text: string }[] {
  if (issue.code === 'unrecognized_keys') {
    const known = knownFields(issue.path);
    return issue.keys.map((key) => {
      const path = [...issue.path, key];
      const guess = nearest(key, known);
      const advice = guess ? `did you mean '${guess}'?` : `allowed here: ${known.join(', ')}`;
      return { path, text: `unknown field '${dotted(path)}'; ${advice}` };
    });
  }
  const value = valueAt(input, issue.path);
  const name = dotted(issue.path) || 'the file';
  const text =
    value === undefined
      ? `${name} is missing; it must be ${allowed(issue)}`
      : `${name} is ${JSON.stringify(value)}; it must be ${allowed(issue)}${guessFor(issue, value)}`;
  return [{ path: [...issue.path], text }];
}

function allowed(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      return issue.expected === 'int'
        ? 'a whole number'
        : `${/^[aeiou]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`;
    case 'invalid_value':
      return `${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return `${unit(issue.origin)}${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`;
    case 'too_big':
      return `${unit(issue.origin)}${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`;
    case 'invalid_format':
      return issue.format === 'url' ? 'a URL such as http://127.0.0.1:8000' : issue.message;
    case 'invalid_union':
      return 'options' in issue && Array.isArray(issue.options) ? `one of ${issue.options.join(', ')}` : issue.message;
    default:
      return issue.message;
  }
}

/** A list's bounds count its entries. */
const unit = (origin: string): string => (origin === 'array' ? 'a list with ' : '');

function guessFor(issue: Issue, value: unknown): string {
  if (typeof value !== 'string') return '';
  const options =
    issue.code === 'invalid_value'
      ? issue.values
      : issue.code === 'invalid_union' && 'options' in issue
        ? issue.options
        : [];
  const guess = nearest(value, (options as unknown[]).map(String));
  return guess ? `; did you mean '${guess}'?` : '';
}

const valueAt = (input: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], input);

const dotted = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text ? `${text}.${String(key)}` : String(key)),
    '',
  );
