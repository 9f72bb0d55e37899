/** `campaign du`: what takes room in a home, by kind, of all or of one campaign. Reads only. */
import type { Command } from 'commander';
import { allOptions, examples, homeOf } from '../options';

export function duCommand(program: Command): void {
  program
    .command('du [name]')
    .description(
      'show what takes room in the home, by kind; with a name, what of it the campaign uses alone and shares',
    )
    .option('--json', 'print JSON')
    .addHelpText('after', examples(['campaign du'], ['campaign du demo', 'what `campaign delete demo` frees is alone']))
    .action(async (name: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions(command);
      const home = homeOf(options);
      const { campaignIn, homeUse, sizeText } = await import('../usage.js');
      const { alignColumns } = await import('../../terminal.js');
      const use = await homeUse(home);
      const shown = name === undefined ? use : campaignIn(use, name, home);
      if (options.json) return console.log(JSON.stringify(shown));
      if (!('name' in shown)) {
        const rows = Object.entries(use.kinds).sort(([, a], [, b]) => b - a);
        const lines = [...rows, ['all', use.bytes] as const].map(([kind, bytes]) => [kind, sizeText(bytes)]);
        return console.log(alignColumns(lines, { numbers: true }).join('\n'));
      }
      const rows = Object.entries(shown.kinds).sort(([, a], [, b]) => b.alone + b.shared - a.alone - a.shared);
      const lines = [...rows, ['all', shown] as const].map(
        ([kind, { alone, shared }]) => [kind, alone, shared] as const,
      );
      const table = lines.map(([kind, alone, shared]) => [kind, sizeText(alone), sizeText(shared)]);
      console.log(alignColumns([['', 'alone', 'shared'], ...table], { numbers: true }).join('\n'));
      if (!shown.isKnown) console.log(`what ${name} uses of the store is unknown: it was run before uses were noted`);
    });
}
