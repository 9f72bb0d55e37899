/** `campaign run`, `start` and `serve`. */
import type { Command } from 'commander';
import { lazy } from '../lazy';
import { allOptions, portOptions, stageName, temporalOf, wholeNumber, type CommonOptions } from '../options';
import type { RunOptions } from '../run/command';
import type { StartOptions } from '../start';
import type { ServeOptions } from '../run/supervised-run';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- slow to load, and it loads modules that use `lazy`
const runModule = () => require('../run/command') as typeof import('../run/command');

const RECOVER = "move Temporal's damaged database aside and begin with a new one; what is finished is kept";

const campaignOptions = (command: Command): Command =>
  command
    .option('--until <stage>', 'stop after this stage', stageName)
    .option('--seed <seed>', "seed, instead of the file's; it is added to the name", wholeNumber(0))
    .option('--name <name>', "name, instead of the file's")
    .option('--force', "go on with a base model that can't work on the target");

export function runCommands(program: Command): void {
  portOptions(campaignOptions(program.command('run <file>')))
    .description('run a campaign with all its services on this machine; the same command goes on after a stop')
    .option('--recover', RECOVER)
    .option('--exit', 'leave when it has ended, instead of keeping the UI up')
    .option('--json', 'JSON lines instead of a live tree')
    .action(async (file: string, _options: unknown, command: Command) => {
      process.exitCode = await runModule().runCampaign(file, allOptions<RunOptions>(command));
    });

  campaignOptions(program.command('start <file>'))
    .description('start a campaign on a running cluster and leave; workers take it up wherever they are')
    .option('--json', 'print JSON')
    .action(async (file: string, _options: unknown, command: Command) => {
      const options = allOptions<StartOptions & CommonOptions>(command);
      const { campaign, decision } = await lazy.start().startFile({ file, at: temporalOf(options), options });
      const said = { start: 'started', attach: 'is running already', show: 'has ended already' }[decision];
      console.log(
        options.json
          ? JSON.stringify({ campaign, status: said })
          : `campaign ${campaign} ${said}; \`campaign watch ${campaign}\` follows it`,
      );
    });

  portOptions(program.command('serve'))
    .description('Temporal and its UI for this home, to look at finished campaigns')
    .option('--recover', RECOVER)
    .option('--json', 'JSON lines')
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await runModule().serveHome(allOptions<ServeOptions>(command));
    });
}
