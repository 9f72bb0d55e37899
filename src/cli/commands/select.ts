/**
 * `campaign select`: the method's selection over published label files. Invariant: a file that is not a whole, consistent labeling pass
 * stops the command with a one-line error; nothing is repaired or left out.
 */
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { selectionRuleSchema } from '../../domain/campaign';
import { labelPassSchema, type LabelPass, type Selection } from '../../domain/capability';
import { UserError, messageOf } from '../errors';
import { checkPartition, selectCapabilities, type Thresholds } from '../../domain/selection';

interface SelectOptions {
  labels: string;
  rho: string;
  delta: string;
  votes: string;
  json?: boolean;
}

/** Adds the command to the program. Bad input is a UserError. */
export function selectCommand(program: Command): void {
  const defaults = selectionRuleSchema.parse({});
  const command = program.command('select').description('select lacking capabilities from label files run_NN.json');
  command
    .requiredOption('--labels <dir>', 'folder with run_00.json, run_01.json, ...')
    .option('--rho <fraction>', 'least coverage of the failures', String(defaults.rho))
    .option('--delta <fraction>', 'least gap between the error rates of failures and successes', String(defaults.delta))
    .option('--votes <count>', 'passes that must agree', String(defaults.votes))
    .option('--json', 'print JSON instead of a table')
    .action((options: SelectOptions) => {
      const selection = selectCapabilities({ passes: readPasses(options.labels), rule: parseRule(options) });
      const text = options.json ? JSON.stringify(selection, null, 2) : table(selection);
      (command.configureOutput().writeOut ?? ((out) => process.stdout.write(out)))(`${text}\n`);
    });
}

function parseRule(options: SelectOptions): Thresholds {
  const shape = selectionRuleSchema.def.innerType.shape;
  const number = (name: 'rho' | 'delta' | 'votes', fix: string) => {
    const text = options[name].trim();
    const parsed = shape[name].safeParse(text === '' ? undefined : Number(text));
    if (text === '' || !parsed.success) throw new UserError(`--${name} is "${options[name]}"; give ${fix}`);
    return parsed.data;
  };
  const fraction = 'a number from 0 to 1';
  return {
    rho: number('rho', fraction),
    delta: number('delta', fraction),
    votes: number('votes', 'a whole number above 0'),
    evidence: selectionRuleSchema.parse({}).evidence,
  };
}

/** All run_NN.json of a folder, in the order of their numbers. Other files are left alone. */
function readPasses(folder: string): LabelPass[] {
  const files = listFolder(folder)
    .flatMap((name) => {
      const number = /^run_(\d+)\.json$/.exec(name)?.[1];
      return number === undefined ? [] : [{ name, number: Number(number) }];
    })
    .sort((a, b) => a.number - b.number || (a.name < b.name ? -1 : 1));
  if (files.length === 0)
    throw new UserError(`--labels ${folder}: no file run_NN.json; name the passes run_00.json, run_01.json, ...`);
  const passes = files.map(({ name }) => readPass(join(folder, name)));
  if (passes.every((pass) => Object.keys(pass.labels).length === 0)) {
    throw new UserError(
      `--labels ${folder}: no capability in any of ${files.length} files; "labels" must name at least one`,
    );
  }
  return passes;
}

function listFolder(folder: string): string[] {
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (!stats?.isDirectory()) {
    throw new UserError(`--labels ${folder}: no such folder; name the one with the files run_NN.json`);
  }
  return readdirSync(folder);
}

function readPass(file: string): LabelPass {
  const parsed = labelPassSchema.safeParse(readJson(file));
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    throw new UserError(
      `${file}: ${issue?.path.join('.') || 'file'}: ${issue?.message}; see docs/analysis.md for the shape`,
    );
  }
  const [problem, ...others] = checkPartition(parsed.data);
  if (problem !== undefined) throw new UserError(`${file}: ${problem}`, others);
  return parsed.data;
}

function readJson(file: string): unknown {
  const text = readFileSync(file, 'utf8');
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UserError(`${file}: not JSON (${messageOf(error)}); write the file again`);
  }
}

function table(selection: Selection): string {
  const figure = ({ mean, std }: { mean: number; std: number }) => `${mean.toFixed(3)} ± ${std.toFixed(3)}`;
  const rows = [
    ['capability', 'Cov', 'Delta', 'votes', 'selected'],
    ...selection.capabilities.map((one) => [
      one.name,
      figure(one.coverage),
      figure(one.delta),
      `${one.votes}/${one.passes}`,
      one.selected ? 'yes' : 'no',
    ]),
  ];
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const selected = selection.capabilities.filter((one) => one.selected).length;
  const summary = `${selected} of ${selection.capabilities.length} selected, from ${selection.passes} passes`;
  return [...lines, '', selection.reason === undefined ? summary : `${summary}: ${selection.reason}`].join('\n');
}
