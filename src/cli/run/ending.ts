/** What is said when a campaign has ended: the table of the arms, and where to look further. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { reportSchema } from '../../domain/report';
import { UserError } from '../errors';
import { lazy } from '../lazy';
import type { Home } from '../project';

/** Files of a campaign that its report is in. */
export const reportFiles = (home: Home, name: string): { json: string; html: string } => ({
  json: join(home.root, name, 'report.json'),
  html: join(home.root, name, 'report.html'),
});

export interface Ending {
  /** The table of the arms. */
  table: string;
  /** Path of report.html. */
  report: string;
}

/** @throws UserError if the report is not there. */
export function readEnding({ home, name }: { home: Home; name: string }): Ending {
  const { json, html } = reportFiles(home, name);
  if (!existsSync(json))
    throw new UserError(`campaign ${name} has ended, but ${json} is missing; was it run with another --home?`);
  const report = reportSchema.parse(JSON.parse(readFileSync(json, 'utf8')));
  return { table: lazy.terminalReport().terminalTable(report), report: html };
}
