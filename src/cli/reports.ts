/** Finds the reports of a home folder: HOME/<campaign>/report.json. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { reportSchema, type Report } from '../domain/report';
import { messageOf, UserError } from './errors';

export interface FoundReport {
  name: string;
  /** The campaign's folder. */
  folder: string;
  report: Report;
}

interface Place {
  home: string;
  name: string;
}

const fileOf = ({ home, name }: Place): string => join(home, name, 'report.json');

/** Names of the campaigns that have a report, the newest report first. */
export const reported = (home: string): string[] =>
  (existsSync(home) ? readdirSync(home) : [])
    .map((name) => ({ name, file: fileOf({ home, name }) }))
    .filter(({ file }) => existsSync(file))
    .sort((a, b) => statSync(b.file).mtimeMs - statSync(a.file).mtimeMs)
    .map(({ name }) => name);

/** All reports of the home that can be read, the newest first. */
export const allReports = (home: string): Report[] =>
  reported(home).flatMap((name) => {
    try {
      return [readReport({ home, name })];
    } catch {
      return [];
    }
  });

/** That of a campaign of the home. */
export const readReport = (place: Place): Report =>
  readReportFile(fileOf(place), 'the same `campaign run FILE` writes it anew');

const FOREIGN = 'name one that `campaign run` or `campaign report --out` of this version wrote';

/** @throws UserError if it is no report, a part of one, or of another version; `fix` is what helps then. */
export function readReportFile(file: string, fix = FOREIGN): Report {
  try {
    return reportSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    const [issue] = error instanceof z.ZodError ? error.issues : [];
    const problem = issue
      ? `is no report of this version (${issue.path.join('.') || 'the whole'}: ${issue.message})`
      : error instanceof SyntaxError
        ? `is no JSON, or cut off (${messageOf(error)})`
        : `can't be read: ${messageOf(error)}`;
    throw new UserError(`${file} ${problem}; ${fix}`);
  }
}

/** The report of campaign `name`, or the newest; undefined if the home has none. @throws UserError for a wrong name or a broken file. */
export function findReport({ home, name }: { home: string; name?: string | undefined }): FoundReport | undefined {
  const names = reported(home);
  if (name !== undefined && !names.includes(name)) {
    const known = names.length > 0 ? `campaigns with one: ${names.join(', ')}` : 'no campaign there has one';
    throw new UserError(`campaign '${name}' has no report in ${home}; ${known}`);
  }
  const found = name ?? names[0];
  if (found === undefined) return undefined;
  return { name: found, folder: join(home, found), report: readReport({ home, name: found }) };
}
