/** `campaign select`: the method's selection over published label files, each of which must be a consistent labeling pass. */
import { readLabelFiles } from '../analyst/given';
import { selectionRuleSchema } from '../domain/campaign';
import type { Selection } from '../domain/capability';
import { selectCapabilities, type Thresholds } from '../domain/selection';
import { alignColumns } from '../terminal';
import { UserError } from './errors';

export interface SelectOptions extends Partial<Record<'rho' | 'delta' | 'votes', string>> {
  labels: string;
  json?: boolean;
}

export async function select(options: SelectOptions): Promise<string> {
  const rule = ruleOf(options);
  const files = await readLabelFiles({ folder: options.labels, field: '--labels' }).catch((error: Error) => {
    const [cause = '', ...others] = error.message.split('\n');
    throw new UserError(cause, others);
  });
  const selection = selectCapabilities({ passes: files.map(({ pass }) => pass), rule });
  return options.json ? JSON.stringify(selection, null, 2) : table(selection);
}

function ruleOf(options: SelectOptions): Thresholds {
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
  const table = alignColumns([['capability', 'Cov', 'Delta', 'votes', 'selected'], ...rows]);
  return [...table, '', [summary, ...(reason === undefined ? [] : [reason])].join(': ')].join('\n');
}
