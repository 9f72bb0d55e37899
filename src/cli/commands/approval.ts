/** `campaign approvals`, `approve` and `reject`. A person at a terminal is told what follows, and asked, before anything is decided. */
import type { Command } from 'commander';
import type { DecideOptions } from '../approvals';
import { allOptions, examples } from '../options';

const YES = 'do not ask for confirmation';

export function approvalCommands(program: Command): void {
  program
    .command('approvals <name>')
    .description('list pending approvals (also writes HOME/NAME/approval.html)')
    .option('--json', 'print JSON')
    .addHelpText('after', examples(['campaign approvals demo']))
    .action(async (name: string, _options: unknown, command: Command) => {
      const { listApprovals } = await import('../approvals.js');
      await listApprovals(name, allOptions(command));
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
      const { approve } = await import('../approvals.js');
      await approve(name, what === undefined ? [] : [what], allOptions<DecideOptions>(command));
    });

  program
    .command('reject <name> <what...>')
    .description('reject capability WHAT (or "all"), or send its environment back for revision')
    .requiredOption('--reason <text>', 'why: it is kept, and tells the synthesizer what to change')
    .option('--yes', YES)
    .addHelpText('after', examples(['campaign reject demo tell_price --reason "prices are no part of our service"']))
    .action(async (name: string, what: string[], _options: unknown, command: Command) => {
      const { reject } = await import('../approvals.js');
      await reject(name, what, allOptions<DecideOptions>(command));
    });
}
