/** `campaign env check` and `campaign env serve`: environments, outside of any campaign. */
import type { Command } from 'commander';
import { join } from 'node:path';
import type { Environment } from '../../domain/environment';
import type { EnvironmentSpec } from '../../domain/kinds';
import type { EnvironmentContext } from '../../environments/kinds';
import { allOptions, examples, homeOf, wholeNumber, type CommonOptions } from '../options';

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
      const options = allOptions<{ silence: number }>(command);
      const { bridgeChecks } = await import('../checks/target.js');
      const { runChecks } = await import('../../checks/check.js');
      const { requireAll } = await import('../errors.js');
      const { checkAloud, createUser } = await import('../checks/environment.js');
      const { checkModule, isModuleFile, rendered } = await import('../checks/environment.js');
      const { specOfArguments } = await import('../environment-arguments.js');
      const { describeSpec } = await import('../../environments/open.js');
      const { plain } = await import('../../terminal.js');
      const say = (line: string) => void process.stderr.write(`${plain(line)}\n`);
      const separated = process.argv.includes('--');
      const [file = ''] = target;
      if (!separated && isModuleFile(target)) {
        const check = await checkModule({ file, say });
        if (options.json) console.log(JSON.stringify(check));
        else for (const line of rendered(check)) console.log(plain(line));
        if (!check.passed) process.exitCode = 1;
        return;
      }
      const spec = specOfArguments({ args: target, separated });
      requireAll(await runChecks(bridgeChecks({ target: spec }, { named: 'the arguments' })));
      const { user, hasSpoken } = createUser();
      const findings = await checkAloud({
        open: () => open(spec, options, { partners: { user }, silenceMs: options.silence * 1000 }),
        isUserPlayed: hasSpoken,
        silenceSeconds: describeSpec(spec).silenceSeconds,
        say,
      });
      if (options.json) console.log(JSON.stringify(findings));
      else if (findings.length === 0) console.log(`${target.join(' ')} keeps the contract`);
      else for (const { check, problem, fix } of findings) console.log(plain(`${check}: ${problem}; ${fix}`));
      if (findings.length > 0) process.exitCode = 1;
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
      const { builtinSpec } = await import('../environment-arguments.js');
      const { serveEnvironment } = await import('../../environments/serve.js');
      await serveEnvironment({ environment: await open(builtinSpec(name), allOptions(command)) });
    });
}

/** Help is written synchronously, so that what it says of the kinds can't be imported dynamically. */
function argumentsUsage(): string {
  // eslint-disable-next-line @typescript-eslint/no-require-imports -- as above
  const usage = require('../environment-arguments') as typeof import('../environment-arguments');
  return usage.argumentsUsage();
}

async function open(
  spec: EnvironmentSpec,
  options: CommonOptions,
  context: Omit<EnvironmentContext, 'store'> = {},
): Promise<Environment> {
  const { openFolderStore } = await import('../../artifacts/folder-store.js');
  const { openEnvironment } = await import('../../environments/open.js');
  return openEnvironment(spec, { store: openFolderStore(join(homeOf(options).root, 'artifacts')), ...context });
}
