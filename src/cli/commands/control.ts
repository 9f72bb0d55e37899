/** `campaign pause`, `resume`, `cancel` and `retry`: what is done to a campaign that a server knows. */
import type { Command } from 'commander';
import { allOptions, examples } from '../options';

const commands = [
  {
    name: 'pause',
    description: 'let a campaign finish its running steps and begin no other',
    done: 'pausing after the steps that run now',
  },
  { name: 'resume', description: 'go on with a paused campaign', done: 'goes on' },
  {
    name: 'cancel',
    description: 'end a campaign; finished work stays, for it or another one to go on from',
    done: 'ends as soon as a worker hears of it; finished work stays',
  },
] as const;

export function controlCommands(program: Command): void {
  for (const { name: what, description, done } of commands)
    program
      .command(`${what} <name>`)
      .description(description)
      .addHelpText('after', examples([`campaign ${what} demo`]))
      .action(async (name: string, _options: unknown, command: Command) => {
        const { commandCampaign, withTemporal } = await import('../temporal.js');
        await withTemporal(allOptions(command), (temporal) => commandCampaign(temporal, name, what));
        console.log(`campaign ${name}: ${done}`);
      });

  program
    .command('retry <name> [child]')
    .description('redo what failed in a campaign that has ended; everything else is found in the store')
    .addHelpText(
      'after',
      examples(
        ['campaign retry demo ask_for_missing_identifier', 'that capability or arm alone'],
        ['campaign run FILE --retry ask_for_missing_identifier', 'the same without a server that is up'],
      ),
    )
    .action(async (name: string, only: string | undefined, _options: unknown, command: Command) => {
      const { retryCampaign, withTemporal } = await import('../temporal.js');
      const retried = await withTemporal(allOptions(command), (temporal) => retryCampaign(temporal, { name, only }));
      console.log(
        retried.length === 0
          ? `nothing failed in ${only ?? name}`
          : `campaign ${name} does again: ${retried.join(', ')}; \`campaign watch ${name}\` follows it, and \`campaign run FILE\` brings workers where none run`,
      );
    });
}
