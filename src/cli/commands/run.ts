/** `campaign run` and `campaign serve`: everything on this machine. */
import type { Command } from 'commander';
import { allOptions, campaignOptions, examples, portOptions, seedList, type CommonOptions } from '../options';
import type { RunOptions, SeedsOptions } from '../run/command';
import type { ServeOptions } from '../run/supervisor';

const RECOVER = "move Temporal's damaged database aside and begin with a new one; finished work is kept";

export function runCommands(program: Command): void {
  portOptions(campaignOptions(program.command('run <file>')))
    .description('run a campaign with all its services on this machine; the same command goes on after a stop')
    .option(
      '--training-seeds <seeds>',
      'one run for each of these training seeds (1,2,3), and their comparison',
      seedList,
    )
    .option('--retry [child]', 'redo what failed in a campaign that has completed, or this capability or arm alone')
    .option('--recover', RECOVER)
    .option('--exit', 'leave when it has ended, instead of keeping the UI up')
    .option('--json', 'JSON lines instead of a live tree')
    .addHelpText(
      'after',
      examples(
        ['campaign run campaigns/demo.yaml', 'the whole method; Ctrl-C stops it, the same command goes on'],
        ['campaign run campaigns/demo.yaml --until rollouts', 'what the base model solves, and no more'],
        ['campaign run campaigns/demo.yaml --training-seeds 1,2,3', 'three runs and their comparison'],
        ['campaign run campaigns/demo.yaml --retry ask_for_missing_identifier', 'redo that capability alone'],
      ),
    )
    .action(async (file: string, _options: unknown, command: Command) => {
      const options = allOptions<RunOptions & Partial<SeedsOptions>>(command);
      const { trainingSeeds } = options;
      const { runCampaign, runSeeds } = await import('../run/command.js');
      process.exitCode = trainingSeeds
        ? await runSeeds(file, { ...options, trainingSeeds })
        : await runCampaign(file, options);
    });

  portOptions(program.command('serve'))
    .description('start Temporal and its UI for this home, to look at finished campaigns')
    .option('--recover', RECOVER)
    .option('--json', 'JSON lines')
    .addHelpText('after', examples(['campaign serve --ui-port 0', 'the UI on any free port, until Ctrl-C']))
    .action(async (_options: unknown, command: Command) => {
      const { serveHome } = await import('../run/command.js');
      process.exitCode = await serveHome(allOptions<ServeOptions & CommonOptions>(command));
    });
}
