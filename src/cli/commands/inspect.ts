/** `campaign doctor` and `campaign schema`. */
import type { Command } from 'commander';
import { lazy } from '../lazy';
import { allOptions, homeOf, portOptions } from '../options';
import type { PortOptions } from '../ports';

// eslint-disable-next-line @typescript-eslint/no-require-imports -- slow to load, and it loads modules that use `lazy`
const doctorModule = () => require('../doctor') as typeof import('../doctor');

export function inspectCommands(program: Command): void {
  portOptions(program.command('doctor [file]'))
    .description('what this machine has and lacks, and how to get it; with a campaign file, what that one needs')
    .option('--json', 'print JSON')
    .action(async (file: string | undefined, _options: unknown, command: Command) => {
      const options = allOptions<PortOptions>(command);
      const { examine, doctorLines } = doctorModule();
      const campaign = file ? lazy.campaignFile().loadCampaign({ file }) : undefined;
      const checks = await examine({ home: homeOf(options), ports: options, ...(campaign ? { campaign } : {}) });
      console.log(options.json ? JSON.stringify(checks) : doctorLines(checks, process.stdout.columns).join('\n'));
      if (checks.some(({ ok }) => !ok)) process.exitCode = 1;
    });

  program
    .command('schema')
    .description('JSON schema of campaign files, for editors')
    .action(() => console.log(JSON.stringify(lazy.campaignSchema().campaignJsonSchema(), null, 2)));
}
