/** `campaign report`: shows a campaign's report again, or writes its files elsewhere. The page is always made anew from report.json. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { renderReport } from '../../report/render';
import { terminalTable } from '../../report/terminal';
import { UserError } from '../errors';
import { findReport, homeRoot } from './report-files';

export function reportCommand(
  program: Command,
  { print = console.log }: { print?: (text: string) => void } = {},
): void {
  program
    .command('report [name]')
    .description('the report of a campaign (default: the newest): table, page, JSON')
    .option('--json', 'print report.json')
    .option('--out <dir>', 'write report.json and report.html there')
    .action((name: string | undefined, options: { json?: boolean; out?: string }, command: Command) => {
      const home = homeRoot(command);
      const found = findReport({ home, name });
      if (found === undefined) throw new UserError(`no report in ${home}; make one with \`campaign run FILE\``);
      const { json, html } = renderReport({ report: found.report });
      const folder = resolve(options.out ?? found.folder);
      if (options.out !== undefined) {
        mkdirSync(folder, { recursive: true });
        writeFileSync(join(folder, 'report.json'), json);
      }
      // --json alone only prints.
      if (options.out !== undefined || !options.json) writeFileSync(join(folder, 'report.html'), html);
      print(options.json ? json.trimEnd() : `${terminalTable(found.report)}\n\n${join(folder, 'report.html')}`);
    });
}
