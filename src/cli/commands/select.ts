/** `campaign select`: the method's selection over published label files, each of which must be a consistent labeling pass. */
import type { Command } from 'commander';
import type { Selection } from '../../domain/capability';
import type { Thresholds } from '../../domain/selection';
import { alignColumns } from '../../terminal';
import { UserError } from '../errors';
import { examples } from '../options';

interface SelectOptions extends Partial<Record<'rho' | 'delta' | 'votes', string>> {
  labels: string;
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
      const { readLabelFiles } = await import('../../analyst/label-files.js');
      const rule = await ruleOf(options);
      const files = await readLabelFiles({ folder: options.labels, field: '--labels' }).catch((error: Error) => {
        const [cause = '', ...others] = error.message.split('\n');
        throw new UserError(cause, others);
      });
      const selection = selectCapabilities({ passes: files.map(({ pass }) => pass), rule });
      console.log(options.json ? JSON.stringify(selection, null, 2) : table(selection));
    });
}

async function ruleOf(options: SelectOptions): Promise<Thresholds> {
  const { selectionRuleSchema } = await import('../../domain/campaign.js');
  const numberOf = (text: string | undefined) => (text === undefined ? text : text.trim() === '' ? NaN : Number(text));
  const given = { rho: numberOf(options.rho), delta: numberOf(options.delta), votes: numberOf(options.votes) };
  const { data, error } = selectionRuleSchema.safeParse(given);
  if (data) return { rho: data.rho, delta: data.delta, votes: data.votes, evidence: data.evidence };
  const name = error.issues[0]?.path[0] as keyof Thresholds & keyof SelectOptions;
  const fix = name === 'votes' ? 'a whole number above 0' : 'a number from 0 to 1';
  throw new UserError(`--${name} is "${options[name]}"; give ${fix}`);
}

function table({ capabilities, passes, reason }: Selection): string {
  const figure = ({ mean, std }: { mean: number; std: number }) => `${mean.toFixed(3)} ± ${std.toFixed(3)}`;
  const rows = capabilities.map((one) => [
    one.name,
    figure(one.coverage),
    figure(one.delta),
    `${one.votes}/${one.passes}`,
    one.selected ? 'yes' : 'no',
  ]);
  const selected = capabilities.filter((one) => one.selected).length;
  const summary = `${selected} of ${capabilities.length} selected, from ${passes} passes`;
  return [
    ...alignColumns([['capability', 'Cov', 'Delta', 'votes', 'selected'], ...rows]),
    '',
    [summary, ...(reason === undefined ? [] : [reason])].join(': '),
  ].join('\n');
}
