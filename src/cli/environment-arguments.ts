/** From the arguments of `campaign env check` to an environment's spec. Invariant: options go through the schema that reads campaign files. */
import { resolve } from 'node:path';
import { type EnvironmentSpec, specSchemaOf } from '../domain/kinds';
import { environments } from '../environments';
import { builtin, builtinNames } from '../environments/builtin';
import type { EnvironmentKind } from '../environments/kinds';
import { processKind } from '../environments/process';
import { nearest, UserError } from './errors';
import { changePaths } from './campaign-file';

export const argumentsUsage = (kinds = environments): string =>
  [
    'NAME',
    'FILE.js',
    ...kinds.flatMap(({ kind, checkArguments }) => (checkArguments ? [`${kind} ${checkArguments.usage}`] : [])),
    '-- COMMAND [ARGUMENT...]',
  ].join(' | ');

/**
 * A kind with its arguments, the name of a built-in environment, or a program's command line. What comes after `--` (`separated`) is always
 * the last.
 */
export function specOfArguments(o: {
  args: readonly string[];
  separated: boolean;
  kinds?: readonly EnvironmentKind[];
}): EnvironmentSpec {
  const { args, separated, kinds = environments } = o;
  const [first, ...rest] = args;
  if (first === undefined) throw new UserError(`name an environment: ${argumentsUsage(kinds)}`);
  if (separated) return parsed(processKind, { command: args });
  const named = kinds.find(({ kind }) => kind === first);
  if (named?.checkArguments) {
    const { usage, example, variable, options } = named.checkArguments;
    const set = variable === undefined ? undefined : process.env[variable];
    const given = rest.length === 0 && set ? [set] : rest;
    const fits = usage.endsWith('...') ? given.length > 0 : given.length === 1;
    const or = variable === undefined ? '' : ` (or set ${variable})`;
    if (!fits)
      throw new UserError(`${first} takes ${usage}${or}, not "${rest.join(' ')}"; ${exampleOf(first, example)}`);
    return parsed(named, options(given));
  }
  return args.length === 1 ? builtinSpec(first) : parsed(processKind, { command: args });
}

export function builtinSpec(name: string): EnvironmentSpec {
  if (builtinNames.some((known) => known === name)) return parsed(builtin, { name });
  const guess = nearest(name, builtinNames);
  throw new UserError(
    `there is no built-in environment ${name}; ${guess ? `did you mean ${guess}?` : `there is: ${builtinNames.join(', ')}.`} A program is named after --`,
  );
}

/** Paths count from the working directory. */
function parsed(kind: EnvironmentKind, options: Record<string, unknown>): EnvironmentSpec {
  const read = specSchemaOf([kind]).safeParse({ kind: kind.kind, ...options });
  if (!read.success) {
    const example = kind.checkArguments ? `; ${exampleOf(kind.kind, kind.checkArguments.example)}` : '';
    throw new UserError(`${kind.kind}: ${read.error.issues[0]?.message}${example}`);
  }
  return changePaths(read.data as EnvironmentSpec, kind, (path) => resolve(path));
}

const exampleOf = (kind: string, example: string): string => `for example: campaign env check ${kind} ${example}`;
