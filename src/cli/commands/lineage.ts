/** `campaign lineage`: walks from a figure, an artifact or a rollout back to the rollouts behind it. Reads only. */
import type { Command } from 'commander';
import { UserError } from '../errors';
import { allOptions, examples, homeOf } from '../options';

interface LineageOptions {
  campaign?: string;
}

export function lineageCommand(program: Command): void {
  program
    .command('lineage <start>')
    .description("print the rollouts behind a figure's id, an artifact (key or beginning of its sha256) or a rollout")
    .option('--campaign <name>', 'whose report holds the figure (default: the newest)')
    .option('--json', 'print the tree as JSON')
    .addHelpText(
      'after',
      examples(['campaign lineage arms.trace.success_rate --campaign demo', 'a figure of the report']),
    )
    .action(async (start: string, _options: unknown, command: Command) => {
      const options = allOptions<LineageOptions>(command);
      const home = homeOf(options).root;
      const { openStore } = await import('../../artifacts/open-store.js');
      const { lineage, UnknownStartError } = await import('../../report/lineage.js');
      const { lineageText } = await import('../../report/lineage.js');
      const { findReport } = await import('../reports.js');
      const found = findReport({ home, name: options.campaign });
      const store = await openStore(home);
      try {
        const tree = await lineage({ store, start, ...(found && { report: found.report }) });
        console.log(options.json ? JSON.stringify(tree) : lineageText(tree));
      } catch (error) {
        if (!(error instanceof UnknownStartError)) throw error;
        const where = found ? `looked in the report of ${found.name}` : `no report in ${home}`;
        throw new UserError(`${error.message} (${where}; a hash must be long enough to be the only one)`);
      }
    });
}
