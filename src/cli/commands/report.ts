/**
 * `campaign report`: shows a campaign's report again, or writes its files elsewhere. The page is always made anew from report.json. A campaign
 * without a report is shown by where it stands.
 */
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { renderReport } from '../../report/render';
import { terminalTable } from '../../report/terminal';
import { UserError } from '../errors';
import { allOptions, type CommonOptions } from '../options';
import { whyUnwritten, writeInto } from '../out-folder';
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
      print(found ? await show(found, options) : await withoutReport({ ...allOptions(command), home }, name));
    });
}

async function show({ folder: own, report }: FoundReport, options: ReportOptions): Promise<string> {
  const { json, html } = renderReport({ report });
  const page = join(resolve(options.out ?? own), 'report.html');
  if (options.out !== undefined) await writeInto(resolve(options.out), { 'report.json': json, 'report.html': html });
  // --json alone only prints.
  if (options.json) return json.trimEnd();
  const table = terminalTable(report, process.stdout.columns);
  try {
    if (options.out === undefined) await writeFile(page, html);
    return `${table}\n\n${page}`;
  } catch (error) {
    // Somebody else's home can be read.
    return `${table}\n\n${page} is not written: ${whyUnwritten(error)}; --out DIR writes it elsewhere`;
  }
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
