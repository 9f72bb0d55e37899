/**
 * What is wrong with a campaign file, as sentences: which field, which value, what is allowed; and what earlier versions could say.
 */
import type { z } from 'zod';
import { hasCredentials } from '../domain/endpoints';
import { type JsonSchemaNode, nodesAt } from './campaign-schema';
import { nearest } from './nearest';

type Issue = z.core.$ZodIssue;

/** One entry per wrong field of the file; `path` leads to it there. `schema` is the JSON schema of what raised the issue. */
export function describeIssue(o: {
  issue: Issue;
  file: unknown;
  schema: JsonSchemaNode;
}): { path: PropertyKey[]; text: string }[] {
  const { issue, file, schema } = o;
  const nodes = nodesAt(schema, issue.path, file);
  if (issue.code === 'unrecognized_keys') {
    const known = [...new Set(nodes.flatMap(({ properties = {} }) => Object.keys(properties)))];
    return issue.keys.map((key) => {
      const path = [...issue.path, key];
      const guess = nearest(key, known);
      const advice = guess ? `did you mean '${guess}'?` : `allowed here: ${known.join(', ')}`;
      return { path, text: `unknown field '${dotted(path)}'; ${advice}` };
    });
  }
  const value = valueAt(file, issue.path);
  const name = dotted(issue.path) || 'the file';
  const text =
    value === undefined
      ? `${name} is missing; it must be ${allowed(issue)}`
      : `${name} is ${shown(value, issue.path.at(-1))}; it must be ${allowed(issue)}${guessFor(issue, value)}${formOf({ issue, value, nodes })}`;
  return [{ path: [...issue.path], text }];
}

/** As it stands in the file, but for what is or may be a key. */
function shown(value: unknown, name: PropertyKey = ''): string {
  const isKey = (field: PropertyKey, text: unknown) =>
    typeof text === 'string' && (field === 'apiKeyEnv' || hasCredentials(text));
  if (isKey(name, value)) return '(not shown)';
  return JSON.stringify(value, (field, text: unknown) => (isKey(field, text) ? '(not shown)' : text));
}

function allowed(issue: Issue): string {
  switch (issue.code) {
    case 'invalid_type':
      if (issue.expected === 'int') return 'a whole number';
      if (issue.expected === 'array') return 'a list';
      return `${/^[aeiou]/.test(issue.expected) ? 'an' : 'a'} ${issue.expected}`;
    case 'invalid_value':
      return `${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return `${unit(issue.origin)}${issue.inclusive === false ? 'more than' : 'at least'} ${issue.minimum}`;
    case 'too_big':
      return `${unit(issue.origin)}${issue.inclusive === false ? 'less than' : 'at most'} ${issue.maximum}`;
    case 'invalid_format':
      return issue.format === 'url' ? 'a URL such as http://127.0.0.1:8000' : issue.message;
    case 'invalid_union': {
      const kinds = optionsOf(issue);
      return kinds.length > 0 ? `${kinds.length > 1 ? 'one of ' : ''}${kinds.join(', ')}` : issue.message;
    }
    default:
      return issue.message;
  }
}

/** A list's bounds count its entries. */
const unit = (origin: string): string => (origin === 'array' ? 'a list with ' : '');

function guessFor(issue: Issue, value: unknown): string {
  if (typeof value !== 'string') return '';
  const guess = nearest(value, optionsOf(issue));
  return guess ? `; did you mean '${guess}'?` : '';
}

/** The words that are allowed, where they can be counted. */
function optionsOf(issue: Issue): string[] {
  if (issue.code === 'invalid_value') return issue.values.map(String);
  const { options } = issue as { options?: unknown[] };
  // A part's default kind may be left out, which the union holds as undefined.
  return issue.code === 'invalid_union' ? (options ?? []).filter((one) => one !== undefined).map(String) : [];
}

/** How to write a list that was given as its only entry or as words, and a part that was given as its kind alone. */
function formOf(o: { issue: Issue; value: unknown; nodes: readonly JsonSchemaNode[] }): string {
  const { issue, value, nodes } = o;
  if (issue.code === 'invalid_type' && issue.expected === 'array' && typeof value === 'string')
    return `, such as [${value.trim().split(/\s+/).join(', ')}]`;
  const kinds = nodes.flatMap(({ properties }) => properties?.['kind']?.const ?? []).map(String);
  if (issue.code !== 'invalid_type' || issue.expected !== 'object' || !kinds[0]) return '';
  const given = typeof value === 'string' ? nearest(value, kinds) : undefined;
  return `, such as { kind: ${given ?? kinds[0]} }`;
}

const valueAt = (input: unknown, path: readonly PropertyKey[]): unknown =>
  path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], input);

const dotted = (path: readonly PropertyKey[]): string =>
  path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text ? `${text}.${String(key)}` : String(key)),
    '',
  );

const UNPAID = 'measured without benefit';

/** Paths as in messages, `[]` for any entry of a list; with `value`, one value of the field alone. */
export const removed: readonly { path: string; value?: string; why: string }[] = [
  { path: 'arms[].kind', value: 'distill', why: `${UNPAID} (docs/decisions.md)` },
  { path: 'arms[].kind', value: 'trace_then_target', why: `${UNPAID} (docs/decisions.md)` },
  {
    path: 'arms[].kind',
    value: 'trace_then_joint',
    why: 'composites.share does the same (docs/decisions.md)',
  },
  { path: 'router.labels', why: 'it is a kind of its own, router.kind: label_tokens' },
  { path: 'router.moeGates', why: 'there is one gate, and it is a kind of its own, router.kind: moe_gate' },
  { path: 'router.learnedWeights', why: `${UNPAID} (docs/decisions.md)` },
  { path: 'calibration.easierShare', why: 'no environment was ever accepted with them (docs/decisions.md)' },
  {
    path: 'composites.environment',
    why: '`mixed` is what there is; `written` paid nothing (docs/decisions.md)',
  },
  { path: 'evaluation.plainRequests', why: 'no policy ever collapsed (docs/decisions.md)' },
];

/** One entry per removed field, or value of a field, in what a file says. */
export function findRemoved(file: unknown, path: PropertyKey[] = []): { path: PropertyKey[]; text: string }[] {
  if (typeof file === 'object' && file !== null)
    return Object.entries(file).flatMap(([key, value]) => {
      const here = [...path, Array.isArray(file) ? Number(key) : key];
      return [...describe(here, value), ...findRemoved(value, here)];
    });
  return [];
}

function describe(path: PropertyKey[], value: unknown) {
  const name = (index: (n: number) => string) =>
    path
      .map((key) => (typeof key === 'number' ? index(key) : `.${String(key)}`))
      .join('')
      .slice(1);
  const found = removed.find((one) => one.path === name(() => '[]') && (one.value ?? value) === value);
  if (!found) return [];
  const what = name((n) => `[${n}]`) + (found.value === undefined ? '' : ` ${found.value}`);
  const fix = path[0] === 'arms' ? 'delete the arm' : 'delete the line';
  return [{ path, text: `${what}: removed in 0.2: ${found.why}; ${fix}` }];
}
