/** Reads and checks inputs. Each problem has the field, its value and what is expected, in zod's words where it has some. */
import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import type { z } from 'zod';
import { hasCredentials } from '../domain/endpoints';
import { InputError, messageOf, nearest, type Problem } from './errors';

export type Fields = Record<string, unknown>;

export interface FieldProblem extends Problem {
  /** Leads to the field in the file. */
  path: PropertyKey[];
}

/** Returns the fields as the schema reads them. @throws InputError with a problem for each wrong field, as `change` returns it. */
export function checkFields<Data>(
  schema: z.ZodType<Data>,
  fields: unknown,
  change = (problem: FieldProblem): Problem => problem,
): Data {
  const { data, error } = schema.safeParse(fields, { error: expectedText });
  if (!error) return data as Data;
  throw new InputError(...error.issues.flatMap((issue) => problemsOf(issue, fields)).map(change));
}

/** A YAML or JSON file of fields. Its problems have the lines of their fields. */
export class InputFile {
  readonly fields: Fields;
  private readonly document: Document;
  private readonly lines = new LineCounter();

  /** `what`: what the file is; `fix`: what to name instead. @throws InputError */
  constructor(
    private readonly file: string,
    what: string,
    fix: string,
  ) {
    const unreadable = (problem: string, line?: number) =>
      new InputError({
        ...{ code: 'unreadable_file', field: what, value: file, reason: `${file} ${problem}`, fix },
        ...(line !== undefined && { where: `${file}:${line}` }),
      });
    let body: Buffer;
    try {
      body = readFileSync(file);
    } catch (error) {
      throw unreadable(`cannot be read: ${messageOf(error)}`);
    }
    // Other bytes would silently become U+FFFD.
    if (!isUtf8(body)) throw unreadable('is not UTF-8: save it as UTF-8');
    this.document = parseDocument(body.toString('utf8'), { lineCounter: this.lines, prettyErrors: false });
    const [broken] = this.document.errors;
    if (broken) throw unreadable(`is not YAML: ${messageOf(broken)}`, this.lines.linePos(broken.pos[0]).line);
    if (!isMap(this.document.contents)) throw unreadable('has no fields', 1);
    this.fields = this.document.toJS() as Fields;
  }

  /** Returns the fields of the file as the schema reads them. @throws InputError with a problem for each wrong field. */
  check<Data>(schema: z.ZodType<Data>, fields: unknown = this.fields): Data {
    return checkFields(schema, fields, (problem) => this.withLine(problem));
  }

  refusal(...problems: FieldProblem[]): InputError {
    return new InputError(...problems.map((problem) => this.withLine(problem)));
  }

  /** Names the deepest part of the problem's path that the file holds. */
  private withLine(problem: FieldProblem): Problem {
    let offset = 0;
    let node: unknown = this.document.contents;
    for (const name of problem.path) {
      const pair = isMap(node) ? node.items.find(({ key }) => isScalar(key) && key.value === name) : undefined;
      node = pair ? pair.value : isSeq(node) ? node.items[Number(name)] : undefined;
      const { range } = (pair?.key ?? node ?? {}) as { range?: [number, number, number] };
      if (!range) break;
      [offset] = range;
    }
    return { ...problem, where: `${this.file}:${this.lines.linePos(offset).line}` };
  }
}

/** Replaces zod's messages that do not name the expected value; unknown fields get a line each. */
const expectedText: z.core.$ZodErrorMap = (issue) => {
  if (issue.code === 'unrecognized_keys') {
    const { shape = {} } = (issue.inst as Partial<z.ZodObject> | undefined) ?? {};
    const known = Object.keys(shape);
    const guesses = issue.keys.map((key) => nearest(key, known));
    return guesses.map((one) => (one ? `did you mean '${one}'?` : `allowed here: ${known.join(', ')}`)).join('\n');
  }
  if (issue.code === 'invalid_union') return `expected ${choicesOf(issue as object).join(' or ')}`;
  if (issue.code === 'invalid_format' && issue.format === 'url') return 'expected a URL such as http://127.0.0.1:8000';
  if (issue.code !== 'invalid_type' || issue.input !== undefined) return undefined;
  const about = (issue.inst as z.ZodType | undefined)?.description?.replace(/\.$/, '');
  return `expected ${issue.expected}${about === undefined ? '' : `: ${about}`}`;
};

/** Words that are allowed. A part's default kind may be left out, which a union holds as undefined. */
const choicesOf = ({ values, options = values ?? [] }: { values?: unknown; options?: unknown }): string[] =>
  (options as unknown[]).filter((one) => one !== undefined).map(String);

/** Finds the expectation in `Too big: expected number to be <=1`; the actual value is printed before it. */
const ZODS = /^(?:(?:Invalid \w+|Too big|Too small): )?(expected .*?)(?:, received .*)?$/;

function problemsOf(issue: z.core.$ZodIssue, fields: unknown): FieldProblem[] {
  const { path, message } = issue;
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key, n) => {
      const at = [...path, key];
      return { code: 'unknown_field', path: at, field: dotted(at), fix: message.split('\n')[n] };
    });
  const value = path.reduce<unknown>((at, key) => (at as Record<PropertyKey, unknown> | undefined)?.[key], fields);
  const expected = ZODS.exec(message)?.[1] ?? `it must be ${message}`;
  const guess = typeof value === 'string' ? nearest(value, choicesOf(issue as object)) : undefined;
  const hint = guess === undefined ? '' : `; did you mean '${guess}'?`;
  const problem = { path: [...path], field: dotted(path) || 'the file', fix: `${expected}${hint}` };
  if (value === undefined) return [{ code: 'missing_field', ...problem }];
  return [{ code: 'invalid_value', value: shown(value, path.at(-1)), ...problem }];
}

/** Formats a value as in the file, but hides values that may be keys. */
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
