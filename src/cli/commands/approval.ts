/** `campaign approvals`, `approve` and `reject`. Invariant: whoever is there to be asked is told what follows, and says yes, before it does. */
import { createInterface } from 'node:readline/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import type { Decision } from '../../domain/approval';
import { UserError } from '../errors';
import { lazy } from '../lazy';
import { allOptions, homeOf, temporalOf, type CommonOptions } from '../options';
import { plain } from '../plain';
import type { Temporal } from '../temporal';

/* eslint-disable @typescript-eslint/no-require-imports -- slow to load, and they load modules that use `lazy` */
const asking = () => require('../approval/asked') as typeof import('../approval/asked');
const showing = () => require('../approval/shown') as typeof import('../approval/shown');
const deciding = () => require('../approval/decide') as typeof import('../approval/decide');
const editing = () => require('../approval/edits') as typeof import('../approval/edits');
const targeting = () => require('../approval/targets') as typeof import('../approval/targets');
const wording = () => require('../../report/approval/text') as typeof import('../../report/approval/text');
/* eslint-enable @typescript-eslint/no-require-imports */

interface DecideOptions extends CommonOptions {
  edit?: string;
  reason?: string;
  yes?: boolean;
}

const YES = 'do not ask whether to';

export function approvalCommands(program: Command): void {
  program
    .command('approvals <name>')
    .description('what of a campaign waits for approval, on the terminal and as HOME/NAME/approval.html')
    .option('--json', 'print JSON')
    .action(async (name: string, _options: unknown, command: Command) => {
      const options = allOptions(command);
      await withTemporal(options, (temporal) => approvals(temporal, options, name));
    });

  program
    .command('approve <name> [what]')
    .description('approve what waits: the selected capabilities together, or the environment of capability WHAT')
    .option('--edit <file>', 'approve it as it stands in this file: a list of {name, definition}, or a module')
    .option('--yes', YES)
    .action(async (name: string, what: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions<DecideOptions>(command);
      await withTemporal(options, (temporal) => approve(temporal, options, { name, what }));
    });

  program
    .command('reject <name> <what...>')
    .description('leave selected capabilities WHAT out (all: all of them), or send the environment of WHAT back')
    .requiredOption('--reason <text>', 'why: it is kept, and tells the synthesizer what to change')
    .option('--yes', YES)
    .action(async (name: string, what: string[], _options: unknown, command: Command) => {
      const options = allOptions<DecideOptions>(command);
      await withTemporal(options, (temporal) => reject(temporal, options, { name, what }));
    });
}

async function approvals(temporal: Temporal, options: CommonOptions, name: string): Promise<void> {
  const waits = await asking().whatWaits(temporal, name);
  const { shown, page } = await showing().showWaits(waits, placeOf(options, name));
  if (options.json) return print(JSON.stringify({ campaign: name, page, waits: shown }));
  if (shown.length === 0) return print(`nothing of campaign ${name} waits for approval`);
  for (const { view, commands } of shown)
    print([wording().approvalText(view), '', ...commands.map((one) => `  ${one}`), ''].join('\n'));
  print(`the whole, with the text around each step: ${page}`);
}

async function approve(
  temporal: Temporal,
  options: DecideOptions,
  { name, what }: { name: string; what: string | undefined },
): Promise<void> {
  const { edit, yes } = options;
  const waits = await asking().whatWaits(temporal, name);
  const chosen = targeting().toApprove({ campaign: name, waits, what, edits: edit !== undefined });
  const [first] = chosen;
  const { store } = placeOf(options, name);
  const edited = edit !== undefined && first ? await editing().readEdit({ file: edit, asked: first, store }) : {};
  const as = edit === undefined ? '' : ` as it stands in ${edit}`;
  await confirm(`approve ${chosen.map(asking().subjectText).join('; ')}${as}`, yes);
  for (const asked of chosen) tell(asking().subjectText(asked), await deciding().approve(temporal, asked, edited));
}

async function reject(
  temporal: Temporal,
  options: DecideOptions,
  { name, what }: { name: string; what: string[] },
): Promise<void> {
  const { reason = '', yes } = options;
  if (reason.trim() === '') throw new UserError('--reason is blank: say why');
  const waits = await asking().whatWaits(temporal, name);
  const chosen = targeting().toReject({ campaign: name, waits, what });
  const thing = ({ asked, names }: (typeof chosen)[number]) => {
    if (!names) return asking().subjectText(asked);
    const left = asked.waiting.names.filter((one) => !names.includes(one));
    return `${names.join(', ')} (the campaign goes on with ${left.join(', ') || 'none'})`;
  };
  await confirm(`reject ${chosen.map(thing).join('; ')}`, yes);
  for (const one of chosen) {
    const { names } = one;
    tell(thing(one), await deciding().reject(temporal, one.asked, { reason, ...(names && { names }) }));
  }
}

const tell = (what: string, { kind }: Decision): void =>
  print(`${kind === 'approve' ? 'approved' : 'rejected'}: ${what}`);

/** @throws UserError where it is not wanted, or nobody is there to be asked. */
async function confirm(what: string, yes = false): Promise<void> {
  if (yes) return;
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new UserError(`nobody is there to be asked whether to ${what}; --yes does it unasked`);
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  try {
    const answer = await terminal.question(plain(`${what}? [y/N] `));
    if (!/^y(es)?$/i.test(answer.trim())) throw new UserError('nothing was decided');
  } finally {
    terminal.close();
  }
}

const print = (text: string): void => console.log(plain(text));

const placeOf = (options: CommonOptions, campaign: string) => {
  const { root } = homeOf(options);
  const store = lazy.folderStore().openFolderStore(join(root, 'artifacts'));
  return { campaign, folder: join(root, campaign), store };
};

async function withTemporal(options: CommonOptions, work: (temporal: Temporal) => Promise<void>): Promise<void> {
  const temporal = await lazy.temporal().connect(temporalOf(options));
  try {
    await work(temporal);
  } finally {
    await temporal.close();
  }
}
