/** `campaign approvals`, `approve` and `reject`. A person at a terminal is told what follows, and asked, before anything is decided. */
import type { Command } from 'commander';
import { join } from 'node:path';
import type { Decision } from '../../domain/approval';
import { UserError } from '../errors';
import { allOptions, examples, homeOf, type CommonOptions } from '../options';
import { plain } from '../../terminal';
import type { Temporal } from '../temporal';

interface DecideOptions extends CommonOptions {
  edit?: string;
  reason?: string;
  yes?: boolean;
}

const YES = 'do not ask for confirmation';

export function approvalCommands(program: Command): void {
  program
    .command('approvals <name>')
    .description('list pending approvals (also writes HOME/NAME/approval.html)')
    .option('--json', 'print JSON')
    .addHelpText('after', examples(['campaign approvals demo']))
    .action(async (name: string, _options: unknown, command: Command) => {
      await withServer(allOptions(command), (temporal, options) => listApprovals(temporal, options, name));
    });

  program
    .command('approve <name> [what]')
    .description('approve the selected capabilities together, or the environment of capability WHAT')
    .option('--edit <file>', 'approve it as it stands in this file: a list of {name, definition}, or a module')
    .option('--yes', YES)
    .addHelpText(
      'after',
      examples(
        ['campaign approve demo', 'all that waits'],
        ['campaign approve demo tell_price --edit tell_price.js', 'an environment, as you edited it'],
      ),
    )
    .action(async (name: string, what: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions<DecideOptions>(command);
      await withServer(options, (temporal) => approve(temporal, options, { name, what }));
    });

  program
    .command('reject <name> <what...>')
    .description('reject capability WHAT (or "all"), or send its environment back for revision')
    .requiredOption('--reason <text>', 'why: it is kept, and tells the synthesizer what to change')
    .option('--yes', YES)
    .addHelpText('after', examples(['campaign reject demo tell_price --reason "prices are no part of our service"']))
    .action(async (name: string, what: string[], _options: unknown, command: Command) => {
      const options = allOptions<DecideOptions>(command);
      await withServer(options, (temporal) => reject(temporal, options, { name, what }));
    });
}

async function withServer<Options extends CommonOptions>(
  options: Options,
  work: (temporal: Temporal, options: Options) => Promise<void>,
): Promise<void> {
  const { withTemporal } = await import('../temporal.js');
  await withTemporal(options, (temporal) => work(temporal, options));
}

async function listApprovals(temporal: Temporal, options: CommonOptions, campaign: string): Promise<void> {
  const { approvalText } = await import('../../report/sections/approval.js');
  const { pendingApprovals, showApprovals } = await import('../approvals.js');
  const pending = await pendingApprovals(temporal, campaign);
  const { shown, page } = await showApprovals(pending, {
    campaign,
    folder: join(homeOf(options).root, campaign),
    store: await storeOf(options),
  });
  if (options.json) return print(JSON.stringify({ campaign, page, waits: shown }));
  if (shown.length === 0) return print(`nothing of campaign ${campaign} waits for approval`);
  for (const { view, commands } of shown)
    print([approvalText(view), '', ...commands.map((one) => `  ${one}`), ''].join('\n'));
  print(`the whole, with the text around each step: ${page}`);
}

async function approve(
  temporal: Temporal,
  { edit, yes, ...options }: DecideOptions,
  { name, what }: { name: string; what: string | undefined },
): Promise<void> {
  const approvals = await import('../approvals.js');
  const pending = await approvals.pendingApprovals(temporal, name);
  const chosen = approvals.chooseToApprove({ campaign: name, pending, what, edits: edit !== undefined });
  const [first] = chosen;
  const edited =
    edit !== undefined && first
      ? await approvals.readEdit({ file: edit, approval: first, store: await storeOf(options) })
      : {};
  const as = edit === undefined ? '' : ` as it stands in ${edit}`;
  await confirm(`approve ${chosen.map(approvals.subjectOf).join('; ')}${as}`, yes);
  for (const one of chosen) printDecision(approvals.subjectOf(one), await approvals.approve(temporal, one, edited));
}

async function reject(
  temporal: Temporal,
  { reason = '', yes }: DecideOptions,
  { name, what }: { name: string; what: string[] },
): Promise<void> {
  if (reason.trim() === '') throw new UserError('--reason is blank: say why');
  const approvals = await import('../approvals.js');
  const pending = await approvals.pendingApprovals(temporal, name);
  const chosen = approvals.chooseToReject({ campaign: name, pending, what });
  const subjectOf = ({ approval, names }: (typeof chosen)[number]) => {
    if (!names) return approvals.subjectOf(approval);
    const left = approval.waiting.names.filter((one) => !names.includes(one));
    return `${names.join(', ')} (the campaign goes on with ${left.join(', ') || 'none'})`;
  };
  await confirm(`reject ${chosen.map(subjectOf).join('; ')}`, yes);
  for (const one of chosen) {
    const rejection = { reason, ...(one.names && { names: one.names }) };
    printDecision(subjectOf(one), await approvals.reject(temporal, one.approval, rejection));
  }
}

const printDecision = (what: string, { kind }: Decision): void =>
  print(`${kind === 'approve' ? 'approved' : 'rejected'}: ${what}`);

/** @throws UserError where the answer is no, or there is no terminal to ask on. */
async function confirm(what: string, yes = false): Promise<void> {
  const { confirmed } = await import('../confirm.js');
  if (!yes && !(await confirmed(what))) throw new UserError('nothing was decided');
}

const print = (text: string): void => console.log(plain(text));

async function storeOf(options: CommonOptions) {
  const { openFolderStore } = await import('../../artifacts/folder-store.js');
  return openFolderStore(join(homeOf(options).root, 'artifacts'));
}
