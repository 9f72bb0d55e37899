/** Reports of a home folder: HOME/<campaign>/report.json. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { type Report, reportSchema } from '../report/model';
import { messageOf, UserError } from './errors';
import { shortEpisode, terminalTable } from '../report/page/table';
import type { Home } from './project';

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

interface CampaignSummary {
  /** The table of the arms. */
  table: string;
  /** Path of report.html. */
  report: string;
  /** The same for programs, as report.json has it. */
  result: Pick<Report, 'rollouts' | 'base'> & Pick<Report['campaign'], 'status' | 'stage'>;
}

/** A report that is missing or no report. */
class ReportLost extends UserError {
  constructor(
    readonly file: string,
    /** What is wrong with it. */
    readonly problem: string,
    fix: string,
  ) {
    super(`the report ${file} is ${problem}; ${fix}`);
  }
}

/** @throws ReportLost */
export function readSummary({ home, name }: { home: Home; name: string }): CampaignSummary {
  const file = join(home.root, name, 'report.json');
  if (!existsSync(file))
    throw new ReportLost(file, 'missing', `if campaign ${name} was run with another --home, name that one`);
  let report: Report;
  try {
    report = reportSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error).replace(/\s*\n\s*/g, ' ') : messageOf(error);
    throw new ReportLost(file, `damaged (${why})`, 'the same `campaign run` writes it anew');
  }
  const { campaign, rollouts, base } = report;
  const { status, stage } = campaign;
  return {
    table: terminalTable(report, process.stdout.columns),
    report: join(home.root, name, 'report.html'),
    result: {
      status,
      stage,
      ...(rollouts && { rollouts }),
      ...(base && { base: { ...base, conversations: base.conversations.map(shortEpisode) } }),
    },
  };
}

/** What is wrong with the report of a campaign that has ended; undefined if nothing is. */
export function lostReport(of: { home: Home; name: string }): ReportLost | undefined {
  try {
    readSummary(of);
    return undefined;
  } catch (error) {
    if (error instanceof ReportLost) return error;
    throw error;
  }
}
