/**
 * `campaign report` prints a campaign's report and writes its page from report.json. Of several campaigns of one target and one base model it prints
 * their comparison.
 */
import { existsSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { figuresIn } from '../domain/artifacts';
import { type Comparison, comparisonOf } from '../report/comparison';
import { comparisonHtml } from '../report/html';
import type { Report } from '../report/model';
import { renderReport } from '../report/render';
import { comparisonText } from '../report/comparison-text';
import { reportText } from '../report/terminal';
import { columnsOf } from '../terminal';
import { messageOf, UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { writeInto } from './project';
import { readReport, readReportFile, reported } from './reports';

type ReportOptions = CommonOptions & { out?: string };

/** `campaign report`: of several, their comparison. */
export async function showReport(names: string[], options: ReportOptions): Promise<string> {
  if (names.length > 1) return showComparison(names, options);
  const { out, json: asJson } = options;
  const home = homeOf(options).root;
  const name = names[0] ?? reported(home)[0];
  if (name === undefined)
    throw new UserError('not_found', 'report', `no report in ${home}; make one with \`campaign run FILE\``);
  const report = readReport({ home, name });
  const { json, html } = renderReport({ report });
  if (out !== undefined) await writeInto(resolve(out), { 'report.json': json, 'report.html': html });
  // --json alone only prints.
  if (asJson) return json.trimEnd();
  const page = join(resolve(out ?? join(home, name)), 'report.html');
  const text = reportText(report, { columns: columnsOf(), page });
  // The home may be read-only.
  const notWritten = (error: unknown) => `\n${page} is not written: ${messageOf(error)}; --out DIR writes it elsewhere`;
  return text + (out === undefined ? ((await writeFile(page, html).catch(notWritten)) ?? '') : '');
}

const DEFAULT_LEVEL = 0.95;

async function showComparison(named: readonly string[], options: ReportOptions): Promise<string> {
  const comparison = compareReports({ home: homeOf(options).root, named });
  if (options.out !== undefined)
    await writeInto(resolve(options.out), {
      'comparison.json': `${JSON.stringify(comparison, null, 2)}\n`,
      'comparison.html': comparisonHtml(comparison),
    });
  return options.json ? JSON.stringify(comparison, null, 2) : comparisonText(comparison, columnsOf());
}

/** `given`: on the command line. */
type Named = { given: string; report: Report };

/** `named`: campaigns of the home, files report.json, or folders that hold one. */
export function compareReports({ home, named }: { home: string; named: readonly string[] }): Comparison {
  const reports = named.map((given): Named => ({ given, report: readNamed(home, given) }));
  checkAlike(reports);
  const names = reports.map(({ report }) => report.campaign.name);
  const runs = reports.map(({ given, report }) => {
    const { name, stage } = report.campaign;
    const isOnly = names.filter((other) => other === name).length === 1;
    if (!report.solverMatrix)
      throw new UserError(
        'not_found',
        'arms',
        `${given} has no evaluated arms: it stopped at stage ${stage}; run it to its end`,
      );
    return { name: isOnly ? name : given, report, matrix: report.solverMatrix };
  });
  const figures = reports.flatMap(({ report }) => figuresIn(report.arms));
  const level = figures.find(({ interval }) => interval)?.interval?.level ?? DEFAULT_LEVEL;
  return comparisonOf({ runs, level });
}

/** Reads a report by name. A campaign of the home precedes a folder of the same name. */
function readNamed(home: string, given: string): Report {
  if (existsSync(join(home, given, 'report.json')) || !existsSync(given)) return readReport({ home, name: given });
  const file = resolve(statSync(given).isDirectory() ? join(given, 'report.json') : given);
  if (!existsSync(file)) throw new UserError('not_found', 'report', `${given} holds no report.json`);
  return readReportFile(file);
}

/** @throws UserError for one run that is named twice, and for runs of several targets or base models. */
function checkAlike([first, ...others]: readonly Named[]): void {
  const runOf = ({ report: { campaign } }: Named) => `${campaign.configSha256} ${campaign.startedAt}`;
  const subjectsOf = ({ report: { campaign } }: Named) =>
    `target ${campaign.target.name} ${campaign.target.version} and base model ${campaign.baseModel}`;
  const runs = new Set([runOf(first!)]);
  for (const one of others) {
    if (runs.has(runOf(one)))
      throw new UserError('invalid_argument', 'name', `${one.given} is named twice: name each run once`);
    runs.add(runOf(one));
    if (subjectsOf(one) !== subjectsOf(first!))
      throw new UserError(
        'invalid_argument',
        'name',
        `${first!.given} has ${subjectsOf(first!)}, ${one.given} has ${subjectsOf(one)}: compare runs of one target and one base model`,
      );
  }
}
