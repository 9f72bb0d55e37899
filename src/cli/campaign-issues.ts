/**
 * What is wrong with fields of a file, as sentences: which field, which value, what is expected (zod's own words, and a fix where there is one); and
 * what earlier versions could say.
 */
import { z } from 'zod';
import { hasCredentials } from '../domain/endpoints';
import { nearest } from './errors';

/** `path` leads to the field in the file. */
interface Problem {
  path: PropertyKey[];
  text: string;
}

type Parsed<Data> = { data: Data; problems?: never } | { data?: never; problems: Problem[] };

/** What the schema makes of a file's fields, or one problem for each wrong field. */
export function parseFields<Data>(schema: z.ZodType<Data>, fields: unknown): Parsed<Data> {
  const { data, error } = schema.safeParse(fields, { error: fixOf });
  if (!error) return { data: data as Data };
  return { problems: error.issues.flatMap((issue) => problemsOf(issue, fields)) };
}

const list = (words: readonly unknown[]): string => `${words.length > 1 ? 'one of ' : ''}${words.join(', ')}`;

/** How to mend what zod does not explain; of unknown fields a line each. Undefined leaves zod's own words. */
const fixOf: z.core.$ZodErrorMap = (issue) => {
  const { input } = issue;
  if (issue.code === 'unrecognized_keys') {
    const { shape = {} } = (issue.inst as Partial<z.ZodObject> | undefined) ?? {};
    return issue.keys.map((key) => adviceOn(key, Object.keys(shape))).join('\n');
  }
  if (issue.code === 'invalid_union') return list(choicesOf(issue as object));
  if (issue.code === 'invalid_format' && issue.format === 'url') return 'a URL such as http://127.0.0.1:8000';
  if (issue.code !== 'invalid_type' || typeof input !== 'string') return undefined;
  if (issue.expected === 'array') return `a list, such as [${input.trim().split(/\s+/).join(', ')}]`;
  const { inst } = issue as { inst?: z.core.$ZodType };
  const kinds = choicesOf({ values: [...(inst?._zod.propValues?.['kind'] ?? [])] });
  return kinds[0] === undefined ? undefined : `an object, such as { kind: ${nearest(input, kinds) ?? kinds[0]} }`;
};

/** Words that are allowed. A part's default kind may be left out, which a union holds as undefined. */
const choicesOf = ({ values, options = values ?? [] }: { values?: unknown; options?: unknown }): string[] =>
  (options as unknown[]).filter((one) => one !== undefined).map(String);

const adviceOn = (key: string, known: readonly string[]): string => {
  const guess = nearest(key, known);
  return guess === undefined ? `allowed here: ${known.join(', ')}` : `did you mean '${guess}'?`;
};

/** `Too big: expected number to be <=1`, without what it was: that is said before it. */
const ZODS = /^(?:Invalid \w+|Too big|Too small): (expected .*?)(?:, received .*)?$/;

function problemsOf(issue: z.core.$ZodIssue, fields: unknown): Problem[] {
  const { path, message } = issue;
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key, n) => {
      const at = [...path, key];
      return { path: at, text: `unknown field '${dotted(at)}'; ${message.split('\n')[n]}` };
    });
  const value = path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], fields);
  const is = value === undefined ? 'missing' : shown(value, path.at(-1));
  const expected = ZODS.exec(message)?.[1] ?? `it must be ${message}`;
  const guess = typeof value === 'string' ? nearest(value, choicesOf(issue as object)) : undefined;
  const hint = guess === undefined ? '' : `; did you mean '${guess}'?`;
  return [{ path: [...path], text: `${dotted(path) || 'the file'} is ${is}; ${expected}${hint}` }];
}

/** As it stands in the file, but for what is or may be a key. */
function shown(value: unknown, name: PropertyKey = ''): string {
  const isKey = (field: PropertyKey, text: unknown) =>
    typeof text === 'string' && (field === 'apiKeyEnv' || hasCredentials(text));
  if (isKey(name, value)) return '(not shown)';
  return JSON.stringify(value, (field, text: unknown) => (isKey(field, text) ? '(not shown)' : text));
}

/** `arms[1].kind`. */
const dotted = (path: readonly PropertyKey[], index = (n: number): string => `[${n}]`): string =>
  path
    .map((key) => (typeof key === 'number' ? index(key) : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');

const UNPAID = 'measured without benefit';

/** Paths as in messages, `[]` for any entry of a list; with `value`, one value of the field alone. */
export const removed: readonly { path: string; value?: string; why: string }[] = [
  { path: 'arms[].kind', value: 'distill', why: `${UNPAID} (docs/decisions.md)` },
  { path: 'arms[].kind', value: 'trace_then_target', why: `${UNPAID} (docs/decisions.md)` },
  { path: 'arms[].kind', value: 'trace_then_joint', why: 'composites.share does the same (docs/decisions.md)' },
  { path: 'router.labels', why: 'it is a kind of its own, router.kind: label_tokens' },
  { path: 'router.moeGates', why: 'there is one gate, and it is a kind of its own, router.kind: moe_gate' },
  { path: 'router.learnedWeights', why: `${UNPAID} (docs/decisions.md)` },
  { path: 'calibration.easierShare', why: 'no environment was ever accepted with them (docs/decisions.md)' },
  { path: 'composites.environment', why: '`mixed` is what there is; `written` paid nothing (docs/decisions.md)' },
  { path: 'evaluation.plainRequests', why: 'no policy ever collapsed (docs/decisions.md)' },
];

/** One problem per removed field, or value of a field, in what a file says. */
export function findRemoved(fields: unknown, path: PropertyKey[] = []): Problem[] {
  if (typeof fields !== 'object' || fields === null) return [];
  return Object.entries(fields).flatMap(([key, value]) => {
    const here = [...path, Array.isArray(fields) ? Number(key) : key];
    const name = dotted(here, () => '[]');
    const gone = removed.find((one) => one.path === name && (one.value ?? value) === value);
    const what = [dotted(here), ...(gone?.value === undefined ? [] : [gone.value])].join(' ');
    const fix = here[0] === 'arms' ? 'delete the arm' : 'delete the line';
    return [
      ...(gone ? [{ path: here, text: `${what}: removed in 0.2: ${gone.why}; ${fix}` }] : []),
      ...findRemoved(value, here),
    ];
  });
}
