/** `campaign status` and `watch`: where campaigns stand. How a campaign ended is what they tell, not their exit code. */
import type { Command } from 'commander';
import { allOptions, examples } from '../options';

export function statusCommands(program: Command): void {
  program
    .command('status [name]')
    .description('show where a campaign stands; without a name, which campaigns there are')
    .option('--json', 'print JSON')
    .addHelpText('after', examples(['campaign status'], ['campaign status demo --json', 'for programs']))
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions(command);
      const { listLines, readStatus, statusJson, statusLines } = await import('../campaign-status.js');
      const { withServer } = await import('../temporal.js');
      await withServer(options, async (temporal) => {
        if (!name) return console.log((await listLines(temporal, options)).join('\n'));
        const status = await readStatus(temporal, options, name);
        console.log(options.json ? statusJson(status) : statusLines(status).join('\n'));
      });
    });

  program
    .command('watch [name]')
    .description('follow a campaign until it ends')
    .option('--json', 'JSON lines instead of a live tree')
    .addHelpText('after', examples(['campaign watch demo'], ['campaign watch demo --json', 'one change a line']))
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions(command);
      const { onlyCampaign, watchCampaign } = await import('../campaign-status.js');
      const { withServer } = await import('../temporal.js');
      // Without a reader it would go on for nobody, and it holds nothing.
      const leave = (): never => process.exit();
      process.stdout.once('error', leave);
      try {
        await watchCampaign(
          options,
          name ?? (await withServer(options, (temporal) => onlyCampaign(temporal, options))),
        );
      } finally {
        process.stdout.off('error', leave);
      }
    });
}
