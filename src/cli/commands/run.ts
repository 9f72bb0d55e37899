/** `campaign run`, `start` and `serve`. */
import type { Command } from 'commander';
import type { Stage } from '../../domain/stages';
import { lazy } from '../lazy';
import { allOptions, stageName, temporalOf, wholeNumber, type CommonOptions } from '../options';
import type { RunOptions } from '../run/command';
import type { ServeOptions } from '../run/stand';

const ports = (command: Command): Command =>
  command
    .option('--ui-port <port>', "port of Temporal's UI", wholeNumber(1, 65535), 8233)
    .option('--temporal-port <port>', 'port of the Temporal server', wholeNumber(1, 65535), 7233);

const campaignOptions = (command: Command): Command =>
  command
    .option('--until <stage>', 'stop after this stage', stageName)
    .option('--seed <seed>', "seed, instead of the file's; it is added to the name", wholeNumber(0))
    .option('--name <name>', "name, instead of the file's");

export function runCommands(program: Command): void {
  ports(campaignOptions(program.command('run <file>')))
    .description('run a campaign with all its services on this machine; the same command goes on after a stop')
    .option('--exit', 'leave when it has ended, instead of keeping the UI up')
    .option('--json', 'JSON lines instead of a live tree')
    .action(async (file: string, _options: unknown, command: Command) => {
      process.exitCode = await lazy.run().runCampaign(file, allOptions<RunOptions>(command));
    });

  campaignOptions(program.command('start <file>'))
    .description('start a campaign on a running cluster and leave; workers take it up wherever they are')
    .option('--json', 'print JSON')
    .action(async (file: string, _options: unknown, command: Command) => {
      const options = allOptions<{ until?: Stage; name?: string; seed?: number } & CommonOptions>(command);
      const { campaign, decision } = await lazy.start().startFile({ file, at: temporalOf(options), options });
      const said = { start: 'started', 'take up': 'is running already', show: 'has ended already' }[decision];
      console.log(
        options.json
          ? JSON.stringify({ campaign, status: said })
          : `campaign ${campaign} ${said}; \`campaign watch ${campaign}\` follows it`,
      );
    });

  ports(program.command('serve'))
    .description('Temporal and its UI for this home, to look at finished campaigns')
    .option('--json', 'JSON lines')
    .action(async (_options: unknown, command: Command) => {
      process.exitCode = await lazy.run().serveHome(allOptions<ServeOptions>(command));
    });
}
