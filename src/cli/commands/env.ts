/** `campaign env check` and `campaign env serve`: environments, outside of any campaign. */
import { join } from 'node:path';
import type { Command } from 'commander';
import { environmentSpecSchema, type EnvironmentSpec } from '../../domain/environment-spec';
import type { Environment } from '../../domain/environment';
import type { Partners, SimulatedUser } from '../../partners/types';
import { UserError } from '../errors';
import { lazy } from '../lazy';
import { nearest } from '../nearest';
import { allOptions, homeOf, type CommonOptions } from '../options';

const BUILT_IN = ['shop'] as const;

export function environmentCommands(program: Command): void {
  const env = program
    .command('env')
    .description('environments: check that one keeps its contract, serve a built-in one');

  env
    .command('check [target...]')
    .usage('NAME | tau2 DOMAIN... | -- COMMAND [ARGUMENT...]')
    .description(
      'conformance test of a built-in environment (NAME), of tau2-bench, or of a program that speaks the protocol',
    )
    .option('--json', 'print findings as JSON')
    .action(async (target: string[], _options: unknown, command: Command) => {
      const options = allOptions(command);
      const environment = await open(specOf(target, process.argv.includes('--')), options, { user: USER });
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
      const environment = await open(builtIn(name), allOptions(command));
      await lazy.serveEnvironment().serveEnvironment({ environment });
    });
}

/** Says the same whatever it hears: what is checked is the environment. */
const USER: SimulatedUser = { id: 'check', speak: async () => ({ role: 'user', content: 'Please go on.' }) };

/** One word without `--` is a built-in environment's name; anything else is a command. */
function specOf(words: string[], separated: boolean): EnvironmentSpec {
  const [first] = words;
  if (first === undefined) throw new UserError(`name an environment: ${BUILT_IN.join(', ')}, or a command after --`);
  if (first === 'tau2' && !separated) return tau2Of(words.slice(1));
  return words.length === 1 && !separated ? builtIn(first) : { kind: 'process', command: words, processes: 1 };
}

function tau2Of(domains: string[]): EnvironmentSpec {
  const spec = environmentSpecSchema.safeParse({ kind: 'tau2', domains });
  if (spec.success) return spec.data;
  throw new UserError(`tau2: ${spec.error.issues[0]?.message}; for example: campaign env check tau2 retail`);
}

function builtIn(name: string): EnvironmentSpec {
  const known = BUILT_IN.find((one) => one === name);
  if (known) return { kind: 'builtin', name: known };
  const guess = nearest(name, BUILT_IN);
  throw new UserError(
    `there is no built-in environment ${name}; ${guess ? `did you mean ${guess}?` : `there is: ${BUILT_IN.join(', ')}`} A program is named after --`,
  );
}

const open = (spec: EnvironmentSpec, options: CommonOptions, partners?: Partners): Promise<Environment> =>
  lazy.environments().openEnvironment(spec, {
    store: lazy.folderStore().openFolderStore(join(homeOf(options).root, 'artifacts')),
    ...(partners && { partners }),
  });
