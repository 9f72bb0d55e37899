/** Options that every command has, and what they stand for. */
import { Command, InvalidArgumentError } from 'commander';
import { stages, type Stage } from '../domain/work';
import { temporalPort, uiPort } from './ports';
import { homeAt, type Home } from './project';

export interface CommonOptions {
  home: string;
  /** An existing cluster, instead of the home's own server. */
  temporalAddress?: string;
  json?: boolean;
  debug?: boolean;
}

export const DEFAULT_HOME = '.campaigns';

/** All options that apply to a command: its own and the program's. */
export const allOptions = <T>(command: Command): T & CommonOptions => command.optsWithGlobals<T & CommonOptions>();

export const homeOf = (options: CommonOptions): Home => homeAt(options.home);

export const namespace = (): string => process.env['TEMPORAL_NAMESPACE'] ?? 'default';

/** Options of commands that start a campaign. */
export const campaignOptions = (command: Command): Command =>
  command
    .option('--until <stage>', 'stop after this stage', stageName)
    .option('--seed <seed>', "seed, instead of the file's; it is added to the name", wholeNumber(0))
    .option('--training-seed <seed>', 'seed of trainings alone; it is added to the name as -s<seed>', wholeNumber(0))
    .option('--name <name>', "name, instead of the file's")
    .option('--force', 'run even if the base-model check fails');

/** The options that name ports of Temporal and its UI: `PortOptions`. */
export function portOptions(command: Command): Command {
  const port = wholeNumber(0, 65535);
  for (const { name, flag, preferred } of [temporalPort, uiPort])
    command.option(
      `${flag} <port>`,
      `port of the ${name}; 0: any free one (default: ${preferred}, if it is free)`,
      port,
    );
  return command;
}

/** Commander's parser for whole numbers in a range. */
export const wholeNumber =
  (low: number, high = Number.MAX_SAFE_INTEGER) =>
  (text: string): number => {
    const number = Number(text);
    if (!/^\d+$/.test(text) || number < low || number > high)
      throw new InvalidArgumentError(
        `It must be a whole number from ${low}${high < Number.MAX_SAFE_INTEGER ? ` to ${high}` : ''}.`,
      );
    return number;
  };

/** Commander's parser for two or more different whole numbers. */
export const seedList = (text: string): number[] => {
  const seeds = text.split(',').map((seed) => wholeNumber(0)(seed.trim()));
  if (seeds.length < 2 || new Set(seeds).size < seeds.length)
    throw new InvalidArgumentError('It must be two or more different seeds, such as 1,2,3.');
  return seeds;
};

const stageName = (text: string): Stage => {
  const stage = stages.find((one) => one === text);
  if (!stage) throw new InvalidArgumentError(`It must be one of ${stages.join(', ')}.`);
  return stage;
};

/** Command lines, each with what it does, for the end of a command's help. */
export const examples = (...lines: [command: string, effect?: string][]): string =>
  ['', lines.length > 1 ? 'Examples:' : 'Example:']
    .concat(lines.map(([command, effect]) => (effect ? `  # ${effect}\n  ${command}` : `  ${command}`)))
    .join('\n');
