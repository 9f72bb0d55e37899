/**
 * `campaign report` shows a campaign's report again, or writes its files elsewhere: the page is always made anew from report.json, and a campaign
 * without a report is shown by where it stands. `campaign lineage` walks from a figure, an artifact or a rollout back to the rollouts behind it.
 */
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { openStore } from '../artifacts/open-store';
import { lineage, lineageText, UnknownStartError } from '../report/lineage';
import { renderReport } from '../report/render';
import { reportText } from '../report/sections/report';
import { campaignsOf, readStatus, statusJson, statusLines } from './campaign-status';
import { UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { VIEW_PORT } from './ports';
import { whyUnwritten, writeInto } from './project';
import { findReport, type FoundReport, reported } from './reports';
import { withServer } from './temporal';

export type ReportOptions = CommonOptions & { out?: string };

export async function showReport(name: string | undefined, options: ReportOptions): Promise<string> {
  const home = homeOf(options).root;
  const isReported = name === undefined || reported(home).includes(name);
  const found = isReported ? findReport({ home, name }) : undefined;
  return found ? shown(found, options) : withoutReport({ ...options, home }, name);
}

async function shown({ folder: own, report }: FoundReport, { out, json: asJson }: ReportOptions): Promise<string> {
  const { json, html } = renderReport({ report });
  if (out !== undefined) await writeInto(resolve(out), { 'report.json': json, 'report.html': html });
  // --json alone only prints.
  if (asJson) return json.trimEnd();
  const table = reportText(report, process.stdout.columns);
  const page = join(resolve(out ?? own), 'report.html');
  try {
    if (out === undefined) await writeFile(page, html);
    return `${table}\n\n${page}`;
  } catch (error) {
    // Somebody else's home may allow reading only.
    return `${table}\n\n${page} is not written: ${whyUnwritten(error)}; --out DIR writes it elsewhere`;
  }
}

/** Where a campaign without a report stands, by default the newest; why there is no report, and where to look. */
const withoutReport = (options: ReportOptions, name: string | undefined): Promise<string> =>
  withServer(options, async (temporal) => {
    const { home } = options;
    const campaign = name ?? (await campaignsOf(temporal, options))[0]?.name;
    if (campaign === undefined) throw new UserError(`no report in ${home}; make one with \`campaign run FILE\``);
    const status = await readStatus(temporal, options, campaign);
    if (options.json) return statusJson(status);
    return [
      `no report of ${campaign} in ${home}: one is written when a campaign completes, or stops after a stage with --until`,
      ...statusLines(status),
      `look further: \`campaign watch ${campaign}\`, ${join(home, 'logs')}`,
    ].join('\n');
  });

export type LineageOptions = CommonOptions & { campaign?: string };

export async function showLineage(start: string, options: LineageOptions): Promise<string> {
  const home = homeOf(options);
  const found = findReport({ home: home.root, name: options.campaign });
  try {
    const tree = await lineage({ store: await openStore(home.root), start, ...(found && { report: found.report }) });
    if (options.json) return JSON.stringify(tree);
    const { root } = tree;
    const shown = root.kind === 'rollout' ? `conversation/${root.rollout.key}` : `conversations?figure=${start}`;
    const campaign = found ? ` ${found.name}` : '';
    return `${lineageText(tree)}\nto read them: \`campaign view${campaign}\`, then http://127.0.0.1:${VIEW_PORT}/#${shown}`;
  } catch (error) {
    if (!(error instanceof UnknownStartError)) throw error;
    const where = found ? `looked in the report of ${found.name}` : `no report in ${home.root}`;
    throw new UserError(`${error.message} (${where}; a hash must be long enough to be the only one)`);
  }
}
