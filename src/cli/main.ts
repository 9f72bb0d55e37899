/** The command line. Invariant: every failure is one line on stderr, wrapped on a terminal, that names cause and fix, with exit code 1 (usage: 2). */
import { setTimeout as sleep } from 'node:timers/promises';
import { Command, CommanderError } from 'commander';
import { isCode } from '../store/durable-file';
import { OutsideFailure } from '../domain/failures';
import { bypassProxiesOnLoopback } from '../temporal/loopback';
import { columnsOf, wrapText } from '../terminal';
import { addCommands, examplesText } from './commands';
import { isUsage, messageOf, renderError, snakeCase, UserError } from './errors';
import { version } from '../store/project-root';
import { refuseRemoved } from './removed-commands';

const USAGE = 2;

const fitted = (text: string): string => `${wrapText(text, columnsOf(process.stderr))}\n`;

export function createProgram(): Command {
  const program = new Command('campaign')
    .description('find what a language-model agent lacks, and train it: the TRACE method as one durable workflow')
    .version(version)
    .option('--home <folder>', 'folder of campaigns and artifacts', process.env['CAMPAIGN_HOME'] ?? '.campaigns')
    .option('--temporal-address <address>', 'use this Temporal cluster (host:port) instead of starting a server')
    .option('--json', 'print JSON, for programs')
    .option('--yes', 'do not ask for confirmation')
    .option('--debug', 'show the stack of an error')
    // `exitCodeOf` prints all errors.
    .configureHelp({ minWidthToWrap: 20 })
    .configureOutput({ outputError: () => undefined, getOutHelpWidth: () => columnsOf() ?? 80 })
    .addHelpText(
      'after',
      examplesText([
        ['campaign check campaigns/mine.yaml', 'what is missing, and what will it cost?'],
        ['campaign run campaigns/mine.yaml', 'everything; after a stop, the same command continues'],
        ['campaign run --help', 'options and examples of one command'],
      ]),
    )
    .showSuggestionAfterError()
    .exitOverride();
  addCommands(program);
  refuseRemoved(program);
  return program;
}

/** Runs one command line. @returns the exit code after all output is flushed, so that the caller may exit. */
export async function main(argv: string[]): Promise<number> {
  bypassProxiesOnLoopback();
  // The user can read and write the program's files under any umask.
  process.umask(process.umask() & 0o077);
  for (const stream of [process.stdout, process.stderr]) stream.off('error', leaveUnread).on('error', leaveUnread);
  const code = await exitCodeOf(argv);
  await Promise.all([written(process.stdout), written(process.stderr)]);
  return code;
}

/** Ignores errors of a closed pipe or terminal, so that the command can still stop its services. */
function leaveUnread(error: Error): void {
  if (!isCode(error, 'EPIPE', 'EIO')) throw error;
}

/** Resolves when a stream has nothing left to write: a pipe takes 64 KiB, and more as it is read. A reader that has gone takes nothing. */
async function written(stream: NodeJS.WriteStream): Promise<void> {
  // A short rest is not announced by `drain`.
  while (stream.writableLength > 0 && !stream.destroyed) await sleep(5);
}

async function exitCodeOf(argv: string[]): Promise<number> {
  const program = createProgram();
  try {
    await program.parseAsync(argv, { from: 'user' });
    return Number(process.exitCode ?? 0);
  } catch (error) {
    if (error instanceof CommanderError) return usageError(error);
    const known = error instanceof UserError || error instanceof OutsideFailure;
    const debug = program.opts<{ debug?: boolean }>().debug ?? false;
    // The message of Temporal's client names the operation, and its cause the reason.
    const why = error instanceof Error && error.cause instanceof Error ? `: ${messageOf(error.cause)}` : '';
    const shown = known || debug ? error : new Error(`${messageOf(error)}${why} (--debug shows where)`);
    process.stderr.write(fitted(renderError(shown, debug)));
    return isUsage(error) ? USAGE : 1;
  }
}

/** Prints an error of commander. @returns the exit code. */
function usageError({ code, exitCode, message }: CommanderError): number {
  if (exitCode === 0) return 0;
  const name = code.replace('commander.', '');
  if (name === 'help') return USAGE;
  const text = message
    .replace(/^error: /, '')
    .trim()
    .replace(/\s*\n\s*/g, ' ');
  process.stderr.write(fitted(`campaign: ${text} [${snakeCase(name)}]`));
  return USAGE;
}

// Exits explicitly, because the client keeps retrying calls to a server that is gone.
if (require.main === module) void main(process.argv.slice(2)).then((code) => process.exit(code));
