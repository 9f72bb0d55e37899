/**
 * `campaign select`: the method's selection over published label files. Invariant: a file that is not a whole, consistent labeling pass
 * stops the command with a one-line error.
 */
import type { Command } from 'commander';
import type { LabelPass, Selection } from '../../domain/capability';
import type { Thresholds } from '../../domain/selection';
import { alignColumns } from '../../terminal';
import { UserError } from '../errors';
import { examples } from '../options';

interface SelectOptions {
  labels: string;
  rho?: string;
  delta?: string;
  votes?: string;
  json?: boolean;
}

export function selectCommand(program: Command): void {
  program
    .command('select')
    .description('select lacking capabilities from label files run_NN.json')
    .requiredOption('--labels <dir>', 'folder with run_00.json, run_01.json, ...')
    .option('--rho <fraction>', 'least coverage of the failures (default: 0.1)')
    .option('--delta <fraction>', 'least gap between the error rates of failures and successes (default: 0.2)')
    .option('--votes <count>', 'passes that must agree (default: 8)')
    .option('--json', 'print JSON instead of a table')
    .addHelpText('after', examples(['campaign select --labels labels --rho 0.05', 'a rule of your own']))
    .action(async (options: SelectOptions) => {
      const { selectCapabilities } = await import('../../domain/selection.js');
      const rule = await parseRule(options);
      const selection = selectCapabilities({ passes: await readPasses(options.labels), rule });
      console.log(options.json ? JSON.stringify(selection, null, 2) : table(selection));
    });
}

async function parseRule(options: SelectOptions): Promise<Thresholds> {
  const { selectionRuleSchema } = await import('../../domain/campaign.js');
  const { shape } = selectionRuleSchema.def.innerType;
  const number = (name: 'rho' | 'delta' | 'votes', fix: string) => {
    const text = options[name]?.trim();
    const parsed = shape[name].safeParse(text ? Number(text) : undefined);
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

async function readPasses(folder: string): Promise<LabelPass[]> {
  const { readLabelFiles } = await import('../../analyst/label-files.js');
  const { isFailure } = await import('../../domain/failures.js');
  try {
    return (await readLabelFiles({ folder, field: '--labels' })).map(({ pass }) => pass);
  } catch (error) {
    if (!isFailure(error, 'BadInput')) throw error;
    const [cause = '', ...others] = error.message.split('\n');
    throw new UserError(cause, others);
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
  const selected = selection.capabilities.filter((one) => one.selected).length;
  const summary = `${selected} of ${selection.capabilities.length} selected, from ${selection.passes} passes`;
  return [...alignColumns(rows), '', selection.reason === undefined ? summary : `${summary}: ${selection.reason}`].join(
    '\n',
  );
}
