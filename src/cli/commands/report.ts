/**
 * `campaign report`: shows a campaign's report again, or writes its files elsewhere. The page is always made anew from report.json. A campaign
 * without a report is shown by where it stands.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { renderReport } from '../../report/render';
import { terminalTable } from '../../report/terminal';
import { UserError } from '../errors';
import { allOptions, type CommonOptions } from '../options';
import { findReport, homeRoot, reported, type FoundReport } from './report-files';
import { campaignsOf, standingJson, standingLines, standingOf, withServer } from './standing';

interface ReportOptions {
  json?: boolean;
  out?: string;
}

export function reportCommand(
  program: Command,
  { print = console.log }: { print?: (text: string) => void } = {},
): void {
  program
    .command('report [name]')
    .description('the report of a campaign (default: the newest): table, page, JSON')
    .option('--json', 'print report.json')
    .option('--out <dir>', 'write report.json and report.html there')
    .action(async (name: string | undefined, options: ReportOptions, command: Command) => {
      const home = homeRoot(command);
      const names = reported(home);
      const found = name === undefined || names.includes(name) ? findReport({ home, name }) : undefined;
      print(found ? show(found, options) : await withoutReport({ ...allOptions(command), home }, name));
    });
}

function show({ folder: own, report }: FoundReport, options: ReportOptions): string {
  const { json, html } = renderReport({ report });
  const folder = resolve(options.out ?? own);
  if (options.out !== undefined) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'report.json'), json);
  }
  // --json alone only prints.
  if (options.out !== undefined || !options.json) writeFileSync(join(folder, 'report.html'), html);
  return options.json
    ? json.trimEnd()
    : `${terminalTable(report, process.stdout.columns)}\n\n${join(folder, 'report.html')}`;
}

/** Where the campaign stands that has no report, by default the newest; why there is none, and where to look. */
const withoutReport = (options: CommonOptions, name: string | undefined): Promise<string> =>
  withServer(options, async (temporal) => {
    const campaign = name ?? (await campaignsOf(temporal, options))[0]?.name;
    if (campaign === undefined)
      throw new UserError(`no report in ${options.home}; make one with \`campaign run FILE\``);
    const standing = await standingOf(temporal, options, campaign);
    if (options.json) return standingJson(standing);
    const { home } = options;
    return [
      `no report of ${campaign} in ${home}: one is written when a campaign completes, or stops after a stage with --until`,
      ...standingLines(standing),
      `look further: \`campaign watch ${campaign}\`, ${join(home, 'logs')}`,
    ].join('\n');
  });
