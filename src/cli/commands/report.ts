/**
 * `campaign report`: shows a campaign's report again, or writes its files elsewhere. The page is always made anew from report.json. A campaign
 * without a report is shown by where it stands.
 */
import type { Command } from 'commander';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { UserError } from '../errors';
import { allOptions, examples, homeOf, type CommonOptions } from '../options';
import { whyUnwritten, writeInto } from '../project';
import type { FoundReport } from '../reports';

interface ReportOptions {
  json?: boolean;
  out?: string;
}

export function reportCommand(program: Command): void {
  program
    .command('report [name]')
    .description('show the report of a campaign (default: the newest): table, page, JSON')
    .option('--json', 'print report.json')
    .option('--out <dir>', 'write report.json and report.html there')
    .addHelpText('after', examples(['campaign report demo --out shared', 'the files, to pass on']))
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions<ReportOptions>(command);
      const { findReport, reported } = await import('../reports.js');
      const home = homeOf(options).root;
      const isReported = name === undefined || reported(home).includes(name);
      const found = isReported ? findReport({ home, name }) : undefined;
      console.log(found ? await show(found, options) : await withoutReport({ ...options, home }, name));
    });
}

async function show({ folder: own, report }: FoundReport, options: ReportOptions): Promise<string> {
  const { renderReport } = await import('../../report/render.js');
  const { reportText } = await import('../../report/sections/report.js');
  const { json, html } = renderReport({ report });
  const page = join(resolve(options.out ?? own), 'report.html');
  if (options.out !== undefined) await writeInto(resolve(options.out), { 'report.json': json, 'report.html': html });
  // --json alone only prints.
  if (options.json) return json.trimEnd();
  const table = reportText(report, process.stdout.columns);
  try {
    if (options.out === undefined) await writeFile(page, html);
    return `${table}\n\n${page}`;
  } catch (error) {
    // Somebody else's home may allow reading only.
    return `${table}\n\n${page} is not written: ${whyUnwritten(error)}; --out DIR writes it elsewhere`;
  }
}

/** Where a campaign without a report stands, by default the newest; why there is no report, and where to look. */
async function withoutReport(options: CommonOptions & ReportOptions, name: string | undefined): Promise<string> {
  const { campaignsOf, readStatus, statusJson, statusLines } = await import('../campaign-status.js');
  const { withServer } = await import('../temporal.js');
  return withServer(options, async (temporal) => {
    const campaign = name ?? (await campaignsOf(temporal, options))[0]?.name;
    if (campaign === undefined)
      throw new UserError(`no report in ${options.home}; make one with \`campaign run FILE\``);
    const status = await readStatus(temporal, options, campaign);
    if (options.json) return statusJson(status);
    const { home } = options;
    return [
      `no report of ${campaign} in ${home}: one is written when a campaign completes, or stops after a stage with --until`,
      ...statusLines(status),
      `look further: \`campaign watch ${campaign}\`, ${join(home, 'logs')}`,
    ].join('\n');
  });
}
