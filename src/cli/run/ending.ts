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

/** @throws UserError if the report is not there. */
export function reportText(ended: { home: Home; name: string; link: string | undefined; json: boolean }): string {
  const { json, html } = reportFiles(ended.home, ended.name);
  if (!existsSync(json))
    throw new UserError(`campaign ${ended.name} has ended, but ${json} is missing; was it run with another --home?`);
  const places = [`report   ${html}`, ...(ended.link ? [`workflow ${ended.link}`] : [])];
  if (ended.json) return places.map((place) => place.replace(/\s+/, ' ')).join(', ');
  const report = reportSchema.parse(JSON.parse(readFileSync(json, 'utf8')));
  return ['', lazy.terminalReport().terminalTable(report), '', ...places].join('\n');
}
