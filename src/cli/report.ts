/**
 * `campaign report` prints a campaign's report and writes its page from report.json. Of several campaigns of one target and one base model it prints
 * their comparison.
 */
import { existsSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { readJson } from '../store/store';
import { openStore } from '../store/open-store';
import { figuresIn } from '../domain/artifacts';
import { type Comparison, comparisonOf } from '../report/comparison';
import { comparisonHtml } from '../report/html';
import { type Report, type SolverMatrix, solverMatrixSchema } from '../report/model';
import { renderReport } from '../report/render';
import { comparisonText } from '../report/comparison-text';
import { reportText } from '../report/terminal';
import { messageOf, UserError } from './errors';
import { type CommonOptions, homeOf } from './options';
import { whyUnwritten, writeInto } from './project';
import { findReport, type FoundReport, readReport, readReportFile, requireReported } from './reports';

export type ReportOptions = CommonOptions & { out?: string };

/** `campaign report`: of several, their comparison. */
export async function showReport([name, ...others]: string[], options: ReportOptions): Promise<string> {
  if (name !== undefined && others.length > 0) return showComparison([name, ...others], options);
  const home = homeOf(options).root;
  const found = findReport({ home, name });
  if (!found) throw new UserError(`no report in ${home}; make one with \`campaign run FILE\``);
  return shown(found, options);
}

async function shown({ folder: own, report }: FoundReport, { out, json: asJson }: ReportOptions): Promise<string> {
  const { json, html } = renderReport({ report });
  if (out !== undefined) await writeInto(resolve(out), { 'report.json': json, 'report.html': html });
  // --json alone only prints.
  if (asJson) return json.trimEnd();
  const page = join(resolve(out ?? own), 'report.html');
  const shown = reportText(report, { columns: process.stdout.columns, page });
  try {
    if (out === undefined) await writeFile(page, html);
    return shown;
  } catch (error) {
    // The home may be read-only.
    return `${shown}\n${page} is not written: ${whyUnwritten(error)}; --out DIR writes it elsewhere`;
  }
}

const DEFAULT_LEVEL = 0.95;

async function showComparison(named: readonly string[], options: ReportOptions): Promise<string> {
  const comparison = await compareReports({ home: homeOf(options).root, named });
  if (options.out !== undefined) await writeComparison(comparison, resolve(options.out));
  return options.json ? JSON.stringify(comparison, null, 2) : comparisonText(comparison, process.stdout.columns);
}

/** Writes comparison.json and comparison.html. */
export const writeComparison = (comparison: Comparison, folder: string): Promise<void> =>
  writeInto(folder, {
    'comparison.json': `${JSON.stringify(comparison, null, 2)}\n`,
    'comparison.html': comparisonHtml(comparison),
  });

/** `given`: on the command line. */
type Named = { given: string; report: Report };

/** `named`: campaigns of the home, files report.json, or folders that hold one. */
export async function compareReports({ home, named }: { home: string; named: readonly string[] }): Promise<Comparison> {
  const reports = named.map((given): Named => ({ given, report: readNamed(home, given) }));
  checkAlike(reports);
  const names = reports.map(({ report }) => report.campaign.name);
  const runs = await Promise.all(
    reports.map(async ({ given, report }) => {
      const { name } = report.campaign;
      const isOnly = names.filter((other) => other === name).length === 1;
      return { name: isOnly ? name : given, report, matrix: await matrixOf(home, given, report) };
    }),
  );
  const figures = reports.flatMap(({ report }) => figuresIn(report.arms));
  const level = figures.find(({ interval }) => interval)?.interval?.level ?? DEFAULT_LEVEL;
  return comparisonOf({ runs, level });
}

/** A name of the home's goes before a folder of the same name here. */
function readNamed(home: string, given: string): Report {
  if (existsSync(join(home, given, 'report.json')) || !existsSync(given)) {
    requireReported({ home, name: given });
    return readReport({ home, name: given });
  }
  const file = resolve(statSync(given).isDirectory() ? join(given, 'report.json') : given);
  if (!existsSync(file)) throw new UserError(`${given} holds no report.json`);
  return readReportFile(file);
}

/** @throws UserError for one run that is named twice, and for runs of several targets or base models. */
function checkAlike(reports: readonly Named[]): void {
  const runOf = ({ report: { campaign } }: Named) => `${campaign.configSha256} ${campaign.startedAt}`;
  const twice = reports.find((one, n) => reports.slice(0, n).some((other) => runOf(other) === runOf(one)));
  if (twice) throw new UserError(`${twice.given} is named twice: name each run once`);
  const subjects = {
    target: ({ report: { campaign } }: Named) => `${campaign.target.name} ${campaign.target.version}`,
    'base model': ({ report: { campaign } }: Named) => campaign.baseModel,
  };
  const [first, ...others] = reports;
  for (const [what, of] of Object.entries(subjects)) {
    const other = first && others.find((one) => of(one) !== of(first));
    if (other)
      throw new UserError(
        `${first.given} has ${what} ${of(first)}, ${other.given} has ${of(other)}: compare runs of one target and one base model`,
      );
  }
}

/** A large one is not in the report, but in the home's store. */
async function matrixOf(home: string, given: string, { solverMatrix, campaign }: Report): Promise<SolverMatrix> {
  if (!solverMatrix)
    throw new UserError(`${given} has no evaluated arms: it came to stage ${campaign.stage}; run it to its end`);
  if (solverMatrix.inline) return solverMatrix.inline;
  return readJson(await openStore(home), solverMatrix.from, solverMatrixSchema).catch((error: unknown) => {
    throw new UserError(
      `the outcomes of ${given}, on ${solverMatrix.tasks} test tasks, are not in its report, and ${home} does not have them ` +
        `(${messageOf(error)}); give the campaign's own home with --home`,
    );
  });
}
