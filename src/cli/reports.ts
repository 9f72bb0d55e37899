/** Reports of a home folder: HOME/<campaign>/report.json. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { parseReport, type Report } from '../report/model';
import { keysOf } from '../store/campaign-index';
import { sha256 } from '../store/hash';
import { openStore } from '../store/open-store';
import { messageOf, UserError } from './errors';

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
export const allReports = (home: string): Report[] => reported(home).flatMap((name) => tryReport({ home, name }) ?? []);

const FOREIGN = 'name one that `campaign run` or `campaign report --out` of this version wrote';

/** @throws UserError if it is no report, a part of one, or of another version; `fix` is what helps then. */
export function readReportFile(file: string, fix = FOREIGN): Report {
  try {
    return parseReport(readFileSync(file, 'utf8'));
  } catch (error) {
    const [issue] = error instanceof z.ZodError ? error.issues : [];
    const why = issue
      ? `is no report of this version (${issue.path.join('.') || 'the whole'}: ${issue.message})`
      : `can't be read: ${messageOf(error)}`;
    throw new UserError('damaged', 'report', `${file} ${why}; ${fix}`);
  }
}

/** The report of a campaign; undefined if there is none that can be read. */
export function tryReport(named: Named): Report | undefined {
  try {
    return readReportFile(fileOf(named));
  } catch {
    return undefined;
  }
}

/** Returns the problem of a completed campaign's report, or undefined. The store knows the hashes of reports. */
export async function lostReport(named: Named): Promise<{ problem: string; isMissing: boolean } | undefined> {
  const file = fileOf(named);
  try {
    readReportFile(file, 'it is written again');
  } catch (error) {
    return { problem: messageOf(error), isMissing: !existsSync(file) };
  }
  const store = await openStore(named.home);
  const keys = (await keysOf(store.files, named.name)).filter((key) => /^report\/.*\.json$/.test(key));
  const written = await Promise.all(keys.map((key) => store.find(key)));
  const hash = sha256(readFileSync(file));
  if (written.length === 0 || written.some((ref) => ref?.sha256 === hash)) return undefined;
  return { problem: `${file} is not as it was written; it is written again`, isMissing: false };
}

/** Returns the report of a campaign of the home. @throws UserError that names those with a report, or a damaged file. */
export function readReport(named: Named): Report {
  const { home, name } = named;
  const names = reported(home);
  if (names.includes(name)) return readReportFile(fileOf(named), 'the same `campaign run FILE` writes it again');
  const fix = `\`campaign status ${name}\` shows its state; campaigns with one: ${names.join(', ') || 'none'}`;
  throw new UserError('not_found', 'report', `campaign '${name}' has no report in ${home}; ${fix}`);
}
