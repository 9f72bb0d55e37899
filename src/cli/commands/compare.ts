/** `campaign compare`: several runs of a campaign, with other seeds, as one comparison. Reads reports only. */
import type { Command } from 'commander';
import { resolve } from 'node:path';
import { comparisonText } from '../../report/compare/text';
import { compareReports, writeComparison } from '../compare';
import { homeRoot } from './report-files';

export function compareCommand(
  program: Command,
  { print = console.log }: { print?: (text: string) => void } = {},
): void {
  program
    .command('compare <report...>')
    .description('several runs of one campaign as one comparison: names of campaigns, or files report.json')
    .option('--json', 'print JSON instead of a table')
    .option('--out <dir>', 'write comparison.json and comparison.html there')
    .action(async (named: string[], options: { json?: boolean; out?: string }, command: Command) => {
      const comparison = await compareReports({ home: homeRoot(command), named });
      if (options.out !== undefined) await writeComparison(comparison, resolve(options.out));
      print(options.json ? JSON.stringify(comparison, null, 2) : comparisonText(comparison, process.stdout.columns));
    });
}
