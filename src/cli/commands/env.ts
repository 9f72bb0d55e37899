/** `campaign env check` and `campaign env serve`: environments, outside of any campaign. */
import { join } from 'node:path';
import type { Command } from 'commander';
import type { EnvironmentSpec } from '../../domain/environment-spec';
import type { Environment } from '../../domain/environment';
import type { Partners, SimulatedUser } from '../../partners/types';
import { requireAll } from '../checks/check';
import { lazy } from '../lazy';
import { allOptions, homeOf, type CommonOptions } from '../options';

/* eslint-disable @typescript-eslint/no-require-imports -- slow to load: they hold every kind of environment */
const argumentsModule = () => require('../check-arguments') as typeof import('../check-arguments');
const bridgeModule = () => require('../checks/bridge') as typeof import('../checks/bridge');
/* eslint-enable @typescript-eslint/no-require-imports */

export function environmentCommands(program: Command): void {
  const env = program
    .command('env')
    .description('environments: check that one keeps its contract, serve a built-in one');

  env
    .command('check [target...]')
    .configureHelp({ commandUsage: () => `campaign env check [options] ${argumentsModule().argumentsUsage()}` })
    .description(
      'conformance test of a built-in environment (NAME), of a benchmark, or of a program that speaks the protocol',
    )
    .option('--json', 'print findings as JSON')
    .action(async (target: string[], _options: unknown, command: Command) => {
      const options = allOptions(command);
      const spec = argumentsModule().specOfArguments({ args: target, separated: process.argv.includes('--') });
      requireAll(bridgeModule().checkBridge({ target: spec }));
      const environment = await open(spec, options, { user: USER });
      try {
        const findings = await lazy.conformance().checkEnvironment(environment);
        if (options.json) console.log(JSON.stringify(findings));
        else if (findings.length === 0) console.log(`${target.join(' ')} keeps the contract`);
        else for (const { check, problem, fix } of findings) console.log(`${check}: ${problem}; ${fix}`);
        if (findings.length > 0) process.exitCode = 1;
      } finally {
        await environment.close().catch(() => undefined);
      }
    });

  env
    .command('serve <name>')
    .description('serve a built-in environment on stdin and stdout (docs/environments.md)')
    .action(async (name: string, _options: unknown, command: Command) => {
      const environment = await open(argumentsModule().builtinSpec(name), allOptions(command));
      await lazy.serveEnvironment().serveEnvironment({ environment });
    });
}

/** Says the same whatever it hears: what is checked is the environment. */
const USER: SimulatedUser = { id: 'check', speak: async () => ({ role: 'user', content: 'Please go on.' }) };

const open = (spec: EnvironmentSpec, options: CommonOptions, partners?: Partners): Promise<Environment> =>
  lazy.environments().openEnvironment(spec, {
    store: lazy.folderStore().openFolderStore(join(homeOf(options).root, 'artifacts')),
    ...(partners && { partners }),
  });
