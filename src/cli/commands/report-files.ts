/** Finds the reports of a home folder: HOME/<campaign>/report.json. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { reportSchema, type Report } from '../../domain/report';
import { messageOf, UserError } from '../errors';
import { allOptions, DEFAULT_HOME } from '../options';
import { homeAt } from '../project';

export interface FoundReport {
  name: string;
  /** The campaign's folder. */
  folder: string;
  report: Report;
}

/** The home's folder: --home, else $CAMPAIGN_HOME, else `.campaigns`. */
export const homeRoot = (command: Command): string =>
  homeAt(allOptions<{ home?: string }>(command).home ?? process.env['CAMPAIGN_HOME'] ?? DEFAULT_HOME).root;

/** Names of the campaigns that have a report, the newest report first. */
const reported = (home: string): string[] =>
  (existsSync(home) ? readdirSync(home) : [])
    .map((name) => ({ name, file: join(home, name, 'report.json') }))
    .filter(({ file }) => existsSync(file))
    .sort((a, b) => statSync(b.file).mtimeMs - statSync(a.file).mtimeMs)
    .map(({ name }) => name);

/** All reports of the home that this version can read, the newest first. */
export const allReports = (home: string): Report[] =>
  reported(home).flatMap((name) => {
    try {
      return [reportSchema.parse(JSON.parse(readFileSync(join(home, name, 'report.json'), 'utf8')))];
    } catch {
      return [];
    }
  });

/** The report of campaign `name`, or the newest; undefined if the home has none. Throws UserError for a wrong name or a broken file. */
export function findReport({ home, name }: { home: string; name?: string | undefined }): FoundReport | undefined {
  const names = reported(home);
  if (name !== undefined && !names.includes(name)) {
    const known = names.length > 0 ? `campaigns with one: ${names.join(', ')}` : 'no campaign there has one';
    throw new UserError(`campaign '${name}' has no report in ${home}; ${known}`);
  }
  const found = name ?? names[0];
  if (found === undefined) return undefined;
  const folder = join(home, found);
  const file = join(folder, 'report.json');
  try {
    return { name: found, folder, report: reportSchema.parse(JSON.parse(readFileSync(file, 'utf8'))) };
  } catch (error) {
    throw new UserError(
      `${file} is no report of this version (${messageOf(error)}); run its campaign again to write a new one`,
    );
  }
}
