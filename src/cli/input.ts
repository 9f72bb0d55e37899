/** Reads and checks inputs. Each problem has the field, its value and what is expected, in zod's words where it has some. */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { parse, YAMLParseError } from 'yaml';
import { z } from 'zod';
import { hasCredentials } from '../domain/endpoints';
import { findHalfCharacter, HALF_CHARACTER_PROBLEM } from '../domain/plain-text';
import { InputError, messageOf, nearest, type Problem } from './errors';

export interface FieldProblem extends Problem {
  /** Leads to the field in the file. */
  path: PropertyKey[];
}

type Parsed<Data> = { data: Data; problems?: never } | { data?: never; problems: [FieldProblem, ...FieldProblem[]] };

/** What the schema makes of fields, or one problem for each wrong field. */
export function parseFields<Data>(schema: z.ZodType<Data>, fields: unknown): Parsed<Data> {
  const { data, error } = schema.safeParse(fields, { error: expectedText });
  if (!error) return { data: data as Data };
  const [first, ...others] = error.issues.flatMap((issue) => problemsOf(issue, fields));
  return { problems: [first!, ...others] };
}

/** Throws where the file is not UTF-8: its characters would silently become U+FFFD. */
export function readText(file: string): string {
  const body = readFileSync(file);
  if (!isUtf8(body)) throw new Error('it is not UTF-8; save it as UTF-8');
  return body.toString('utf8');
}

/** Parses a YAML or JSON file. `named`: its name in messages; `fix`: its form. @throws InputError with all problems. */
export function readInput<Data>(o: { file: string; named?: string; schema: z.ZodType<Data>; fix: string }): Data {
  const { file, named = file, schema, fix } = o;
  let fields: unknown;
  try {
    fields = parse(readText(file));
  } catch (error) {
    const cause = error instanceof YAMLParseError ? 'is not YAML' : 'cannot be read';
    throw new InputError({
      code: 'unreadable_file',
      field: named,
      value: file,
      reason: `${cause}: ${messageOf(error)}`,
    });
  }
  const half = findHalfCharacter(fields);
  if (half)
    throw new InputError({
      code: 'invalid_value',
      field: dotted(half),
      reason: HALF_CHARACTER_PROBLEM,
      where: `${named}:`,
    });
  const { data, problems } = parseFields(schema, fields);
  if (!problems) return data;
  const [first, ...others] = problems.map((problem) => ({ ...problem, where: `${named}:` }));
  throw new InputError({ ...first!, fix: [first!.fix, fix].join('; ') }, ...others);
}

/** What zod calls otherwise. */
const KINDS: Record<string, string> = {
  array: 'a list',
  object: 'an object',
  record: 'an object',
  string: 'a string',
  number: 'a number',
};

/** What zod does not explain in its own words; of unknown fields a line each. */
const expectedText: z.core.$ZodErrorMap = (issue) => {
  const { input } = issue;
  if (issue.code === 'unrecognized_keys') {
    const { shape = {} } = (issue.inst as Partial<z.ZodObject> | undefined) ?? {};
    const known = Object.keys(shape);
    const guesses = issue.keys.map((key) => nearest(key, known));
    return guesses.map((one) => (one ? `did you mean '${one}'?` : `allowed here: ${known.join(', ')}`)).join('\n');
  }
  if (issue.code === 'invalid_union') {
    const choices = choicesOf(issue as object);
    return `${choices.length > 1 ? 'one of ' : ''}${choices.join(', ')}`;
  }
  if (issue.code === 'invalid_format' && issue.format === 'url') return 'a URL such as http://127.0.0.1:8000';
  if (issue.code !== 'invalid_type') return undefined;
  if (input === undefined) {
    const about = (issue.inst as z.ZodType | undefined)?.description?.replace(/\.$/, '');
    return [`write ${KINDS[issue.expected] ?? issue.expected}`, about].filter(Boolean).join(': ');
  }
  if (typeof input !== 'string') return undefined;
  if (issue.expected === 'array') return `a list, such as [${input.trim().split(/\s+/).join(', ')}]`;
  const { inst } = issue as { inst?: z.core.$ZodType };
  const kinds = choicesOf({ values: [...(inst?._zod.propValues?.['kind'] ?? [])] });
  return kinds[0] === undefined ? undefined : `an object, such as { kind: ${nearest(input, kinds) ?? kinds[0]} }`;
};

/** Words that are allowed. A part's default kind may be left out, which a union holds as undefined. */
const choicesOf = ({ values, options = values ?? [] }: { values?: unknown; options?: unknown }): string[] =>
  (options as unknown[]).filter((one) => one !== undefined).map(String);

/** `Too big: expected number to be <=1`, without what it was: that is said before it. */
const ZODS = /^(?:Invalid \w+|Too big|Too small): (expected .*?)(?:, received .*)?$/;

function problemsOf(issue: z.core.$ZodIssue, fields: unknown): FieldProblem[] {
  const { path, message } = issue;
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key, n) => {
      const at = [...path, key];
      return { code: 'unknown_field', path: at, field: dotted(at), fix: message.split('\n')[n] };
    });
  const value = path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], fields);
  const isTold = value === undefined && message.startsWith('write ');
  const expected = isTold ? message : (ZODS.exec(message)?.[1] ?? `it must be ${message}`);
  const guess = typeof value === 'string' ? nearest(value, choicesOf(issue as object)) : undefined;
  const hint = guess === undefined ? '' : `; did you mean '${guess}'?`;
  const problem = { path: [...path], field: dotted(path) || 'the file', fix: `${expected}${hint}` };
  if (value === undefined) return [{ code: 'missing_field', ...problem }];
  return [{ code: 'invalid_value', value: shown(value, path.at(-1)), ...problem }];
}

/** As it stands in the file, but for what is or may be a key. */
function shown(value: unknown, name: PropertyKey = ''): string {
  const hidden = (field: PropertyKey, text: unknown) =>
    typeof text === 'string' && (field === 'apiKeyEnv' || hasCredentials(text)) ? '(not shown)' : text;
  const own = hidden(name, value);
  return own === value ? JSON.stringify(value, hidden) : String(own);
}

/** `arms[1].kind`. */
export const dotted = (path: readonly PropertyKey[], index = (n: number): string => `[${n}]`): string =>
  path
    .map((key) => (typeof key === 'number' ? index(key) : `.${String(key)}`))
    .join('')
    .replace(/^\./, '');
