/** `campaign list`: the campaigns of a home, where they stand and what they take. Reads only. */
import type { Command } from 'commander';
import { allOptions, examples, homeOf } from '../options';

export function listCommand(program: Command): void {
  program
    .command('list')
    .description('list the campaigns of the home: state, last change, and room that each takes alone and shares')
    .option('--json', 'print JSON')
    .addHelpText('after', examples(['campaign list'], ['campaign list --json', 'for programs']))
    .action(async (_options: unknown, command: Command) => {
      const options = allOptions(command);
      const { homeUse, sizeText } = await import('../usage.js');
      const { campaignsOf } = await import('../campaign-status.js');
      const { withServer } = await import('../temporal.js');
      const { timeText } = await import('../watch/output.js');
      const { alignColumns, plain } = await import('../../terminal.js');
      const use = await homeUse(homeOf(options));
      const rows = await withServer(options, (temporal) => campaignsOf(temporal, options));
      const campaigns = use.campaigns.map(({ kinds, changedMs, ...one }) => ({
        ...one,
        state: rows.find(({ name }) => name === one.name)?.status ?? 'unknown',
        changedMs,
        kinds,
      }));
      if (options.json) return console.log(JSON.stringify({ home: homeOf(options).root, bytes: use.bytes, campaigns }));
      if (campaigns.length === 0) return console.log(`no campaigns in ${homeOf(options).root}`);
      const lines = campaigns.map(({ name, state, changedMs, alone, shared, isKnown }) => [
        plain(name),
        state,
        changedMs === 0 ? '' : timeText(changedMs),
        sizeText(alone),
        isKnown ? sizeText(shared) : 'unknown',
      ]);
      console.log(alignColumns([['campaign', 'state', 'last change', 'alone', 'shared'], ...lines]).join('\n'));
      console.log(`${sizeText(use.bytes)} in ${homeOf(options).root}`);
      if (campaigns.some(({ isKnown }) => !isKnown))
        console.log('unknown: run before uses were noted; what is in the store counts as used by it');
    });
}
