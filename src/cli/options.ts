/** What a command is, options that several of them have, how the values of options are read, and examples in helps. */
import { createInterface } from 'node:readline/promises';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { plainText } from '../domain/plain-text';
import { type QueueName, type Stage, stages, taskQueues } from '../domain/work';
import { InputError, UserError } from './errors';
import { temporalPort, uiPort } from './ports';
import { type Home, homeAt } from './project';

export interface CommonOptions {
  home: string;
  /** An existing cluster, instead of the home's own server. */
  temporalAddress?: string;
  json?: boolean;
  yes?: boolean;
  debug?: boolean;
}

export const DEFAULT_HOME = '.campaigns';

/** All options that apply to a command: its own and the program's. */
export const allOptions = <T>(command: Command): T & CommonOptions => command.optsWithGlobals<T & CommonOptions>();

export const homeOf = (options: CommonOptions): Home => homeAt(options.home);

export const namespace = (): string => process.env['TEMPORAL_NAMESPACE'] ?? 'default';

/** A command line, and what it does. */
export type Example = readonly [command: string, effect?: string];

/** For the end of a command's help. */
export const examplesText = (lines: readonly Example[]): string =>
  ['', lines.length > 1 ? 'Examples:' : 'Example:']
    .concat(lines.map(([command, effect]) => (effect ? `  # ${effect}\n  ${command}` : `  ${command}`)))
    .join('\n');

type CommandGroup = 'Before:' | 'Run:' | 'Control:' | 'Look:' | 'Use:' | 'Other:';

export interface CommandText {
  /** Not shown in the help. */
  hidden?: boolean;
  /** The heading in the program's help. */
  group: CommandGroup;
  /** Name and arguments. */
  usage: string;
  alias?: string;
  description: string;
  options?: readonly Option[];
  examples?: readonly Example[];
  run: Action;
}

/** Is given the arguments, then all options. @returns the exit code, or what is printed. */
type Action = (...given: never[]) => number | string | void | Promise<number | string | void>;
type Actions<Module> = { [Name in keyof Module]: Module[Name] extends Action ? Name : never }[keyof Module];

/** A function of a module that is loaded when its command runs. */
export const by =
  <Module>(load: () => Promise<Module>, name: Actions<Module>): Action =>
  async (...given) =>
    ((await load())[name] as Action)(...given);

/** A whole number in a range. */
export const wholeNumber =
  (low: number, high = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const number = Number(text);
    if (/^\d+$/.test(text) && number >= low && number <= high) return number;
    const range = `from ${low}${high < Number.MAX_SAFE_INTEGER ? ` to ${high}` : ''}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };

/** One whole number, or several different ones. */
export const seedList = (text: string): number[] => {
  const seeds = text.split(',').map((seed) => wholeNumber(0)(seed.trim()));
  if (new Set(seeds).size === seeds.length) return seeds;
  throw new InvalidArgumentError('It must be one seed, or different ones, such as 1,2,3.');
};

const stageName = (text: string): Stage => {
  const stage = stages.find((one) => one === text);
  if (stage) return stage;
  throw new InvalidArgumentError(`It must be one of ${stages.join(', ')}.`);
};

const dollars = (text: string): number => {
  const number = Number(text);
  if (text.trim() !== '' && number >= 0 && Number.isFinite(number)) return number;
  throw new InvalidArgumentError('It must be an amount of dollars, such as 2.5.');
};

export const moreDollars = (text: string): number => {
  const number = dollars(text);
  if (number > 0) return number;
  throw new InvalidArgumentError('It must be more than 0 dollars.');
};

/** Dollars per million tokens read and written. */
export const price = (text: string): { input: number; output: number } => {
  const [input = '', output = '', ...more] = text.split(',');
  if (more.length > 0) throw new InvalidArgumentError('It must be two amounts, such as 2.5,15.');
  return { input: dollars(input), output: dollars(output) };
};

export const option = (flags: string, description: string, parse?: (text: string) => unknown): Option => {
  const made = new Option(flags, description);
  return parse ? made.argParser(parse) : made;
};
/** One or more task queues. */
export const queueList = (text: string): QueueName[] => {
  const names = Object.keys(taskQueues);
  const queues = text.split(',').map((name) => name.trim());
  if (queues.every((name) => names.includes(name))) return queues as QueueName[];
  throw new InvalidArgumentError(`It must be one or more of ${names.join(', ')}, between commas.`);
};
/** May be given several times. */
export const plugin = (description: string): Option =>
  option('--plugin <package or path>', `${description}; may be repeated`)
    .argParser((one: string, before: string[]) => [...before, one])
    .default([], 'none');

export const stageOption = option('--until <stage>', 'stop after this stage', stageName);

/** `PortOptions`. */
const [temporalPortOption, uiPortOption] = [temporalPort, uiPort].map(({ name, flag, preferred }) =>
  option(
    `${flag} <port>`,
    `port of the ${name}; 0: any free one (default: ${preferred}, if it is free)`,
    wholeNumber(0, 65535),
  ),
) as [Option, Option];
export const portOptions = [temporalPortOption, uiPortOption];
export { uiPortOption };

/** The end of the input and Ctrl-C are no. @throws UserError where there is no terminal to ask on. */
export async function confirmed(what: string, signal?: AbortSignal): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY)
    throw new InputError({
      ...{ code: 'missing_field', field: '--yes', reason: 'is missing, and there is no terminal to confirm on' },
      fix: `pass --yes to ${what}`,
    });
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    lines.once('SIGINT', () => lines.close());
    const closed = new Promise<string>((resolve) => lines.once('close', () => resolve('')));
    const answer = await Promise.race([lines.question(plainText(`${what}? [y/N] `), signal ? { signal } : {}), closed]);
    return /^\s*y(es)?\s*$/i.test(answer);
  } finally {
    lines.close();
  }
}

/** @throws UserError that says what was not done, where the answer is no, or there is no terminal to ask on. */
export async function requireYes(
  what: string,
  { yes = false, otherwise }: { yes?: boolean | undefined; otherwise: string },
) {
  if (!yes && !(await confirmed(what))) throw new UserError(otherwise);
}
