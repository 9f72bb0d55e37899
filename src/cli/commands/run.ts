/** `campaign run`, `start` and `serve`. */
import type { Command } from 'commander';
import { lazy } from '../lazy';
import {
  allOptions,
  homeOf,
  portOptions,
  seedList,
  stageName,
  temporalOf,
  wholeNumber,
  type CommonOptions,
} from '../options';
import type { RunOptions } from '../run/command';
import type { StartOptions } from '../start';
import type { SeedsOptions } from '../run/seeds';
import type { ServeOptions } from '../run/supervised-run';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- slow to load, and it loads modules that use `lazy`
const runModule = () => require('../run/command') as typeof import('../run/command');
// eslint-disable-next-line @typescript-eslint/no-require-imports -- as above
const seedsModule = () => require('../run/seeds') as typeof import('../run/seeds');

const RECOVER = "move Temporal's damaged database aside and begin with a new one; what is finished is kept";

const campaignOptions = (command: Command): Command =>
  command
    .option('--until <stage>', 'stop after this stage', stageName)
    .option('--seed <seed>', "seed, instead of the file's; it is added to the name", wholeNumber(0))
    .option('--training-seed <seed>', 'seed of trainings alone; it is added to the name as -s<seed>', wholeNumber(0))
    .option('--name <name>', "name, instead of the file's")
    .option('--force', "go on with a base model that can't work on the target");

export function runCommands(program: Command): void {
  portOptions(campaignOptions(program.command('run <file>')))
    .description('run a campaign with all its services on this machine; the same command goes on after a stop')
    .option(
      '--training-seeds <seeds>',
      'one run for each of these training seeds (1,2,3), and their comparison',
      seedList,
    )
    .option('--retry [child]', 'do again what failed in a campaign that has completed, or this capability or arm alone')
    .option('--recover', RECOVER)
    .option('--exit', 'leave when it has ended, instead of keeping the UI up')
    .option('--json', 'JSON lines instead of a live tree')
    .action(async (file: string, _options: unknown, command: Command) => {
      const options = allOptions<RunOptions & Partial<SeedsOptions>>(command);
      const { trainingSeeds } = options;
      process.exitCode = trainingSeeds
        ? await seedsModule().runSeeds(file, { ...options, trainingSeeds })
        : await runModule().runCampaign(file, options);
    });

  campaignOptions(program.command('start <file>'))
    .description('start a campaign on a running cluster and leave; workers take it up wherever they are')
    .option('--json', 'print JSON')
    .action(async (file: string, _options: unknown, command: Command) => {
      const options = allOptions<StartOptions & CommonOptions>(command);
      const { campaign, decision, waitsFor } = await lazy.start().startFile({
        ...{ file, at: temporalOf(options), home: homeOf(options), options },
      });
      const said = { start: 'started', attach: 'is running already', show: 'has ended already' }[decision];
      console.log(
        options.json
          ? JSON.stringify({ campaign, status: said, ...(waitsFor && { waitsFor }) })
          : [
              `campaign ${campaign} ${said}; \`campaign watch ${campaign}\` follows it`,
              ...(waitsFor ? [`none of the ${waitsFor} runs now: it waits until one is started`] : []),
            ].join('\n'),
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
