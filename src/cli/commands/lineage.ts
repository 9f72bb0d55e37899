/** `campaign lineage`: walks from a figure, an artifact or a rollout back to the rollouts behind it. Reads only. */
import { join } from 'node:path';
import type { Command } from 'commander';
import { lineage, UnknownStartError } from '../../report/lineage';
import { lineageText } from '../../report/lineage-text';
import { UserError } from '../errors';
import { lazy } from '../lazy';
import { findReport, homeRoot } from './report-files';

export function lineageCommand(
  program: Command,
  { print = console.log }: { print?: (text: string) => void } = {},
): void {
  program
    .command('lineage <start>')
    .description("the rollouts behind a figure's id, an artifact (key or beginning of its sha256) or a rollout's key")
    .option('--campaign <name>', 'whose report holds the figure (default: the newest)')
    .option('--json', 'print the tree as JSON')
    .action(async (start: string, options: { campaign?: string; json?: boolean }, command: Command) => {
      const home = homeRoot(command);
      const found = findReport({ home, name: options.campaign });
      const store = lazy.folderStore().openFolderStore(join(home, 'artifacts'));
      try {
        const tree = await lineage({ store, start, ...(found === undefined ? {} : { report: found.report }) });
        print(options.json ? JSON.stringify(tree) : lineageText(tree));
      } catch (error) {
        if (!(error instanceof UnknownStartError)) throw error;
        const where = found === undefined ? `no report in ${home}` : `looked in the report of ${found.name}`;
        throw new UserError(`${error.message} (${where}; a hash must be long enough to be the only one)`);
      }
    });
}
