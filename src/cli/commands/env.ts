/** `campaign env check` and `campaign env serve`: environments, outside of any campaign. */
import { join } from 'node:path';
import type { Command } from 'commander';
import { MAX_SILENCE_SECONDS } from '../../domain/endpoints';
import type { EnvironmentSpec } from '../../domain/kinds';
import type { Environment } from '../../domain/environment';
import type { EnvironmentContext } from '../../environments/kinds';
import { requireAll } from '../checks/check';
import { lazy } from '../lazy';
import { plain } from '../plain';
import { allOptions, homeOf, wholeNumber, type CommonOptions } from '../options';

/* eslint-disable @typescript-eslint/no-require-imports -- slow to load: they hold every kind of environment */
const argumentsModule = () => require('../check-arguments') as typeof import('../check-arguments');
const bridgeModule = () => require('../checks/bridge') as typeof import('../checks/bridge');
const checkModule = () => require('../checks/environment') as typeof import('../checks/environment');
const moduleModule = () => require('../checks/module') as typeof import('../checks/module');
/* eslint-enable @typescript-eslint/no-require-imports */

export function environmentCommands(program: Command): void {
  const env = program
    .command('env')
    .description('environments: check that one keeps its contract, serve a built-in one');

  env
    .command('check [target...]')
    .configureHelp({ commandUsage: () => `campaign env check [options] ${argumentsModule().argumentsUsage()}` })
    .description(
      'conformance test of a built-in environment (NAME), of a benchmark, or of a program that speaks the protocol; ' +
        'self-test of a module of a synthesized environment (FILE.js, FILE.ts)',
    )
    .option('--json', 'print findings as JSON')
    .option(
      '--silence <seconds>',
      'how long it may leave a request unanswered',
      wholeNumber(1, MAX_SILENCE_SECONDS),
      SILENCE_SECONDS,
    )
    .action(async (target: string[], _options: unknown, command: Command) => {
      const options = allOptions<{ silence: number }>(command);
      const say = (line: string) => void process.stderr.write(`${plain(line)}\n`);
      const separated = process.argv.includes('--');
      const [file = ''] = target;
      if (!separated && moduleModule().isModuleFile(target)) {
        const check = await moduleModule().checkModule({ file, say });
        if (options.json) console.log(JSON.stringify(check));
        else for (const line of moduleModule().rendered(check)) console.log(plain(line));
        if (!check.passed) process.exitCode = 1;
        return;
      }
      const spec = argumentsModule().specOfArguments({ args: target, separated });
      requireAll(bridgeModule().checkBridge({ target: spec }, { named: 'the arguments' }));
      const { checkAloud, createUser } = checkModule();
      const { user, hasSpoken } = createUser();
      const findings = await checkAloud({
        open: () => open(spec, options, { partners: { user }, silenceMs: options.silence * 1000 }),
        isUserPlayed: hasSpoken,
        silenceSeconds: lazy.environments().describeSpec(spec).silenceSeconds,
        say,
      });
      if (options.json) console.log(JSON.stringify(findings));
      else if (findings.length === 0) console.log(`${target.join(' ')} keeps the contract`);
      else for (const { check, problem, fix } of findings) console.log(plain(`${check}: ${problem}; ${fix}`));
      if (findings.length > 0) process.exitCode = 1;
    });

  env
    .command('serve <name>')
    .description('serve a built-in environment on stdin and stdout (docs/environments.md)')
    .action(async (name: string, _options: unknown, command: Command) => {
      const environment = await open(argumentsModule().builtinSpec(name), allOptions(command));
      await lazy.serveEnvironment().serveEnvironment({ environment });
    });
}

/** Less than a campaign gives: whoever checks is watching. A bridge that loads a benchmark's data answers within seconds. */
const SILENCE_SECONDS = 20;

const open = (
  spec: EnvironmentSpec,
  options: CommonOptions,
  context: Omit<EnvironmentContext, 'store'> = {},
): Promise<Environment> =>
  lazy.environments().openEnvironment(spec, {
    store: lazy.folderStore().openFolderStore(join(homeOf(options).root, 'artifacts')),
    ...context,
  });
