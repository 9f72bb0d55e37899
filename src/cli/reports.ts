/** Reports of a home folder: HOME/<campaign>/report.json. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type Report, reportSchema } from '../report/model';
import { messageOf, UserError } from './errors';
import { readStatus } from './watch/snapshot';

export interface FoundReport {
  name: string;
  /** The campaign's folder. */
  folder: string;
  report: Report;
}

interface Named {
  home: string;
  name: string;
}

const fileOf = ({ home, name }: Named): string => join(home, name, 'report.json');

/** Names of the campaigns that have a report, the newest report first. */
export const reported = (home: string): string[] =>
  (existsSync(home) ? readdirSync(home) : [])
    .filter((name) => existsSync(fileOf({ home, name })))
    .map((name) => ({ name, changed: statSync(fileOf({ home, name })).mtimeMs }))
    .sort((a, b) => b.changed - a.changed)
    .map(({ name }) => name);

/** All reports of the home that can be read, the newest first. */
export const allReports = (home: string): Report[] =>
  reported(home).flatMap((name) => {
    const report = tryRead(fileOf({ home, name }));
    return typeof report === 'string' ? [] : [report];
  });

/** A report, or what is wrong with its file. */
function tryRead(file: string): Report | string {
  try {
    return reportSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    if (error instanceof SyntaxError) return `is no JSON, or cut off (${messageOf(error)})`;
    if (!(error instanceof z.ZodError)) return `can't be read: ${messageOf(error)}`;
    const [issue] = error.issues;
    return `is no report of this version (${issue?.path.join('.') || 'the whole'}: ${issue?.message})`;
  }
}

const FOREIGN = 'name one that `campaign run` or `campaign report --out` of this version wrote';

/** @throws UserError if it is no report, a part of one, or of another version; `fix` is what helps then. */
export function readReportFile(file: string, fix = FOREIGN): Report {
  const report = tryRead(file);
  if (typeof report === 'string') throw new UserError(`${file} ${report}; ${fix}`);
  return report;
}

/** What is wrong with the report of a campaign that has completed; undefined if nothing is. */
export function lostReport(named: Named): { file: string; problem: string; isMissing: boolean } | undefined {
  const file = fileOf(named);
  const isMissing = !existsSync(file);
  const problem = isMissing ? 'is missing' : tryRead(file);
  return typeof problem === 'string' ? { file, problem, isMissing } : undefined;
}

/** That of a campaign of the home. @throws UserError */
export function readReport(named: Named): Report {
  const file = fileOf(named);
  if (!existsSync(file))
    throw new UserError(`${file} is missing; if campaign ${named.name} was run with another --home, name that one`);
  return readReportFile(file, 'the same `campaign run FILE` writes it anew');
}

/** When a campaign has a report. */
const WRITTEN = 'one is written when a campaign completes, or stops after a stage with --until';

/** @throws UserError that says whether there is such a campaign, and names those with a report. */
export function requireReported({ home, name }: Named): void {
  const names = reported(home);
  if (names.includes(name)) return;
  if (readStatus({ home, name }))
    throw new UserError(
      `campaign '${name}' has no report in ${home} yet: ${WRITTEN}; \`campaign status ${name}\` shows its state`,
    );
  const known = names.length > 0 ? `campaigns with one: ${names.join(', ')}` : 'no campaign there has one';
  throw new UserError(`campaign '${name}' has no report in ${home}; ${known}`);
}

/** The report of campaign `name`, or the newest; undefined if the home has none. @throws UserError for a wrong name or a broken file. */
export function findReport({ home, name }: { home: string; name?: string | undefined }): FoundReport | undefined {
  if (name !== undefined) requireReported({ home, name });
  const chosen = name ?? reported(home)[0];
  if (chosen === undefined) return undefined;
  return { name: chosen, folder: join(home, chosen), report: readReport({ home, name: chosen }) };
}
