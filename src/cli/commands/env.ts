/** `campaign env check` and `campaign env serve`: environments, outside of any campaign. */
import type { Command } from 'commander';
import type { CheckOptions } from '../checks/environment';
import { allOptions, examples, wholeNumber } from '../options';

/** Less than a campaign gives: whoever checks is watching. A bridge that loads a benchmark's data answers within seconds. */
const SILENCE_SECONDS = 20;
const DAY_SECONDS = 24 * 3600;

export function environmentCommands(program: Command): void {
  const env = program
    .command('env')
    .description('check that an environment keeps its contract, or serve a built-in one');

  env
    .command('check [target...]')
    .configureHelp({ commandUsage: () => `campaign env check [options] ${argumentsUsage()}` })
    .description(
      'conformance test of a built-in environment (NAME), of a benchmark, or of a program that speaks the protocol; ' +
        'self-test of a module of a synthesized environment (FILE.js, FILE.ts)',
    )
    .option('--json', 'print findings as JSON')
    .option(
      '--silence <seconds>',
      'how long it may leave a request unanswered',
      wholeNumber(1, DAY_SECONDS),
      SILENCE_SECONDS,
    )
    .action(async (target: string[], _options: unknown, command: Command) => {
      const { envCheck } = await import('../checks/environment.js');
      process.exitCode = await envCheck(target, allOptions<CheckOptions>(command), process.argv.includes('--'));
    })
    .addHelpText(
      'after',
      examples(
        ['campaign env check -- python bridge.py', 'a program that speaks docs/environments.md'],
        ['campaign env check module.js', 'a module of a synthesized environment'],
      ),
    );

  env
    .command('serve <name>')
    .description('serve a built-in environment on stdin and stdout (docs/environments.md)')
    .addHelpText('after', examples(['campaign env serve shop']))
    .action(async (name: string, _options: unknown, command: Command) => {
      const { serveBuiltin } = await import('../checks/environment.js');
      await serveBuiltin(name, allOptions(command));
    });
}

/** Help is written synchronously, so that what it says of the kinds can't be imported dynamically. */
function argumentsUsage(): string {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- as above
  const usage = require('../environment-arguments') as typeof import('../environment-arguments');
  return usage.argumentsUsage();
}
