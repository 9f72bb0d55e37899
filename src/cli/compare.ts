/**
 * Reports of several runs as one comparison. Invariant: what is compared is of one target and one base model, and each report once; anything
 * else is a UserError that names both.
 */
import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { figuresIn } from '../domain/figure';
import type { Report } from '../domain/report';
import { solverMatrixSchema, type SolverMatrix } from '../domain/reported-arms';
import { comparisonOf, type Comparison, type Run } from '../report/compare/comparison';
import { comparisonPage } from '../report/compare/page';
import { findReport, readReportFile } from './commands/report-files';
import { messageOf, UserError } from './errors';
import { lazy } from './lazy';
import { writeInto } from './out-folder';

const DEFAULT_LEVEL = 0.95;

/** `named`: campaigns of the home, files report.json, or folders that hold one. */
export async function compareReports({ home, named }: { home: string; named: string[] }): Promise<Comparison> {
  if (named.length < 2)
    throw new UserError(
      `compare takes two reports or more, not ${named.length}: names of campaigns, or files report.json`,
    );
  const reports = named.map((name) => ({ given: name, report: reportOf(home, name) }));
  const twice = reports.find(({ report }, i) => reports.slice(0, i).some((other) => isSame(other.report, report)));
  if (twice) throw new UserError(`${twice.given} is named twice: name each run once`);
  checkAlike(reports);
  const names = reports.map(({ report }) => report.campaign.name);
  const runs: Run[] = [];
  for (const { given, report } of reports) {
    const { name } = report.campaign;
    const isOnly = names.filter((other) => other === name).length === 1;
    runs.push({ name: isOnly ? name : given, report, matrix: await matrixOf(home, given, report) });
  }
  const level = reports.flatMap(({ report }) => figuresIn(report.arms)).find(({ interval }) => interval)
    ?.interval?.level;
  return comparisonOf({ runs, level: level ?? DEFAULT_LEVEL });
}

/** Writes comparison.json and comparison.html. */
export const writeComparison = (comparison: Comparison, folder: string): Promise<void> =>
  writeInto(folder, {
    'comparison.json': `${JSON.stringify(comparison, null, 2)}\n`,
    'comparison.html': comparisonPage(comparison),
  });

/** A name of the home's goes before a folder of the same name here. */
function reportOf(home: string, given: string): Report {
  if (!existsSync(join(home, given, 'report.json')) && existsSync(given)) {
    const file = resolve(statSync(given).isDirectory() ? join(given, 'report.json') : given);
    if (!existsSync(file)) throw new UserError(`${given} holds no report.json`);
    return readReportFile(file);
  }
  const found = findReport({ home, name: given });
  if (!found) throw new UserError(`no report in ${home}`);
  return found.report;
}

const isSame = (a: Report, b: Report): boolean =>
  a.campaign.configSha256 === b.campaign.configSha256 && a.campaign.startedAt === b.campaign.startedAt;

function checkAlike([first, ...others]: { given: string; report: Report }[]): void {
  const of = ({ campaign: { target, baseModel } }: Report) => ({
    target: `${target.name} ${target.version}`,
    'base model': baseModel,
  });
  for (const other of others) {
    const [mine, theirs] = [of(first!.report), of(other.report)];
    for (const what of ['target', 'base model'] as const)
      if (mine[what] !== theirs[what])
        throw new UserError(
          `${first!.given} has ${what} ${mine[what]}, ${other.given} has ${theirs[what]}: compare runs of one target and one base model`,
        );
  }
}

/** A large one is not in the report, but in the home's store. */
async function matrixOf(home: string, given: string, { solverMatrix, campaign }: Report): Promise<SolverMatrix> {
  if (!solverMatrix)
    throw new UserError(`${given} has no evaluated arms: it came to stage ${campaign.stage}; run it to its end`);
  if (solverMatrix.inline) return solverMatrix.inline;
  try {
    const store = lazy.folderStore().openFolderStore(join(home, 'artifacts'));
    return solverMatrixSchema.parse(JSON.parse((await store.read(solverMatrix.from)).toString('utf8')));
  } catch (error) {
    throw new UserError(
      `the outcomes of ${given}, on ${solverMatrix.tasks} test tasks, are not in its report, and ${home} does not have them ` +
        `(${messageOf(error)}); give the campaign's own home with --home`,
    );
  }
}
