/** `campaign compare`: several runs of one campaign, of one target and one base model, as one comparison. Reads reports only. */
import type { Command } from 'commander';
import { existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Comparison } from '../../report/comparison';
import type { Report, SolverMatrix } from '../../report/model';
import { messageOf, UserError } from '../errors';
import { allOptions, examples, homeOf } from '../options';

const DEFAULT_LEVEL = 0.95;

export function compareCommand(program: Command): void {
  program
    .command('compare <report...>')
    .description('compare several runs of one campaign: names of campaigns, or files report.json')
    .option('--json', 'print JSON instead of a table')
    .option('--out <dir>', 'write comparison.json and comparison.html there')
    .addHelpText('after', examples(['campaign compare demo-1 demo-2 demo-3 --out comparison', 'three seeds']))
    .action(async (named: string[], _options: unknown, command: Command) => {
      const { json, out, ...options } = allOptions<{ out?: string }>(command);
      const { comparisonText } = await import('../../report/sections/comparison.js');
      const comparison = await compareReports({ home: homeOf(options).root, named });
      if (out !== undefined) await writeComparison(comparison, resolve(out));
      console.log(json ? JSON.stringify(comparison, null, 2) : comparisonText(comparison, process.stdout.columns));
    });
}

interface Named {
  /** On the command line. */
  given: string;
  report: Report;
}

/** `named`: campaigns of the home, files report.json, or folders that hold one. */
export async function compareReports({ home, named }: { home: string; named: string[] }): Promise<Comparison> {
  if (named.length < 2)
    throw new UserError(
      `compare takes two reports or more, not ${named.length}: names of campaigns, or files report.json`,
    );
  const { figuresIn } = await import('../../domain/figure.js');
  const { comparisonOf } = await import('../../report/comparison.js');
  const reports = await Promise.all(named.map(async (given) => ({ given, report: await readNamed(home, given) })));
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

/** Writes comparison.json and comparison.html. */
export async function writeComparison(comparison: Comparison, folder: string): Promise<void> {
  const { comparisonHtml } = await import('../../report/sections/comparison.js');
  const { writeInto } = await import('../project.js');
  const json = `${JSON.stringify(comparison, null, 2)}\n`;
  await writeInto(folder, { 'comparison.json': json, 'comparison.html': comparisonHtml(comparison) });
}

/** A name of the home's goes before a folder of the same name here. */
async function readNamed(home: string, given: string): Promise<Report> {
  const { findReport, readReportFile } = await import('../reports.js');
  if (!existsSync(join(home, given, 'report.json')) && existsSync(given)) {
    const file = resolve(statSync(given).isDirectory() ? join(given, 'report.json') : given);
    if (!existsSync(file)) throw new UserError(`${given} holds no report.json`);
    return readReportFile(file);
  }
  const found = findReport({ home, name: given });
  if (!found) throw new UserError(`no report in ${home}`);
  return found.report;
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
  try {
    const { openStore } = await import('../../artifacts/open-store.js');
    const { solverMatrixSchema } = await import('../../report/model.js');
    const store = await openStore(home);
    return solverMatrixSchema.parse(JSON.parse((await store.read(solverMatrix.from)).toString('utf8')));
  } catch (error) {
    throw new UserError(
      `the outcomes of ${given}, on ${solverMatrix.tasks} test tasks, are not in its report, and ${home} does not have them ` +
        `(${messageOf(error)}); give the campaign's own home with --home`,
    );
  }
}
