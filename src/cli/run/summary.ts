/** What is printed when a campaign has ended: the table of the arms, and where to look further. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reportSchema } from '../../domain/report';
import { terminalTable } from '../../report/terminal';
import { UserError } from '../errors';
import type { Home } from '../project';

export interface CampaignSummary {
  /** The table of the arms. */
  table: string;
  /** Path of report.html. */
  report: string;
}

/** @throws UserError if the report is not there. */
export function readSummary({ home, name }: { home: Home; name: string }): CampaignSummary {
  const json = join(home.root, name, 'report.json');
  if (!existsSync(json))
    throw new UserError(`campaign ${name} has ended, but ${json} is missing; was it run with another --home?`);
  const report = reportSchema.parse(JSON.parse(readFileSync(json, 'utf8')));
  return { table: terminalTable(report), report: join(home.root, name, 'report.html') };
}
